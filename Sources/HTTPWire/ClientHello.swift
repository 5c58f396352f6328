/// The first message of a TLS client, read without taking part in the handshake.
package struct ClientHello: Sendable, Equatable {
    /// The client random: 32 bytes that go into every signature and key of this handshake.
    package let random: [UInt8]
    /// The name in the server_name extension (RFC 6066 section 3), unchanged; nil without that extension.
    package let serverName: String?
    /// The protocols of the ALPN extension (RFC 7301), in the client's order.
    package let applicationProtocols: [String]
    package let sessions: SessionOffer
    /// Whether the client sent an encrypted_client_hello extension; browsers also send it as GREASE.
    package let hasEncryptedClientHello: Bool
    /// The bytes of the records that carry it; bytes after them are another message.
    package let length: Int

    /// The result of `peek`.
    package enum Peek: Sendable, Equatable {
        case incomplete
        case notTLS
        case complete(ClientHello)
        case malformed(WireError)
    }

    /// The longest ClientHello, in bytes. Post-quantum key shares make some of 2 KiB.
    static let limit = 1 << 16
    /// The most records that it may span. The limit keeps parsing again at each arrival cheap.
    static let recordLimit = 64

    /// Looks at all bytes that have arrived on a connection, from the first.
    package static func peek(_ bytes: Span<UInt8>) -> Peek {
        var hello: [UInt8] = []
        var position = 0
        for _ in 0..<recordLimit {
            // TLSPlaintext: type, version, length (RFC 8446 section 5.1).
            if position < bytes.count, bytes[position] != 22 { return position == 0 ? .notTLS : malformed(position) }
            if position + 1 < bytes.count, bytes[position + 1] != 3 {
                return position == 0 ? .notTLS : malformed(position + 1)
            }
            guard position + 5 <= bytes.count else { return .incomplete }
            let length = Int(bytes[position + 3]) << 8 | Int(bytes[position + 4])
            guard 1...(1 << 14) ~= length else { return malformed(position + 3) }
            let start = position + 5
            let end = min(start + length, bytes.count)
            for offset in start..<end { hello.append(bytes[offset]) }
            position = start + length

            // Handshake: type, length (section 4).
            if let type = hello.first, type != 1 { return malformed(start) }
            if hello.count >= 4 {
                let length = Int(hello[1]) << 16 | Int(hello[2]) << 8 | Int(hello[3])
                guard length <= limit else { return malformed(start) }
                // It ends with a record: a client may send nothing else in it before the server answers.
                guard hello.count <= 4 + length, hello.count < 4 + length || position <= bytes.count else {
                    return malformed(start)
                }
                if hello.count == 4 + length {
                    var reader = ByteReader(lower: 4, upper: 4 + length)
                    return parse(&reader, in: hello.span, length: position).map(Peek.complete) ?? malformed(start)
                }
            }
            if position > bytes.count { return .incomplete }
        }
        return malformed(position)
    }

    /// Looks for the second ClientHello, after a HelloRetryRequest. A change_cipher_spec and rejected early data may
    /// precede it (RFC 8446 sections 4.2.10 and D.4), and count in its ``length``.
    /// - Parameter bytes: everything that the client sent after its first.
    package static func peekSecond(_ bytes: Span<UInt8>) -> Peek {
        var start = 0
        while start < bytes.count, bytes[start] == 20 || bytes[start] == 23 {
            guard start + 5 <= bytes.count else { return .incomplete }
            let length = Int(bytes[start + 3]) << 8 | Int(bytes[start + 4])
            guard bytes[start + 1] == 3, 1...((1 << 14) + 256) ~= length else { return malformed(start) }
            start += 5 + length
        }
        guard start < bytes.count else { return .incomplete }
        switch peek(bytes.extracting(start..<bytes.count)) {
        case .incomplete: return .incomplete
        case .notTLS: return malformed(start)
        case .malformed(let error): return malformed(start + error.offset)
        case .complete(let hello): return .complete(hello.following(start))
        }
    }

    private func following(_ count: Int) -> ClientHello {
        ClientHello(
            random: random, serverName: serverName, applicationProtocols: applicationProtocols, sessions: sessions,
            hasEncryptedClientHello: hasEncryptedClientHello, length: count + length)
    }

    private static func malformed(_ offset: Int) -> Peek { .malformed(WireError(.clientHello, at: offset)) }

    /// RFC 8446 section 4.1.2.
    private static func parse(
        _ reader: inout ByteReader, in bytes: Span<UInt8>, length: Int
    ) -> ClientHello? {
        guard reader.skip(2), let random = reader.take(32), let session = reader.vector(lengthBytes: 1, in: bytes),
            session.count <= 32,
            let suites = reader.vector(lengthBytes: 2, in: bytes), suites.count >= 2, suites.count % 2 == 0,
            let compression = reader.vector(lengthBytes: 1, in: bytes), compression.count >= 1
        else { return nil }

        var serverName: String?
        var protocols: [String] = []
        var sessions = SessionOffer(sessionID: session.range.copy(of: bytes))
        var hasEncryptedClientHello = false
        var seenServerName = false
        var seenProtocols = false
        if !reader.isAtEnd {
            guard var extensions = reader.vector(lengthBytes: 2, in: bytes), reader.isAtEnd else { return nil }
            while !extensions.isAtEnd {
                guard let type = extensions.number(bytes: 2, in: bytes),
                    var body = extensions.vector(lengthBytes: 2, in: bytes)
                else { return nil }
                switch type {
                case 0:
                    guard !seenServerName, let name = parseServerName(&body, in: bytes) else { return nil }
                    seenServerName = true
                    serverName = name
                case 16:
                    guard !seenProtocols, let names = parseProtocols(&body, in: bytes) else { return nil }
                    seenProtocols = true
                    protocols = names
                // Without a ticket in it, session_ticket asks for one (RFC 5077 section 3.2).
                case 35:
                    sessions.hasTicket = body.count > 0
                case 41:
                    sessions.hasPreSharedKey = true
                case 0xFE0D:
                    hasEncryptedClientHello = true
                default:
                    break
                }
            }
        }
        return ClientHello(
            random: random.copy(of: bytes), serverName: serverName, applicationProtocols: protocols, sessions: sessions,
            hasEncryptedClientHello: hasEncryptedClientHello, length: length)
    }

    private static func parseServerName(_ body: inout ByteReader, in bytes: Span<UInt8>) -> String? {
        guard var list = body.vector(lengthBytes: 2, in: bytes), body.isAtEnd,
            list.number(bytes: 1, in: bytes) == 0,
            let name = list.vector(lengthBytes: 2, in: bytes), list.isAtEnd, name.count > 0
        else { return nil }
        for offset in name.range.offsets where !(0x21...0x7E ~= bytes[offset]) { return nil }
        return name.range.text(in: bytes)
    }

    private static func parseProtocols(_ body: inout ByteReader, in bytes: Span<UInt8>) -> [String]? {
        guard var list = body.vector(lengthBytes: 2, in: bytes), body.isAtEnd, !list.isAtEnd else { return nil }
        var names: [String] = []
        while !list.isAtEnd {
            guard let name = list.vector(lengthBytes: 1, in: bytes), name.count > 0 else { return nil }
            names.append(name.range.text(in: bytes))
        }
        return names
    }
}
