import HTTPWire
import Serialization
import Transport

/// Stands between an upstream and the client where a rule has to read a response's body.
///
/// It keeps what the client would get until that has been judged, and then passes it on with all that follows; or
/// passes it on at once and keeps a copy, where the rule only reports. What is kept is bounded by
/// `limits.inspected_body`; beyond it the judgement says what becomes of the response. All inspections together are
/// bounded by `limits.bodies`.
final class ResponseInspection: ByteSink {
    /// What is asked of the body.
    enum Question {
        /// Its judgement, once it is whole.
        case judgement(BodyJudgement)
        /// Whether there is one at all: its first byte is refused, for what the head says.
        case emptiness(ResponseSerializationError)
        /// Its length alone.
        case length

        /// Another body may go on in the place of the one that is judged.
        var rewrites: Bool { if case .judgement(let judgement) = self { judgement.rewrites } else { false } }
    }

    /// What is found before the response is whole.
    enum Finding {
        case refused(ResponseSerializationError)
        /// The body is too long to be judged, and may be.
        case unjudged
        /// The budget for bodies is spent.
        case notKept
    }

    private enum Stage {
        case keeping
        /// What was kept is being written, from that byte on.
        case releasing(Int)
        case passing
    }

    let question: Question
    /// The client gets nothing until the question is answered.
    let wasHeld: Bool
    private let isEnforced: Bool
    /// The head as it was received, where the body may be rewritten.
    let original: OwnedResponse?
    // unowned: it is the downstream, which keeps the exchange, which keeps the inspection.
    private unowned let client: any ByteSink
    private var limit: Int?
    private let inspectedBody: Int
    private var kept: KeptResponse
    private let budget: BodyBudget
    /// Of what is kept.
    private var reservation: BodyReservation
    private var stage: Stage
    private var finding: Finding?
    /// The question has its answer already.
    private var isTold = false
    /// What is forwarded is kept too.
    private var keepsCopy: Bool
    /// Bytes of the message that were taken.
    private var taken = 0
    /// Bytes of what was kept that the client took.
    private(set) var released = 0
    /// Bytes of the message that were looked at. Those that were not taken come again.
    private var seen = 0
    /// Of these, bytes of the body without its chunks.
    private var bodyLength = 0
    private var chunks: ChunkedDecoder?
    private let headLength: Int
    /// What the client has not taken of what was kept.
    private var backlog: ByteBuffer
    /// Of the judgement that is waited for.
    var ticket: BodyWorkTicket?

    /// - Parameters:
    ///   - limit: bytes of the body; nil: any number.
    ///   - isForwarded: the client gets the response while it is looked at.
    ///   - isEnforced: what is found wrong doesn't go on.
    init(
        _ question: Question, kept: KeptResponse, limit: Int?, inspectedBody: Int, isForwarded: Bool, isEnforced: Bool,
        original: OwnedResponse?, client: any ByteSink, slabs: SlabPool
    ) {
        wasHeld = !isForwarded
        self.isEnforced = isEnforced
        self.original = original
        self.question = question
        self.kept = kept
        headLength = kept.headLength
        chunks = kept.isChunked ? ChunkedDecoder() : nil
        self.limit = limit
        self.inspectedBody = inspectedBody
        self.client = client
        budget = slabs.budget
        reservation = BodyReservation(of: budget, for: .response)
        stage = isForwarded ? .passing : .keeping
        if case .judgement = question { keepsCopy = isForwarded } else { keepsCopy = false }
        backlog = ByteBuffer(slabs: slabs)
    }

    deinit { ticket?.cancel() }

    /// Tells a finding once.
    func takeFinding() -> Finding? {
        defer { finding = nil }
        return finding
    }

    /// The whole body, without its chunks, to be judged, and what it holds of the budget; nil if it wasn't kept.
    var body: (bytes: [UInt8], BodyReservation)? {
        isTold || isTooLongToKeep ? nil : (kept.body, reservation)
    }

    /// The lines of chunks take memory too, as much as the body again.
    private var isTooLongToKeep: Bool {
        bodyLength > inspectedBody || kept.transferredLength > 2 * inspectedBody + Self.framingAllowance
    }

    /// Bytes of the chunks' lines and of trailers that the smallest limit allows.
    private static let framingAllowance = 64 << 10

