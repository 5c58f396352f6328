import EventLoop
import HTTPWire
import Session
import Transport

/// What the access log tells of one exchange, gathered on its way. Reused for the next one of the same
/// client connection, so that a line costs no allocation.
struct ExchangeRecord {
    var authority: Authority?
    /// The pattern of the entry that decided.
    var entry: String?
    var status = 0
    var bytesUp: UInt64 = 0
    var bytesDown: UInt64 = 0
    /// What went wrong, for people; nil when nothing did.
    var failure: String?
    /// RFC 9209's name of it.
    var errorType: String?
    var acceptsHTML = false
    /// What a verified tunnel's bytes flow by.
    var verdict: TunnelVerdict?

    private(set) var method = Method.other
    private(set) var otherMethod: [UInt8] = []
    /// The target's path without its query; empty for CONNECT.
    private(set) var path: [UInt8] = []
    private(set) var upstream: UpstreamConnection?
    private(set) var isReused = false
    private(set) var began = MonotonicTime(nanoseconds: 0)
    private(set) var sentAt: MonotonicTime?
    private(set) var firstByteAt: MonotonicTime?

    /// Longer paths are cut in the log.
    private static let longestPath = 512

    mutating func began(_ request: RequestHead, _ bytes: borrowing Span<UInt8>, at now: MonotonicTime) {
        clear(at: now)
        method = request.method
        if method == .other { Self.copy(bytes, request.methodRange.offsets, to: &otherMethod) }
        switch request.targetForm {
        case .origin: Self.copy(bytes, request.target.offsets, to: &path)
        case .absolute(let target): Self.copy(bytes, target.pathAndQuery.offsets, to: &path)
        case .authority, .asterisk: break
        }
        if let accept = request.first(.accept) { acceptsHTML = Accept.prefersHTML(bytes.extracting(accept.offsets)) }
    }

    /// A request that could not be read to its end of head.
    mutating func failedBeforeRequest(_ error: ProxyError, at now: MonotonicTime) {
        clear(at: now)
        refused(error)
    }

    /// A client that could not even ask.
    mutating func failedBeforeRequest(cause: String, at now: MonotonicTime) {
        clear(at: now)
        failure = cause
    }

    private mutating func clear(at now: MonotonicTime) {
        began = now
        sentAt = nil
        firstByteAt = nil
        upstream = nil
        isReused = false
        authority = nil
        entry = nil
        status = 0
        bytesUp = 0
        bytesDown = 0
        failure = nil
        errorType = nil
        acceptsHTML = false
        verdict = nil
        method = .other
        otherMethod.removeAll(keepingCapacity: true)
        path.removeAll(keepingCapacity: true)
    }

    private static func copy(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>, to field: inout [UInt8]) {
        for index in range.prefix(longestPath) {
            if bytes[index] == UInt8(ascii: "?") { return }
            field.append(bytes[index])
        }
    }

    mutating func connected(_ connection: UpstreamConnection) {
        upstream = connection
        isReused = connection.exchanges > 1
    }

    mutating func requestSent(at now: MonotonicTime) { sentAt = now }

    mutating func firstByte(at now: MonotonicTime) {
        if firstByteAt == nil { firstByteAt = now }
    }

    mutating func refused(_ error: ProxyError) {
        status = error.status
        failure = error.cause
        errorType = error.proxyStatusError
    }

    mutating func failed(_ cause: String) { failure = cause }

    /// Success was said, and these bytes of a handshake have passed.
    mutating func tunnelBegan(up: UInt64, down: UInt64) {
        status = 200
        bytesUp = up
        bytesDown = down
    }

    mutating func failed(_ refusal: TunnelRefusal) {
        failure = refusal.cause
        errorType = refusal.errorType
    }

    mutating func relayEnded(_ ending: Relay.Ending, up: UInt64, down: UInt64) {
        if status == 0 { status = 200 }
        bytesUp += up
        bytesDown += down
        switch ending {
        case .completed: break
        case .downstreamFailed(let error): failure = "client: \(error)"
        case .upstreamFailed(let error): failure = "origin: \(error)"
        case .timedOut: failure = "one side had ended and the other fell silent"
        case .cancelled: failure = "the proxy was stopped"
        }
    }

    /// Lends the method's name.
    func withMethodName(_ body: (Span<UInt8>) -> Void) {
        if method == .other { body(otherMethod.span) } else { body(method.text.utf8.span) }
    }

    /// Lets go of what keeps other objects alive, once the line is written.
    mutating func release() {
        upstream = nil
        verdict = nil
    }
}
