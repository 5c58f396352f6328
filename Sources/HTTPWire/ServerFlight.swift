/// Reads what a TLS server answers to a ClientHello, as far as it is sent in the clear, without taking
/// part in the handshake.
///
/// Up to TLS 1.2 that is the whole first flight, with the certificates (RFC 5246 section 7.3). In TLS
/// 1.3 it is the ServerHello alone: all after it is encrypted (RFC 8446 section 2).
///
/// Fed in pieces, however the bytes arrive. Nothing is judged here but the form; it stops at the first
/// thing that breaks it, and never holds more than ``limit``.
package struct ServerFlight: Sendable {
    package enum Progress: Sendable, Equatable {
        /// All was looked at; more must come.
        case incomplete
        /// A HelloRetryRequest (TLS 1.3) ends after this many of the bytes given. The client answers it
        /// with a second ClientHello; what follows here is to be given after that.
        case retry(Int)
        /// The server has chosen TLS 1.3: what follows can't be read. `isResumed`: by a pre-shared key.
        case encrypted(isResumed: Bool)
        /// A full handshake of TLS 1.2 or older, with its first flight whole.
        case shown(ServerCertificates)
        /// An abbreviated handshake of TLS 1.2 or older: a session is resumed, and no certificate shown.
        case resumed(version: UInt16, sessionID: [UInt8])
        /// The server ends it with this alert, which ends after this many of the bytes given.
        case alert(UInt8, Int)
        case malformed(WireError)
    }

    /// Bytes from a server before it comes to the point, at most; certificates and lists of acceptable
    /// authorities take the most of it.
    package static let limit = 256 << 10
    /// The longest handshake message.
    static let messageLimit = 128 << 10
    /// Alerts that are warnings and change nothing (some servers send one about SNI).
    private static let warningLimit = 4

    private var records = RecordReader()
    private var messages = ServerMessages()
    private var warnings = 0
    private var total = 0
    private var end: Progress?

    package init() {}

    /// Looks at the bytes that follow those given before. What has ended stays so.
    package mutating func receive(_ bytes: Span<UInt8>) -> Progress {
        if let end { return end }
        let progress = read(bytes)
        switch progress {
        case .incomplete, .retry: break
        default: end = progress
        }
        return progress
    }

    private mutating func read(_ bytes: Span<UInt8>) -> Progress {
        var offset = 0
        while offset < bytes.count {
            guard total < Self.limit else { return malformed(.serverHandshakeTooLong) }
            let before = offset
            let piece = records.next(in: bytes, from: &offset)
            total += offset - before
            switch piece {
            case .none: return .incomplete
            case .malformed: return malformed(total <= 5 ? .serverHandshakeNotTLS : .serverHandshake)
            case .handshake(let part):
                if let found = read(handshake: part, in: bytes, end: offset) { return found }
            case .changeCipherSpec:
                if let found = messages.changeCipherSpec() { return progress(found, end: offset) }
            case .alert(let level, let description):
                // close_notify is a warning by its level.
                guard level == 1, description != 0 else { return .alert(description, offset) }
                warnings += 1
                if warnings > Self.warningLimit { return malformed(.serverHandshake) }
            }
        }
        return .incomplete
    }

    private mutating func read(handshake part: ByteRange, in bytes: Span<UInt8>, end: Int) -> Progress? {
        var next = part.start
        while next < part.end {
            guard let found = messages.receive(bytes, from: &next, to: part.end) else { continue }
            if case .retry = found, next < part.end || !records.isBetweenRecords {
                return malformed(.serverHandshake)
            }
            return progress(found, end: end)
        }
        records.allowsOtherTypes = messages.isBetweenMessages
        return nil
    }

    private func progress(_ found: ServerMessages.Finding, end: Int) -> Progress {
        switch found {
        case .retry: .retry(end)
        case .encrypted(let isResumed): .encrypted(isResumed: isResumed)
        case .shown(let certificates): .shown(certificates)
        case .resumed(let version, let sessionID): .resumed(version: version, sessionID: sessionID)
        case .broken(let code): malformed(code)
        }
    }

    private func malformed(_ code: WireError.Code) -> Progress { .malformed(WireError(code, at: total)) }
}

/// What a server of TLS 1.2 or older shows of itself in a full handshake.
package struct ServerCertificates: Sendable, Equatable {
    /// As on the wire: 0x0303 is TLS 1.2.
    package let version: UInt16
    /// Of its ServerHello: 32 bytes.
    package let random: [UInt8]
    /// As IANA numbers them; it says how the keys are exchanged.
    package let cipherSuite: UInt16
    /// Each as DER, the server's own first; at least one, parsed by nobody.
    package let certificates: [[UInt8]]
    /// The OCSP response that is stapled (RFC 6066 section 8).
    package let ocspResponse: [UInt8]?
    /// Those of the signed_certificate_timestamp extension, each as encoded there (RFC 6962 section
    /// 3.3.1). A list that can't be read is as good as none.
    package let timestamps: [[UInt8]]
    /// The body of ServerKeyExchange, as it came; nil where there is none (see ``ServerKeyExchange``).
    package let keyExchange: [UInt8]?

    package init(
        version: UInt16, random: [UInt8], cipherSuite: UInt16, certificates: [[UInt8]], ocspResponse: [UInt8]?,
        timestamps: [[UInt8]], keyExchange: [UInt8]?
    ) {
        self.version = version
        self.random = random
        self.cipherSuite = cipherSuite
        self.certificates = certificates
        self.ocspResponse = ocspResponse
        self.timestamps = timestamps
        self.keyExchange = keyExchange
    }
}

/// Takes the records of the clear part of a handshake apart (RFC 8446 section 5.1).
struct RecordReader: Sendable {
    enum Piece {
        /// A part of a handshake record, as a range of the bytes given.
        case handshake(ByteRange)
        case changeCipherSpec
        case alert(level: UInt8, description: UInt8)
        case malformed
    }

    /// False within a handshake message, where no other record may stand.
    var allowsOtherTypes = true
    private var type: UInt8 = 0
    private var header = 0
    private var length = 0
    private var left = 0
    private var alertLevel: UInt8 = 0

    var isBetweenRecords: Bool { header == 0 }

    /// The next piece; nil when the bytes are used up before there is one.
    mutating func next(in bytes: Span<UInt8>, from offset: inout Int) -> Piece? {
        while offset < bytes.count {
            if header < 5 {
                guard readHeader(bytes[offset]) else {
                    offset += 1
                    return .malformed
                }
                offset += 1
                continue
            }
            guard type == 22 else {
                let byte = bytes[offset]
                offset += 1
                left -= 1
                if left == 0 { header = 0 }
                if type == 20 { return byte == 1 ? .changeCipherSpec : .malformed }
                if left == 1 { alertLevel = byte } else { return .alert(level: alertLevel, description: byte) }
                continue
            }
            let count = min(left, bytes.count - offset)
            defer { offset += count }
            left -= count
            if left == 0 { header = 0 }
            return .handshake(ByteRange(offset, offset + count))
        }
        return nil
    }

    /// Type, version, length; false if that can't be.
    private mutating func readHeader(_ byte: UInt8) -> Bool {
        defer { header += 1 }
        switch header {
        case 0:
            type = byte
            return byte == 22 || (allowsOtherTypes && (byte == 20 || byte == 21))
        case 1: return byte == 3
        case 2: return byte <= 4
        case 3:
            length = Int(byte) << 8
            return true
        default:
            length |= Int(byte)
            left = length
            switch type {
            case 20: return length == 1
            case 21: return length == 2
            default: return 1...(1 << 14) ~= length
            }
        }
    }
}
