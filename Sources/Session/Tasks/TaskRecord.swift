package import PinproxyEventLoop
package import PinproxyHTTPWire
package import PinproxySecurity
package import PinproxyTransport

/// One task's record, for the access log, `pinproxy tasks` and others. Reused for the client's next task.
package struct TaskRecord: ~Copyable {
    package enum Kind: String, Sendable {
        case exchange, tunnel, upgrade
        /// CONNECT to an intercepted host, until the client's TLS handshake. Its requests are separate tasks.
        case interception
    }

    private static let longestPath = 512

    package private(set) var number: UInt64 = 0
    package var kind = Kind.exchange
    /// The client's HTTP version, other than HTTP/2; nil: its request couldn't be read.
    private var version: HTTPVersion?
    /// The client's stream of HTTP/2 that carries the request; nil: another version of HTTP.
    package private(set) var stream: Int32?
    /// The client's address and identity: the connection's, so it is kept from task to task.
    package var client: Endpoint?
    package var traits: ClientTraits?
    /// The group of the client's TLS inside CONNECT: the connection's too.
    package var clientGroup: String?
    package var authority: Authority?
    /// The pattern of the matched entry.
    package var entry: String?
    /// The index of its counters.
    package var entrySlot = 0
    package var status = 0
    package var bytesUp: UInt64 = 0
    package var bytesDown: UInt64 = 0
    /// Bytes of the bodies, if declared.
    package private(set) var bodyUp: UInt64?
    package private(set) var bodyDown: UInt64?
    /// The failure, if any, in human-readable form.
    package var failure: String?
    /// Its RFC 9209 name.
    package var errorType: String?
    /// The chain was refused because no pin matched.
    package private(set) var isPinFailure = false
    /// The refused client's explanation, where it says more than ``failure``.
    package private(set) var story: String?
    /// The contact with an origin that was refused for its certificates or a pin.
    package private(set) var contact: OriginContact?
    /// The verdict that admitted a verified tunnel, and how it was found.
    package var tunnelVerdict: Verdict? {
        get { heldVerdict?.verdict }
        set { heldVerdict = newValue.map(HeldVerdict.init) }
    }
    // Indirect: it is large, and few records have it.
    private var heldVerdict: HeldVerdict?
    private final class HeldVerdict {
        let verdict: Verdict
        init(_ verdict: Verdict) { self.verdict = verdict }
    }
    package var verification: String?
    package private(set) var method = Method.other
    private var otherMethod: [UInt8] = []
    private var isAnnounced = false
    package private(set) var path: [UInt8] = []
    package private(set) var began = MonotonicTime(nanoseconds: 0)
    package private(set) var ended: MonotonicTime?

    package struct Transaction {
        package fileprivate(set) var upstream: UpstreamConnection
        package let began: MonotonicTime
        package let isReused: Bool
        /// The stream of HTTP/2 that carries it; nil: another version of HTTP, or nothing was sent.
        package fileprivate(set) var stream: Int32?
        /// Why another try was due, whether or not one followed.
        package fileprivate(set) var retryReason: RetryRule.Reason?
        package fileprivate(set) var requestSent: MonotonicTime?
        package fileprivate(set) var firstByte: MonotonicTime?
        /// When the last byte was passed on, or the try was abandoned.
        package fileprivate(set) var ended: MonotonicTime?

        fileprivate mutating func answered(at now: MonotonicTime) {
            if firstByte == nil { firstByte = now }
        }
    }
    package struct Hop: Sendable {
        package let status: Int
        package let url: ShownText
    }
    package internal(set) var hops: [Hop] = []

    package internal(set) var sharedTask: UInt64?
    /// Nil: no cache was concerned.
    package internal(set) var cache: CacheResult?

    /// In flight, or the last.
    package private(set) var transaction: Transaction?
    /// When a response began that was interrupted and resumed.
    private var begunBefore: MonotonicTime?
    package var firstByte: MonotonicTime? { begunBefore ?? transaction?.firstByte }
    /// Earlier connections in order: failed tries, and those before a redirect, a challenge or a resumed download.
    package private(set) var retried: [Transaction] = []
    /// Their number; not all may be kept.
    package private(set) var retriedCount = 0
    private static let mostRetried = 32
    package var transactions: [Transaction] { transaction.map { retried + [$0] } ?? retried }

    package init() {}

    /// - Parameter stream: of HTTP/2; nil: another version.
    package mutating func began(
        _ request: borrowing RequestView, number: UInt64, at now: MonotonicTime, on stream: Int32? = nil
    ) {
        clear(number: number, at: now)
        self.stream = stream
        version = request.head.version
        method = request.head.method
        if method == .other { Self.copy(request.bytes, request.head.methodRange.offsets, to: &otherMethod) }
        copyPath(of: request)
        bodyUp = request.head.bodyLength.bytes ?? bodyUp
    }

    /// For a request that couldn't be read.
    package mutating func began(number: UInt64, at now: MonotonicTime, on stream: Int32? = nil) {
        clear(number: number, at: now)
        self.stream = stream
        version = nil
    }

    private mutating func clear(number: UInt64, at now: MonotonicTime) {
        self.number = number
        isAnnounced = false
        kind = .exchange
        began = now
        ended = nil
        release()
        authority = nil
        entry = nil
        entrySlot = 0
        status = 0
        bytesUp = 0
        bytesDown = 0
        bodyUp = nil
        bodyDown = nil
        // Rarely set.
        if failure != nil { failure = nil }
        if story != nil { story = nil }
        if errorType != nil { (errorType, contact) = (nil, nil) }
        isPinFailure = false
        if verification != nil { verification = nil }
        method = .other
        if !otherMethod.isEmpty { otherMethod = [] }
        path.removeAll(keepingCapacity: true)
    }

    private mutating func copyPath(of request: borrowing RequestView) {
        switch request.head.targetForm {
        case .origin: Self.copy(request.bytes, request.head.target.offsets, to: &path)
        case .absolute(let target): Self.copy(request.bytes, target.pathAndQuery.offsets, to: &path)
        case .authority, .asterisk: break
        }
    }

    /// The request goes to another URL than the client's.
    package mutating func moved(to request: borrowing RequestView) {
        forgetPath()
        copyPath(of: request)
    }

    /// The target is malformed: its apparent path may be the end of its user information.
    package mutating func forgetPath() { path.removeAll(keepingCapacity: true) }

    private static func copy(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>, to field: inout [UInt8]) {
        for index in range.prefix(longestPath) {
            if bytes[index] == UInt8(ascii: "?") { return }
            field.append(bytes[index])
        }
    }

    // MARK: Events

    package mutating func connected(_ connection: UpstreamConnection, at now: MonotonicTime) {
        if var transaction {
            transaction.ended = now
            retriedCount += 1
            if retried.count < Self.mostRetried { retried.append(transaction) }
        }
        transaction = Transaction(upstream: connection, began: now, isReused: connection.exchanges > 1)
    }

    package mutating func requestSent(at now: MonotonicTime) { transaction?.requestSent = now }

    /// The request went out on a stream of a shared connection.
    mutating func streamOpened(_ stream: Int32?) { transaction?.stream = stream }

    /// Another try follows the one in flight.
    mutating func triesAgain(_ reason: RetryRule.Reason) { transaction?.retryReason = reason }

    package mutating func firstByte(at now: MonotonicTime) {
        transaction?.answered(at: now)
    }

    /// The response was interrupted, and the remainder is requested.
    mutating func continued() {
        begunBefore = firstByte
        triesAgain(.brokenResponse)
    }

    mutating func began(_ response: ResponseTraits) {
        status = response.status
        bodyDown = response.bodyLength
    }

    /// The answer to a refused client.
    package struct Refusal {
        let status: Int
        package let cause: String
        let errorType: String
        let story: String?
        let isPinFailure: Bool
        let contact: OriginContact?

        /// - Parameters:
        ///   - story: the full explanation for the client.
        ///   - contact: of an origin with refused certificates.
        package init(
            status: Int, cause: String, errorType: String, story: String? = nil, isPinFailure: Bool = false,
            contact: OriginContact? = nil
        ) {
            self.story = story
            self.contact = contact
            self.isPinFailure = isPinFailure
            self.status = status
            self.cause = cause
            self.errorType = errorType
        }
    }

    package mutating func refused(_ refusal: Refusal) {
        status = refusal.status
        failure = refusal.cause
        story = refusal.story
        errorType = refusal.errorType
        isPinFailure = refusal.isPinFailure
        contact = refusal.contact
    }

    package mutating func failed(_ cause: String) { failure = cause }

    package mutating func failed(
        _ cause: String, errorType: String, isPinFailure: Bool = false, contact: OriginContact? = nil
    ) {
        failure = cause
        self.contact = contact
        self.errorType = errorType
        self.isPinFailure = isPinFailure
    }

    /// The tunnel is established, after these bytes of a handshake.
    package mutating func tunnelBegan(up: UInt64, down: UInt64) {
        status = 200
        bytesUp = up
        bytesDown = down
    }

    package mutating func relayEnded(_ ending: Relay.Ending, up: UInt64, down: UInt64) {
        if status == 0 { status = 200 }
        bytesUp += up
        bytesDown += down
        switch ending {
        case .completed: break
        case .downstreamFailed(let error): failure = "client: \(error)"
        case .upstreamFailed(let error): failure = "origin: \(error)"
        case .timedOut: failure = "one side had ended and the other fell silent"
        case .cancelled(let cause): failure = cause
        }
    }

    /// - Returns: true the first time.
    mutating func announce() -> Bool {
        defer { isAnnounced = true }
        return !isAnnounced
    }

    mutating func completed(at now: MonotonicTime) {
        ended = now
        transaction?.ended = now
    }

    /// Releases other objects.
    mutating func release() {
        transaction = nil
        begunBefore = nil
        if !retried.isEmpty { retried = [] }
        retriedCount = 0
        if !hops.isEmpty { hops = [] }
        sharedTask = nil
        cache = nil
        if heldVerdict != nil { heldVerdict = nil }
    }

    // MARK: For observers

    /// The ALPN name of the client's protocol (RFC 7301 section 6), or `http/1.0`; nil: its request couldn't be read.
    package var clientProtocol: String? {
        if stream != nil { return HTTPProtocol.http2.rawValue }
        return version.map { $0 == .http10 ? "http/1.0" : HTTPProtocol.http1.rawValue }
    }

    /// The ALPN name of the origin's protocol; nil: it wasn't reached, or a tunnel carries an unknown protocol.
    package var upstreamProtocol: String? { kind == .tunnel ? nil : transaction?.upstream.applicationProtocol }

    package var upstream: UpstreamConnection? { transaction?.upstream }
    /// Whether its connection, if any, had served before.
    package var isReused: Bool? { transaction?.isReused }
    /// The pin that the origin's chain matched, as written, whichever task made the connection.
    package var matchedPin: String? {
        if let heldVerdict { return heldVerdict.verdict.matchedPin?.origin }
        return transaction?.upstream.matchedPin
    }

    package var methodName: String {
        method == .other ? String(decoding: otherMethod, as: UTF8.self) : method.text
    }

    package func withMethodName(_ body: (Span<UInt8>) -> Void) {
        if method == .other { body(otherMethod.span) } else { body(method.text.utf8.span) }
    }
}