    // MARK: Bytes

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        switch stage {
        case .keeping:
            let bytes = UnsafeRawBufferPointer(rebasing: buffer.unread[..<count])
            guard keep(bytes) else {
                finding = .notKept
                return .blocked
            }
            look(at: bytes)
            buffer.consume(count)
            taken += count
            return finding == nil ? .done : .blocked
        case .releasing:
            let outcome = release()
            guard case .done = outcome else { return outcome }
            return pass(count, from: &buffer)
        case .passing: return pass(count, from: &buffer)
        }
    }

    private func pass(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        let fresh = UnsafeRawBufferPointer(rebasing: buffer.unread[..<count].dropFirst(seen - taken))
        if keepsCopy, !keep(fresh) {
            // A part of it is no body.
            isTold = true
            dropCopy()
        }
        look(at: fresh)
        if case .refused? = finding, isEnforced { return .blocked }
        let before = buffer.count
        let outcome = client.write(count, from: &buffer)
        taken += before - buffer.count
        return outcome
    }

    /// - Returns: whether the budget has room for them.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // It is judged without its chunks, which takes a copy.
        let copies = kept.isChunked ? 2 : 1
        guard reservation.grow(to: copies * (kept.count + bytes.count)) else { return false }
        kept.append(bytes)
        return true
    }

    /// Looks at bytes of the message that come for the first time.
    private func look(at fresh: UnsafeRawBufferPointer) {
        let body = UnsafeRawBufferPointer(rebasing: fresh.dropFirst(headLength - min(headLength, seen)))
        seen += fresh.count
        bodyLength += chunks.takeBody(of: body)
        if let limit, bodyLength > limit {
            // Told once.
            self.limit = nil
            return finding = .refused(.tooLong(limit: limit))
        }
        switch question {
        case .length: break
        case .emptiness(let error):
            guard bodyLength > 0, !isTold else { return }
            isTold = true
            finding = .refused(error)
        case .judgement(let judgement):
            guard isTooLongToKeep, !isTold, keepsCopy || isKeeping else { return }
            isTold = true
            let isReported = keepsCopy
            if isReported { dropCopy() }
            switch judgement.tooLongToJudge {
            case .refuse(let error): finding = .refused(error)
            case .pass, .rewrite: if !isReported { finding = .unjudged }
            }
        }
    }

    private var isKeeping: Bool { if case .keeping = stage { true } else { false } }

    private func dropCopy() {
        keepsCopy = false
        forget()
    }

    private func forget() {
        kept.clear()
        reservation = BodyReservation(of: budget, for: .response)
    }

    // MARK: Release

    /// What is kept may go on, and what follows.
    func open() {
        // The copy isn't needed any more. It can't fail: nothing grows.
        _ = reservation.resize(to: kept.count)
        stage = .releasing(0)
    }

    /// Puts another message in the place of what is kept.
    /// - Returns: false if the budget has no room for it.
    func replace(with message: [UInt8]) -> Bool {
        guard reservation.resize(to: message.count) else { return false }
        kept = KeptResponse(whole: message)
        return true
    }

    /// Bytes are kept that may go on.
    var isReleasing: Bool { if case .releasing = stage { true } else { false } }

    /// Writes what is kept and may go on.
    func release() -> WriteOutcome {
        guard case .releasing(var next) = stage else { return .done }
        while true {
            if !backlog.isEmpty {
                let before = backlog.count
                defer { released += before - backlog.count }
                let outcome = client.write(backlog.count, from: &backlog)
                guard case .done = outcome else {
                    stage = .releasing(next)
                    return outcome
                }
            }
            guard next < kept.count else { break }
            backlog.compact()
            kept.withPiece(from: next, most: SlabPool.slabSize / 2) {
                backlog.append(copying: $0)
                next += $0.count
            }
        }
        backlog.releaseIfEmpty()
        forget()
        stage = .passing
        return .done
    }
}

extension ChunkedDecoder? {
    /// Bytes of the body itself in the next bytes of a message.
    fileprivate mutating func takeBody(of bytes: UnsafeRawBufferPointer) -> Int {
        guard case .some(var decoder) = self else { return bytes.count }
        var copy = Array(bytes)
        var span = copy.mutableSpan
        defer { self = decoder }
        switch decoder.decode(inPlace: &span) {
        case .passed(let length, _, _), .malformed(_, let length, _): return length
        }
    }
}
