// One idea with ServerFlight.swift: a flight gives it the bytes of its records, and bounds each message.

/// The handshake messages of a server's first flight, in their permitted order.
struct ServerMessages: Sendable {
    enum Finding {
        case retry
        case encrypted(isResumed: Bool)
        case shown(ServerCertificates)
        case resumed(UInt16, sessionID: [UInt8])
        case broken(WireError.Code)
    }

    private enum State {
        case serverHello
        /// A ServerHello that must choose TLS 1.3.
        case serverHelloAfterRetry
        /// In TLS 1.2 or older: certificates, or the end of an abbreviated handshake.
        case afterHello
        case ticketSeen
        /// Certificates were received; the type of the last message.
        case shown(UInt8)
    }

    /// The most certificates that a server may send; chains on the web have three or four.
    static let certificateLimit = 128

    private var state = State.serverHello
    /// The bytes of the current message, with its header.
    private var message: [UInt8] = []
    private var hello = Hello(legacyVersion: 0, random: [], sessionID: [], cipherSuite: 0)
    private var certificates: [[UInt8]] = []
    private var ocspResponse: [UInt8]?
    private var keyExchange: [UInt8]?

    var isBetweenMessages: Bool { message.isEmpty }

    mutating func receive(_ bytes: Span<UInt8>, from offset: inout Int, to end: Int) -> Finding? {
        while message.count < 4, offset < end {
            message.append(bytes[offset])
            offset += 1
        }
        guard message.count >= 4 else { return nil }
        let length = 4 + (Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3]))
        guard length <= ServerFlight.messageLimit else { return .broken(.serverHandshakeTooLong) }
        let stop = min(end, offset + length - message.count)
        while offset < stop {
            message.append(bytes[offset])
            offset += 1
        }
        guard message.count == length else { return nil }
        defer { message.removeAll(keepingCapacity: true) }
        return messageEnded()
    }

    /// In the clear it ends an abbreviated handshake, or is camouflage after a HelloRetryRequest.
    mutating func changeCipherSpec() -> Finding? {
        switch state {
        case .afterHello, .ticketSeen: .resumed(hello.legacyVersion, sessionID: hello.sessionID)
        case .serverHelloAfterRetry: nil
        case .serverHello, .shown: .broken(.serverHandshake)
        }
    }

    private mutating func messageEnded() -> Finding? {
        var reader = ByteReader(lower: 4, upper: message.count)
        switch (state, message[0]) {
        case (.serverHello, 2), (.serverHelloAfterRetry, 2): return serverHello(&reader)
        case (.afterHello, 11):
            guard let list = Self.certificates(&reader, in: message.span) else { return .broken(.serverHandshake) }
            guard !list.isEmpty else { return .broken(.noServerCertificate) }
            certificates = list
            state = .shown(11)
        case (.afterHello, 4): state = .ticketSeen
        // A key exchange, or nothing more, without certificates: anonymous, or with a shared key.
        case (.afterHello, 12...14): return .broken(.noServerCertificate)
        // CertificateStatus, ServerKeyExchange, CertificateRequest: each at most once, in this order.
        case (.shown(11), 22):
            guard let response = Self.status(&reader, in: message.span) else { return .broken(.serverHandshake) }
            if !response.isEmpty { ocspResponse = response }
            state = .shown(22)
        case (.shown(11), 12), (.shown(22), 12):
            keyExchange = Array(message[4...])
            state = .shown(12)
        case (.shown(11), 13), (.shown(22), 13), (.shown(12), 13): state = .shown(13)
        case (.shown, 14):
            guard reader.isAtEnd else { return .broken(.serverHandshake) }
            return .shown(
                ServerCertificates(
                    version: hello.legacyVersion, random: hello.random, cipherSuite: hello.cipherSuite,
                    certificates: certificates, ocspResponse: ocspResponse, timestamps: hello.timestamps ?? [],
                    keyExchange: keyExchange))
        default: return .broken(.serverHandshake)
        }
        return nil
    }

    // MARK: ServerHello

    /// The random of a HelloRetryRequest (RFC 8446 section 4.1.3): SHA-256 of "HelloRetryRequest".
    private static let retryRandom: [UInt8] = [
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
        0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
    ]

    private mutating func serverHello(_ reader: inout ByteReader) -> Finding? {
        guard let hello = Self.parseHello(&reader, in: message.span) else { return .broken(.serverHandshake) }
        let isRetry = hello.random == Self.retryRandom
        let isFirst = if case .serverHello = state { true } else { false }
        switch (hello.selectedVersion, isRetry) {
        case (0x0304?, true) where isFirst:
            state = .serverHelloAfterRetry
            return .retry
        case (0x0304?, false): return .encrypted(isResumed: hello.hasPreSharedKey)
        case (nil, false) where isFirst:
            self.hello = hello
            state = .afterHello
            return nil
        default: return .broken(.serverHandshake)
        }
    }

    private struct Hello {
        var legacyVersion: UInt16
        var random: [UInt8]
        var sessionID: [UInt8]
        var cipherSuite: UInt16
        var selectedVersion: Int?
        var hasPreSharedKey = false
        var timestamps: [[UInt8]]?
    }

    /// RFC 8446 section 4.1.3; RFC 5246 section 7.4.1.3, where the extensions may be missing.
    private static func parseHello(_ reader: inout ByteReader, in bytes: Span<UInt8>) -> Hello? {
        guard let version = reader.number(bytes: 2, in: bytes), let random = reader.take(32),
            let session = reader.vector(lengthBytes: 1, in: bytes), session.count <= 32,
            let suite = reader.number(bytes: 2, in: bytes), reader.skip(1)
        else { return nil }
        var hello = Hello(
            legacyVersion: UInt16(version), random: random.copy(of: bytes), sessionID: session.range.copy(of: bytes),
            cipherSuite: UInt16(suite))
        if reader.isAtEnd { return hello }
        guard var extensions = reader.vector(lengthBytes: 2, in: bytes), reader.isAtEnd else { return nil }
        while !extensions.isAtEnd {
            guard let type = extensions.number(bytes: 2, in: bytes),
                var body = extensions.vector(lengthBytes: 2, in: bytes)
            else { return nil }
            switch type {
            case 43:
                guard hello.selectedVersion == nil, let selected = body.number(bytes: 2, in: bytes), body.isAtEnd
                else { return nil }
                hello.selectedVersion = selected
            case 41: hello.hasPreSharedKey = true
            case 18:
                guard hello.timestamps == nil else { return nil }
                hello.timestamps = timestamps(&body, in: bytes) ?? []
            default: break
            }
        }
        return hello
    }

    private static func timestamps(_ reader: inout ByteReader, in bytes: Span<UInt8>) -> [[UInt8]]? {
        guard var list = reader.vector(lengthBytes: 2, in: bytes), reader.isAtEnd else { return nil }
        var found: [[UInt8]] = []
        while !list.isAtEnd {
            guard let one = list.vector(lengthBytes: 2, in: bytes), one.count > 0 else { return nil }
            found.append(one.range.copy(of: bytes))
        }
        return found
    }

    // MARK: Certificates

    /// RFC 5246 section 7.4.2: a list of certificates, each with its length before it.
    private static func certificates(_ reader: inout ByteReader, in bytes: Span<UInt8>) -> [[UInt8]]? {
        guard var list = reader.vector(lengthBytes: 3, in: bytes), reader.isAtEnd else { return nil }
        var found: [[UInt8]] = []
        while !list.isAtEnd {
            guard found.count < certificateLimit, let one = list.vector(lengthBytes: 3, in: bytes), one.count > 0
            else { return nil }
            found.append(one.range.copy(of: bytes))
        }
        return found
    }

    /// RFC 6066 section 8; empty for a kind that is not OCSP.
    private static func status(_ reader: inout ByteReader, in bytes: Span<UInt8>) -> [UInt8]? {
        guard let kind = reader.number(bytes: 1, in: bytes) else { return nil }
        guard kind == 1 else { return [] }
        guard let response = reader.vector(lengthBytes: 3, in: bytes), reader.isAtEnd else { return nil }
        return response.range.copy(of: bytes)
    }
}
