/// Reads the clear part of a TLS server's answer to a ClientHello, without taking part in the handshake: up to TLS 1.2
/// the whole first flight with the certificates (RFC 5246 section 7.3), in TLS 1.3 the ServerHello.
///
/// It checks the form alone, stops at the first defect, and never holds more than ``limit``.
package struct ServerFlight: Sendable {
    package enum Progress: Sendable, Equatable {
        /// All was looked at; more must come.
        case incomplete
        /// A HelloRetryRequest (TLS 1.3) ends after this many bytes; the next ones follow the second ClientHello.
        case retry(Int)
        /// The server has chosen TLS 1.3: the following bytes are encrypted. `isResumed`: by a pre-shared key.
        case encrypted(isResumed: Bool)
        /// A full handshake of TLS 1.2 or older, with its first flight whole.
        case shown(ServerCertificates)
        /// An abbreviated handshake of TLS 1.2 or older: a session is resumed, and no certificate shown.
        case resumed(version: UInt16, sessionID: [UInt8])
        /// The server ends it with this alert, which ends after this many of the bytes given.
        case alert(UInt8, Int)
        case malformed(WireError)
    }

    /// Bytes of a server's flight at most, mainly for certificates and lists of acceptable authorities.
    package static let limit = 256 << 10
    static let messageLimit = 128 << 10
    /// Alerts that are warnings and change nothing (some servers send one about SNI).
    private static let warningLimit = 4

    private var records = RecordReader()
    private var messages = ServerMessages()
    private var warnings = 0
    private var total = 0
    private var end: Progress?

    package init() {}

    /// Looks at the bytes that follow those given before. After its end it stays ended.
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
            let found = messages.receive(bytes, from: &next, to: part.end)
            records.allowsOtherTypes = messages.isBetweenMessages
            guard let found else { continue }
            if case .retry = found, next < part.end || !records.isBetweenRecords {
                return malformed(.serverHandshake)
            }
            return progress(found, end: end)
        }
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
