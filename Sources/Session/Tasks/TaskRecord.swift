package import EventLoop
package import HTTPWire
package import Security
package import Transport

/// One task's record, for the access log, `pinproxy tasks` and others. Reused for the client's next task.
package struct TaskRecord: ~Copyable {
    package enum Kind: String, Sendable {
        case exchange, tunnel, upgrade
        /// CONNECT to a host whose requests are tasks of their own. Its end is the client's TLS handshake.
        case interception
    }

    /// Bytes of the target that are kept.
    private static let longestPath = 512

    /// Unique for the life of the process.
    package private(set) var number: UInt64 = 0
    package var kind = Kind.exchange
    /// Where its connection comes from, and who it is as far as that is known: of the connection, and kept from task to task.
    package var client: Endpoint?
    package var traits: ClientTraits?
    package var authority: Authority?
    /// The pattern of the entry that decided.
    package var entry: String?
    /// Where its counts go.
    package var entrySlot = 0
    package var status = 0
    package var bytesUp: UInt64 = 0
    package var bytesDown: UInt64 = 0
    /// Bytes of the bodies, where the heads say.
    package private(set) var bodyUp: UInt64?
    package private(set) var bodyDown: UInt64?
    /// What went wrong, for people; nil when nothing did.
    package var failure: String?
    /// RFC 9209's name of it.
    package var errorType: String?
    /// The chain met none of the pins, and that is why it was refused.
    package private(set) var isPinFailure = false
    /// What a client that was refused is told, as far as that is more than ``failure``.
    package private(set) var story: String?
    /// What a verified tunnel's bytes flow by, and how that was found out.
    package var tunnelVerdict: Verdict? {
        get { heldVerdict?.verdict }
        set { heldVerdict = newValue.map(HeldVerdict.init) }
    }
    // Apart: it is large, every client has a record, and few have this.
    private var heldVerdict: HeldVerdict?
    private final class HeldVerdict {
        let verdict: Verdict
        init(_ verdict: Verdict) { self.verdict = verdict }
    }
    package var verification: String?

    package private(set) var method = Method.other
    private var otherMethod: [UInt8] = []
    private var isAnnounced = false
    /// The target's path without its query; empty for CONNECT.
    package private(set) var path: [UInt8] = []
    package private(set) var began = MonotonicTime(nanoseconds: 0)
    package private(set) var ended: MonotonicTime?

    /// The request's way over one upstream connection, as URLSessionTaskTransactionMetrics has it.
    package struct Transaction {
        package fileprivate(set) var upstream: UpstreamConnection
        package let began: MonotonicTime
        package let isReused: Bool
        package fileprivate(set) var requestSent: MonotonicTime?
        package fileprivate(set) var firstByte: MonotonicTime?
        /// When the last byte had been passed on, or the try was given up.
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

    /// Under way, or the last.
    package private(set) var transaction: Transaction?
    /// Of the response that is passed on, if that broke off and others go on with it.
    private var begunBefore: MonotonicTime?
    package var firstByte: MonotonicTime? { begunBefore ?? transaction?.firstByte }
    /// Earlier connections in order: failed tries, and those left by a redirect, a challenge or a resumed download.
    package private(set) var retried: [Transaction] = []
    /// How many those were, of which not all may be kept.
    package private(set) var retriedCount = 0
    private static let mostRetried = 32
    package var transactions: [Transaction] { transaction.map { retried + [$0] } ?? retried }

    package init() {}

    /// A task begins with a request.
    package mutating func began(_ request: borrowing RequestView, number: UInt64, at now: MonotonicTime) {
        clear(number: number, at: now)
        method = request.head.method
        if method == .other { Self.copy(request.bytes, request.head.methodRange.offsets, to: &otherMethod) }
        copyPath(of: request)
        bodyUp = request.head.bodyLength.bytes ?? bodyUp
    }

    package mutating func began(number: UInt64, at now: MonotonicTime) {
        clear(number: number, at: now)
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
        // Hardly a task has any of them.
        if failure != nil { failure = nil }
        if story != nil { story = nil }
        if errorType != nil { errorType = nil }
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

    /// The request goes to another URL than the one that it was made for.
    package mutating func moved(to request: borrowing RequestView) {
        forgetPath()
        copyPath(of: request)
    }

    /// The target can't be understood: what reads as its path may be the end of its user information.
    package mutating func forgetPath() { path.removeAll(keepingCapacity: true) }

    private static func copy(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>, to field: inout [UInt8]) {
        for index in range.prefix(longestPath) {
            if bytes[index] == UInt8(ascii: "?") { return }
            field.append(bytes[index])
        }
    }

    // MARK: What happens to it

    package mutating func connected(_ connection: UpstreamConnection, at now: MonotonicTime) {
        if var transaction {
            transaction.ended = now
            retriedCount += 1
            if retried.count < Self.mostRetried { retried.append(transaction) }
        }
        transaction = Transaction(upstream: connection, began: now, isReused: connection.exchanges > 1)
    }

    package mutating func requestSent(at now: MonotonicTime) { transaction?.requestSent = now }

    package mutating func firstByte(at now: MonotonicTime) {
        transaction?.answered(at: now)
    }

    /// The response under way broke off, and its rest is asked for.
    mutating func goesOn() { begunBefore = firstByte }

    mutating func began(_ response: ResponseTraits) {
        status = response.status
        bodyDown = response.bodyLength
    }

    /// What a refused client is sent.
    package struct Refusal {
        let status: Int
        package let cause: String
        let errorType: String
        let story: String?
        let isPinFailure: Bool

        /// - Parameter story: the complete explanation for the client.
        package init(status: Int, cause: String, errorType: String, story: String? = nil, isPinFailure: Bool = false) {
            self.story = story
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
    }

    package mutating func failed(_ cause: String) { failure = cause }

    package mutating func failed(_ cause: String, errorType: String, isPinFailure: Bool = false) {
        failure = cause
        self.errorType = errorType
        self.isPinFailure = isPinFailure
    }

    /// Success was said, and these bytes of a handshake have passed.
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

    /// - Returns: whether nobody had been told.
    mutating func announce() -> Bool {
        defer { isAnnounced = true }
        return !isAnnounced
    }

    mutating func completed(at now: MonotonicTime) {
        ended = now
        transaction?.ended = now
    }

    /// Lets go of what keeps other objects alive.
    mutating func release() {
        transaction = nil
        begunBefore = nil
        if !retried.isEmpty { retried = [] }
        retriedCount = 0
        if !hops.isEmpty { hops = [] }
        sharedTask = nil
        if heldVerdict != nil { heldVerdict = nil }
    }

    // MARK: For those who tell

    package var upstream: UpstreamConnection? { transaction?.upstream }
    /// Whether the connection that it came over, if it did over one, had served before.
    package var isReused: Bool? { transaction?.isReused }
    /// The pin that the origin's chain met, as its owner wrote it, whether the connection was made for this task or another.
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
