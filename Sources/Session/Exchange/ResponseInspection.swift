import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTransport

/// Reads a response's body for a rule, between upstream and client: holds it back until it is judged, or passes it on
/// and keeps a copy where the rule only reports. `limits.inspected_body` bounds it, `limits.bodies` all of them.
final class ResponseInspection: BodySource, BodySink {
    enum Question {
        /// The judgement of the complete body.
        case judgement(BodyJudgement)
        /// Whether there is a body: the head demands that its first byte is refused.
        case emptiness(ResponseSerializationError)
        case length
    }

    /// A result before the response is complete.
    enum Finding {
        case refused(ResponseSerializationError)
        /// The body is too long to be judged, and may be.
        case unjudged
        case notKept
    }

    let question: Question
    /// The head of a held response; nil: it passes while it is inspected.
    private(set) var original: OwnedResponse?
    private let isEnforced: Bool
    private var limit: Int?
    private let inspectedBody: Int
    private let budget: BodyBudget
    private var reservation: BodyReservation
    private var source: any BodySource
    /// The body's sink during a pull.
    private var sink: (any BodySink)?
    /// The held body, or a copy of the forwarded one.
    private var kept: [UInt8] = []
    private var passing: PassingBytes?
    private var keepsCopy = false
    private var isOpen: Bool
    /// The source has ended, with these trailers.
    private var ending: TrailerSection?
    private var finding: Finding?
    /// Whether the finding was reported.
    private var isTold = false
    /// Bytes of the body taken from the source.
    private(set) var taken: UInt64 = 0
    /// Bytes inspected: bytes not taken come again.
    private var seen: UInt64 = 0
    private(set) var moved: UInt64 = 0
    var ticket: BodyWorkTicket?

    /// - Parameters:
    ///   - limit: bytes of the body; nil: any number.
    ///   - isEnforced: refuse wrong bodies.
    ///   - held: the head that waits for the verdict; nil: forwarded already.
    init(
        _ question: Question, of source: any BodySource, limit: Int?, inspectedBody: Int, isEnforced: Bool,
        held: OwnedResponse?, budget: BodyBudget
    ) {
        self.question = question
        self.source = source
        self.limit = limit
        self.inspectedBody = inspectedBody
        self.isEnforced = isEnforced
        original = held
        isOpen = held == nil
        self.budget = budget
        reservation = BodyReservation(of: budget, for: .response)
        if case .judgement = question { keepsCopy = isOpen }
    }

    deinit { ticket?.cancel() }

    func takeFinding() -> Finding? {
        defer { finding = nil }
        return finding
    }

    /// The complete body and its reservation; nil if it wasn't kept.
    var body: (bytes: [UInt8], BodyReservation)? { isTold ? nil : (kept, reservation) }

    func proceed(with source: any BodySource) { self.source = source }

    // MARK: Input

    func keep(readable: Bool) -> BodyMove { source.move(to: self, readable: readable) }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        guard isOpen else { return hold(piece) }
        let fresh = piece.extracting(droppingFirst: Int(seen - taken))
        if keepsCopy, !keep(fresh) {
            // A partial body isn't judged.
            isTold = true
            dropCopy()
        }
        look(at: fresh.byteCount)
        if case .refused? = finding, isEnforced { return 0 }
        let count = try sink?.write(piece) ?? 0
        taken += UInt64(count)
        moved += UInt64(count)
        return count
    }

    private func hold(_ piece: RawSpan) -> Int {
        guard finding == nil else { return 0 }
        guard keep(piece) else {
            finding = .notKept
            return 0
        }
        look(at: piece.byteCount)
        taken = seen
        return piece.byteCount
    }

    func end(_ trailers: TrailerSection) throws(StreamError) -> Bool {
        ending = trailers
        return try sink?.end(trailers) ?? true
    }

    func flush() throws(StreamError) -> Bool { try sink?.flush() ?? true }
    var carried: UInt64 { sink?.carried ?? 0 }

    /// - Returns: whether the budget had room.
    private func keep(_ piece: RawSpan) -> Bool {
        guard reservation.grow(to: kept.count + piece.byteCount) else { return false }
        kept.append(copying: piece)
        return true
    }

    /// Judges by the bytes inspected for the first time.
    private func look(at count: Int) {
        seen += UInt64(count)
        if let limit, seen > UInt64(limit) {
            // Reported once.
            self.limit = nil
            finding = .refused(.tooLong(limit: limit))
            return
        }
        switch question {
        case .length: break
        case .emptiness(let error):
            guard seen > 0, !isTold else { return }
            isTold = true
            finding = .refused(error)
        case .judgement(let judgement):
            guard seen > UInt64(inspectedBody), !isTold, keepsCopy || !isOpen else { return }
            isTold = true
            let isReported = keepsCopy
            if isReported { dropCopy() }
            switch judgement.tooLongToJudge {
            case .refuse(let error): finding = .refused(error)
            case .pass, .rewrite: if !isReported { finding = .unjudged }
            }
        }
    }

    private func dropCopy() {
        keepsCopy = false
        forget()
    }

    private func forget() {
        kept = []
        passing = nil
        reservation = BodyReservation(of: budget, for: .response)
    }

    // MARK: Output

    /// Passes the held bytes, and those that follow.
    func open() {
        isOpen = true
        passing = PassingBytes(kept)
        kept = []
    }

    /// Replaces the held body and head. False if the budget has no room.
    func replace(with body: [UInt8], after head: OwnedResponse) -> Bool {
        guard reservation.resize(to: body.count) else { return false }
        original = head
        kept = body
        return true
    }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        do throws(StreamError) {
            if let held = passing {
                let count = try held.write(to: sink)
                passing?.advance(by: count)
                moved += UInt64(count)
                guard passing?.isPassed == true else { return .blocked }
                forget()
            }
            if let ending { return try sink.end(ending) ? .ended : .blocked }
        } catch {
            return .sinkFailed(error)
        }
        self.sink = sink
        defer { self.sink = nil }
        return source.move(to: self, readable: readable)
    }
}
