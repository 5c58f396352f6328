import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTransport
import Testing

@testable import PinproxySession

/// A client that takes a few bytes at a time, and nothing every other time.
private final class SlowSink: BodySink {
    private(set) var taken: [UInt8] = []
    private(set) var isEnded = false
    private let most: Int
    private var isWilling = false

    init(most: Int) { self.most = most }

    var carried: UInt64 { UInt64(taken.count) }

    func write(_ piece: RawSpan) -> Int {
        isWilling.toggle()
        guard isWilling else { return 0 }
        let part = min(most, piece.byteCount)
        taken += [UInt8](copying: piece.extracting(first: part))
        return part
    }

    func end(_ trailers: TrailerSection) -> Bool {
        isEnded = true
        return true
    }
}

@Suite struct ResponseInspectionTests {
    private let budget = BodyBudget(limit: 1 << 20)
    private let source = PieceSource()

    private func judgement(_ change: (inout ResponseRules) -> Void = { _ in }, limit: Int = 64) throws -> BodyJudgement
    {
        var rules = ResponseRules()
        rules.serializers = [.json]
        change(&rules)
        let head = PinproxySerialization.ResponseHead(
            status: 200, contentType: ContentType("application/json"), body: .unknownLength)
        guard case .hold(let judgement, _)? = ResponseJudge(rules)?.verdict(on: head, inspectedBody: limit) else {
            throw Unexpected(text: "not held")
        }
        return judgement
    }

    private func inspection(
        _ question: ResponseInspection.Question, limit: Int? = nil, inspectedBody: Int = 64, isHeld: Bool = true,
        isEnforced: Bool = true
    ) throws -> ResponseInspection {
        ResponseInspection(
            question, of: source, limit: limit, inspectedBody: inspectedBody, isEnforced: isEnforced,
            held: isHeld ? try OwnedResponse(Array("HTTP/1.1 200 OK\r\n\r\n".utf8)) : nil, budget: budget)
    }

