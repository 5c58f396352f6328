import HTTPWire
import Serialization
import Transport

/// Stands between an upstream and the client where a rule has to read a response's body.
///
/// It keeps what the client would get until that has been judged, and then passes it on with all that follows; or
/// passes it on at once and keeps a copy, where the rule only reports. What is kept is bounded by
/// `limits.inspected_body`; beyond it the judgement says what becomes of the response.
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
    private let client: any ByteSink
    private var limit: Int?
    private let inspectedBody: Int
    private var kept: KeptResponse
    private var stage: Stage
    private var finding: Finding?
    /// What is forwarded is kept too.
    private var keepsCopy: Bool
    /// Bytes of the message that were taken.
    private var taken = 0
    /// What the client has not taken of what was kept.
    private var backlog: ByteBuffer

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
        self.limit = limit
        self.inspectedBody = inspectedBody
        self.client = client
        stage = isForwarded ? .passing : .keeping
        if case .length = question { keepsCopy = false } else { keepsCopy = isForwarded }
        backlog = ByteBuffer(slabs: slabs)
    }

    /// Tells a finding once.
    func takeFinding() -> Finding? {
        defer { finding = nil }
        return finding
    }

    /// The whole body, without its chunks; nil if it was too long to be kept.
    var body: [UInt8]? { kept.bodyLength <= inspectedBody ? kept.body : nil }

    // MARK: Bytes

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        switch stage {
        case .keeping:
            take(UnsafeRawBufferPointer(rebasing: buffer.unread[..<count]))
            buffer.consume(count)
            return finding == nil ? .done : .blocked
        case .releasing:
            let outcome = release()
            guard case .done = outcome else { return outcome }
            return pass(count, from: &buffer)
        case .passing: return pass(count, from: &buffer)
        }
    }

    private func pass(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        if let limit, taken + count > kept.headLength + limit {
            finding = .refused(.tooLong(limit: limit))
            if isEnforced { return .blocked }
            // Told once.
            self.limit = nil
        }
        if keepsCopy, kept.bodyLength <= inspectedBody {
            kept.append(UnsafeRawBufferPointer(rebasing: buffer.unread[..<count]))
        }
        let before = buffer.count
        let outcome = client.write(count, from: &buffer)
        let written = before - buffer.count
        taken += written
        // What the client didn't take comes again.
        if keepsCopy { kept.removeLast(min(count - written, kept.bytes.count)) }
        if case .emptiness(let error) = question, keepsCopy, finding == nil, !kept.body.isEmpty {
            finding = .refused(error)
            keepsCopy = false
        }
        return outcome
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        kept.append(bytes)
        taken += bytes.count
        if let limit, kept.bodyLength > limit { return finding = .refused(.tooLong(limit: limit)) }
        switch question {
        case .length: break
        case .emptiness(let error): if kept.bodyLength > 0, !kept.body.isEmpty { finding = .refused(error) }
        case .judgement(let judgement):
            guard kept.bodyLength > inspectedBody else { return }
            switch judgement.tooLongToJudge {
            case .refuse(let error): finding = .refused(error)
            case .pass, .rewrite: finding = .unjudged
            }
        }
    }

    // MARK: Release

    /// What is kept may go on, and what follows.
    /// - Parameter message: goes on in its place.
    func open(with message: [UInt8]? = nil) {
        if let message { kept = KeptResponse(whole: message) }
        stage = .releasing(0)
    }

    /// Bytes are kept that may go on.
    var isReleasing: Bool { if case .releasing = stage { true } else { false } }

    /// Writes what is kept and may go on.
    func release() -> WriteOutcome {
        guard case .releasing(var next) = stage else { return .done }
        while true {
            if !backlog.isEmpty {
                let outcome = client.write(backlog.count, from: &backlog)
                guard case .done = outcome else {
                    stage = .releasing(next)
                    return outcome
                }
            }
            guard next < kept.bytes.count else { break }
            let count = min(SlabPool.slabSize / 2, kept.bytes.count - next)
            kept.bytes.withUnsafeBytes { backlog.append(copying: UnsafeRawBufferPointer(rebasing: $0[next..<(next + count)])) }
            next += count
        }
        backlog.releaseIfEmpty()
        kept.clear()
        stage = .passing
        return .done
    }
}