    /// Feeds a body to the inspection in pieces of `size`. It moves on to `sink` unless it is held back.
    /// - Returns: the findings, in order.
    private func give(
        _ body: some Collection<UInt8>, by size: Int, to inspection: ResponseInspection, _ sink: SlowSink? = nil
    ) -> [ResponseInspection.Finding] {
        var findings: [ResponseInspection.Finding] = []
        var rest = Array(body)[...]
        for _ in 0..<100_000 {
            source.put(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
            let outcome = sink.map { inspection.move(to: $0, readable: false) } ?? inspection.keep(readable: false)
            if let finding = inspection.takeFinding() { findings.append(finding) }
            if rest.isEmpty, outcome.name == "waiting" { return findings }
        }
        Issue.record("not taken")
        return findings
    }

    private func release(_ inspection: ResponseInspection, to sink: SlowSink) {
        source.isEnded = true
        for _ in 0..<100_000 { if case .ended = inspection.move(to: sink, readable: false) { return } }
        Issue.record("never released")
    }

    // MARK: Held back

    @Test(arguments: [1, 7, 1000]) func whatIsHeldContinuesByteForByte(most: Int) throws {
        let sink = SlowSink(most: most)
        let body = Array("[1, 2, 3]".utf8)
        let inspection = try inspection(.judgement(try judgement()))
        #expect(give(body, by: 3, to: inspection).isEmpty)
        #expect(inspection.body?.bytes == body && inspection.taken == 9 && inspection.moved == 0)
        inspection.open()
        release(inspection, to: sink)
        #expect(sink.taken == body && sink.isEnded && inspection.moved == 9)
    }

    @Test func moreThanABufferIsReleasedInOrder() throws {
        let sink = SlowSink(most: 1021)
        let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let inspection = try inspection(.judgement(try judgement(limit: 1 << 20)), inspectedBody: 1 << 20)
        #expect(give(body, by: 5000, to: inspection).isEmpty)
        inspection.open()
        release(inspection, to: sink)
        #expect(sink.taken == body)
    }

    @Test func anotherBodyContinuesInItsPlace() throws {
        let sink = SlowSink(most: 5)
        let inspection = try inspection(.judgement(try judgement()))
        _ = give(Array("[null]".utf8), by: 9, to: inspection)
        let head = try #require(inspection.original?.withBody(of: 7))
        #expect(inspection.replace(with: Array("another".utf8), after: head))
        inspection.open()
        release(inspection, to: sink)
        #expect(sink.taken == Array("another".utf8))
        #expect(inspection.original?.view.head.bodyLength == .known(7))
    }

    @Test func aLongBodyIsRefusedOrContinuesUnjudged() throws {
        let body = [UInt8](repeating: 0x20, count: 100)
        let refused = try inspection(.judgement(try judgement()))
        source.put(body)
        _ = refused.keep(readable: false)
        guard case .refused(let error)? = refused.takeFinding(), case .tooLongToJudge = error.reason
        else { throw Unexpected(text: "not refused") }
        let sink = SlowSink(most: 9)
        let passed = try inspection(.judgement(try judgement { $0.oversize = .pass }))
        source.put(Array(body.prefix(70)))
        _ = passed.keep(readable: false)
        guard case .unjudged? = passed.takeFinding() else { throw Unexpected(text: "judged") }
        passed.open()
        #expect(give(body.suffix(30), by: 4, to: passed, sink).isEmpty)
        #expect(sink.taken == body)
    }

    // MARK: Copied

    /// A copy is exactly what was passed on, with nothing twice, however little the client takes.
    @Test(arguments: [1, 7, 1000], [3, 64]) func aCopyIsWhatWasPassedOn(most: Int, piece: Int) throws {
        let sink = SlowSink(most: most)
        let body = Array("[1, 2, 3, 4, 5, 6, 7, 8, 9]".utf8)
        let inspection = try inspection(.judgement(try judgement()), isHeld: false, isEnforced: false)
        #expect(give(body, by: piece, to: inspection, sink).isEmpty)
        #expect(sink.taken == body && inspection.body?.bytes == body)
    }

    /// A copy that is too long is reported and dropped; a part of it must never be judged.
    @Test(arguments: [1, 50, 1000]) func aCopyThatIsTooLongIsNoBody(most: Int) throws {
        let sink = SlowSink(most: most)
        let body = [UInt8](repeating: 0x20, count: 500)
        let inspection = try inspection(.judgement(try judgement()), isHeld: false, isEnforced: false)
        #expect(give(body, by: 40, to: inspection, sink).count == 1)
        #expect(sink.taken == body && inspection.body == nil)
    }

    // MARK: The budget

    /// Nothing held back is passed on when there is no space for more of it.
    @Test(arguments: [ResponseRules.Oversize.refuse, .pass]) func aResponseThatCannotBeHeldIsTold(
        oversize: ResponseRules.Oversize
    ) throws {
        budget.limit = 200_000
        do {
            let question = ResponseInspection.Question.judgement(
                try judgement({ $0.oversize = oversize }, limit: 1 << 20))
            let inspection = try inspection(question, inspectedBody: 1 << 20)
            var finding: ResponseInspection.Finding?
            var written = 0
            while finding == nil, written < 1_000_000 {
                source.put([UInt8](repeating: 0x20, count: 10_000))
                written += 10_000
                _ = inspection.keep(readable: false)
                finding = inspection.takeFinding()
            }
            guard case .notKept? = finding else { throw Unexpected(text: "\(String(describing: finding))") }
            #expect(written <= 210_000 && budget.inUse > 0 && budget.refused == [.response: 1])
        }
        #expect(budget.inUse == 0)
    }

    /// A body that is passed on isn't held up by the budget.
    @Test func aCopyWithoutRoomIsNoBody() throws {
        budget.limit = 40_000
        let sink = SlowSink(most: 700)
        let body = [UInt8](repeating: 0x20, count: 100_000)
        let inspection = try inspection(
            .judgement(try judgement(limit: 1 << 20)), inspectedBody: 1 << 20, isHeld: false, isEnforced: false)
        #expect(give(body, by: 1000, to: inspection, sink).isEmpty)
        #expect(sink.taken == body && inspection.body == nil)
        #expect(budget.inUse == 0 && budget.refused == [.response: 1])
    }

    @Test func whatWasHeldIsGivenBackWhenItHasGoneOn() throws {
        let sink = SlowSink(most: 30_000)
        let body = [UInt8](repeating: 0x31, count: 200_000)
        let inspection = try inspection(.judgement(try judgement(limit: 1 << 20)), inspectedBody: 1 << 20)
        #expect(give(body, by: 5000, to: inspection).isEmpty)
        #expect(inspection.body?.bytes == body && budget.inUse >= body.count && budget.inUse < body.count + (64 << 10))
        inspection.open()
        release(inspection, to: sink)
        #expect(sink.taken == body && budget.inUse == 0)
    }

    @Test func aRewrittenBodyHasToFitToo() throws {
        let sink = SlowSink(most: 30_000)
        let inspection = try inspection(.judgement(try judgement()))
        _ = give(Array("[null]".utf8), by: 9, to: inspection)
        budget.limit = 100_000
        let head = try #require(inspection.original)
        #expect(!inspection.replace(with: [UInt8](repeating: 0x31, count: 200_000), after: head))
        let body = [UInt8](repeating: 0x31, count: 60_000)
        #expect(inspection.replace(with: body, after: head) && budget.inUse == 65_536)
        inspection.open()
        release(inspection, to: sink)
        #expect(sink.taken == body && budget.inUse == 0)
    }

    // MARK: Length and emptiness

    @Test func aLengthThatIsEnforcedStopsTheBody() throws {
        let sink = SlowSink(most: 4)
        let inspection = try inspection(.length, limit: 10, isHeld: false)
        source.put([UInt8](repeating: 1, count: 11))
        guard case .blocked = inspection.move(to: sink, readable: false), case .refused? = inspection.takeFinding()
        else {
            Issue.record("not stopped")
            return
        }
        #expect(sink.taken.isEmpty)
    }

    @Test func aReportedLengthIsToldOnceAndPasses() throws {
        let sink = SlowSink(most: 4)
        let body = [UInt8](repeating: 1, count: 50)
        let inspection = try inspection(.length, limit: 10, isHeld: false, isEnforced: false)
        #expect(give(body, by: 3, to: inspection, sink).count == 1)
        #expect(sink.taken == body)
    }

    @Test func theFirstByteOfABodyIsFound() throws {
        let error = ResponseSerializationError.tooLong(limit: 0)
        for isHeld in [true, false] {
            let inspection = try inspection(.emptiness(error), isHeld: isHeld, isEnforced: isHeld)
            let sink = SlowSink(most: 2)
            #expect(give([], by: 1, to: inspection, isHeld ? nil : sink).isEmpty)
            source.put([1])
            _ = isHeld ? inspection.keep(readable: false) : inspection.move(to: sink, readable: false)
            #expect(inspection.takeFinding() != nil)
            _ = source.move(to: BoundedSink(), readable: false)
        }
    }

    /// A broken download continues over another connection: nothing is requested twice.
    @Test(arguments: [true, false]) func anotherSourceGivesTheRest(isHeld: Bool) throws {
        let sink = SlowSink(most: 1000)
        let inspection = try inspection(.judgement(try judgement()), limit: 9, isHeld: isHeld, isEnforced: isHeld)
        #expect(give(Array("[1, 2,".utf8), by: 6, to: inspection, isHeld ? nil : sink).isEmpty)
        let rest = PieceSource(Array(" 3]".utf8))
        rest.isEnded = true
        inspection.proceed(with: rest)
        for _ in 0..<9 { _ = isHeld ? inspection.keep(readable: false) : inspection.move(to: sink, readable: false) }
        #expect(inspection.takeFinding() == nil && inspection.body?.bytes == Array("[1, 2, 3]".utf8))
        if !isHeld { #expect(sink.taken == Array("[1, 2, 3]".utf8) && sink.isEnded) }
    }
}
