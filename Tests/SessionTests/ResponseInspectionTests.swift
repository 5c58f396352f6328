import HTTPWire
import Serialization
import Testing
import Transport

@testable import Session

/// A client that takes so many bytes at a time, and nothing every other time.
private final class SlowSink: ByteSink {
    private(set) var taken: [UInt8] = []
    private let most: Int
    private var isWilling = false

    init(most: Int) { self.most = most }

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        isWilling.toggle()
        guard isWilling else { return .blocked }
        let part = min(most, count)
        taken += buffer.unread[..<part]
        buffer.consume(part)
        return part == count ? .done : .blocked
    }
}

/// Held as long as a test: an inspection doesn't hold its client.
private final class Clients {
    var all: [SlowSink] = []
}

@Suite struct ResponseInspectionTests {
    private let budget = BodyBudget(limit: 1 << 20)
    private let slabs: SlabPool
    private let clients = Clients()
    init() { slabs = SlabPool(budget: budget) }

    private static let head = Array("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".utf8)

    private func judgement(_ change: (inout ResponseRules) -> Void = { _ in }, limit: Int = 64) throws -> BodyJudgement {
        var rules = ResponseRules()
        rules.serializers = [.json]
        change(&rules)
        let head = Serialization.ResponseHead(status: 200, contentType: ContentType("application/json"), body: .unknownLength)
        guard case .hold(let judgement, _)? = ResponseJudge(rules)?.verdict(on: head, inspectedBody: limit) else {
            throw Unexpected(text: "not held")
        }
        return judgement
    }

    private func inspection(
        _ question: ResponseInspection.Question, to sink: SlowSink, limit: Int? = nil, inspectedBody: Int = 64,
        isForwarded: Bool, isEnforced: Bool = true, isChunked: Bool = false
    ) -> ResponseInspection {
        clients.all.append(sink)
        return ResponseInspection(
            question, kept: KeptResponse(headLength: Self.head.count, isChunked: isChunked), limit: limit,
            inspectedBody: inspectedBody, isForwarded: isForwarded, isEnforced: isEnforced, original: nil, client: sink,
            slabs: slabs)
    }

    /// Writes a message in pieces of `size`, each until it is taken, as a pipe does.
    /// - Returns: what was found, in its order.
    private func write(_ message: [UInt8], by size: Int, to inspection: ResponseInspection) -> [ResponseInspection.Finding] {
        var findings: [ResponseInspection.Finding] = []
        var buffer = ByteBuffer(slabs: slabs)
        var rest = message[...]
        var turns = 0
        while !rest.isEmpty || !buffer.isEmpty, turns < 100_000 {
            turns += 1
            rest.prefix(size).withUnsafeBytes { buffer.append(copying: $0) }
            rest = rest.dropFirst(size)
            _ = inspection.write(buffer.count, from: &buffer)
            if let finding = inspection.takeFinding() { findings.append(finding) }
        }
        let isEmpty = buffer.isEmpty
        #expect(isEmpty, "not taken")
        return findings
    }

    private func release(_ inspection: ResponseInspection) {
        for _ in 0..<100_000 { if case .done = inspection.release() { return } }
        Issue.record("never released")
    }

    private func chunked(_ body: [UInt8], by size: Int) -> [UInt8] {
        var chunks: [UInt8] = []
        var rest = body[...]
        while !rest.isEmpty {
            chunks += Array(String(min(size, rest.count), radix: 16).utf8) + [13, 10] + rest.prefix(size) + [13, 10]
            rest = rest.dropFirst(size)
        }
        return chunks + Array("0\r\n\r\n".utf8)
    }

    // MARK: Held back

    @Test(arguments: [1, 7, 1000])
    func whatIsHeldGoesOnByteForByte(most: Int) throws {
        let sink = SlowSink(most: most)
        let body = Array("[1, 2, 3]".utf8)
        let inspection = inspection(.judgement(try judgement()), to: sink, isForwarded: false)
        #expect(write(Self.head + body, by: 3, to: inspection).isEmpty)
        #expect(sink.taken.isEmpty && inspection.body?.bytes == body)
        inspection.open()
        #expect(inspection.isReleasing)
        release(inspection)
        #expect(!inspection.isReleasing && sink.taken == Self.head + body)
    }

    @Test func moreThanABufferIsReleasedInOrder() throws {
        let sink = SlowSink(most: 1021)
        let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let question = ResponseInspection.Question.judgement(try judgement(limit: 1 << 20))
        let inspection = inspection(question, to: sink, inspectedBody: 1 << 20, isForwarded: false)
        #expect(write(Self.head + body, by: 5000, to: inspection).isEmpty)
        inspection.open()
        release(inspection)
        #expect(sink.taken == Self.head + body)
    }

    @Test func anotherMessageGoesOnInItsPlace() throws {
        let sink = SlowSink(most: 5)
        let inspection = inspection(.judgement(try judgement()), to: sink, isForwarded: false)
        _ = write(Self.head + Array("[null]".utf8), by: 9, to: inspection)
        #expect(inspection.replace(with: Array("another".utf8)))
        inspection.open()
        release(inspection)
        #expect(sink.taken == Array("another".utf8))
    }

    @Test func aLongBodyIsRefusedOrGoesOnUnjudged() throws {
        let body = [UInt8](repeating: 0x20, count: 100)
        let refused = inspection(.judgement(try judgement()), to: SlowSink(most: 1), isForwarded: false)
        guard case .refused(let error)? = write(Self.head + body, by: 10, to: refused).first, case .tooLongToJudge = error.reason
        else { throw Unexpected(text: "not refused") }
        let sink = SlowSink(most: 9)
        let passed = inspection(.judgement(try judgement { $0.oversize = .pass }), to: sink, isForwarded: false)
        var findings = write(Self.head + body.prefix(70), by: 10, to: passed)
        guard findings.count == 1, case .unjudged = findings.removeFirst() else { throw Unexpected(text: "judged") }
        passed.open()
        #expect(write(body.suffix(30), by: 4, to: passed).isEmpty)
        #expect(sink.taken == Self.head + body)
    }

    /// What frames the body doesn't count as body: not for `max_body`, and not for what is held back.
    @Test(arguments: [true, false])
    func chunksDoNotCount(isForwarded: Bool) throws {
        let body = Array("[1,2,3,4]".utf8)
        for (limit, findings) in [(9, 0), (8, 1)] {
            let sink = SlowSink(most: 3)
            let inspection = inspection(
                .judgement(try judgement(limit: 9)), to: sink, limit: limit, inspectedBody: 9, isForwarded: isForwarded,
                isEnforced: false, isChunked: true)
            #expect(write(Self.head + chunked(body, by: 1), by: 4, to: inspection).count == findings)
            if limit == 9 { #expect(inspection.body?.bytes == body) }
            if isForwarded { #expect(sink.taken == Self.head + chunked(body, by: 1)) }
        }
    }

    /// The lines of chunks can be as long as the sender likes.
    @Test func theMemoryOfChunkLinesIsBounded() throws {
        let line = Array("1;x=\(String(repeating: "y", count: 4000))\r\n1\r\n".utf8)
        let sink = SlowSink(most: .max)
        let inspection = inspection(.judgement(try judgement()), to: sink, isForwarded: false, isChunked: true)
        var findings: [ResponseInspection.Finding] = []
        var sent = Self.head.count
        _ = write(Self.head, by: 1000, to: inspection)
        while findings.isEmpty, sent < 1 << 20 {
            findings = write(line, by: 5000, to: inspection)
            sent += line.count
        }
        #expect(findings.count == 1 && sent < 100_000)
    }

    // MARK: Copied

    /// A copy is what was passed on, and nothing twice, however little the client takes.
    @Test(arguments: [1, 7, 1000], [3, 64])
    func aCopyIsWhatWasPassedOn(most: Int, piece: Int) throws {
        let sink = SlowSink(most: most)
        let body = Array("[1, 2, 3, 4, 5, 6, 7, 8, 9]".utf8)
        let inspection = inspection(.judgement(try judgement()), to: sink, isForwarded: true, isEnforced: false)
        #expect(write(Self.head + body, by: piece, to: inspection).isEmpty)
        #expect(sink.taken == Self.head + body && inspection.body?.bytes == body)
    }

    /// One that is too long is told of, and dropped; a part of it must never be judged.
    @Test(arguments: [1, 50, 1000])
    func aCopyThatIsTooLongIsNoBody(most: Int) throws {
        let sink = SlowSink(most: most)
        let body = [UInt8](repeating: 0x20, count: 500)
        let inspection = inspection(.judgement(try judgement()), to: sink, isForwarded: true, isEnforced: false)
        #expect(write(Self.head + body, by: 40, to: inspection).count == 1)
        #expect(sink.taken == Self.head + body && inspection.body == nil)
    }

    // MARK: The budget

    /// Nothing of what is held back passes when there is no room for more of it.
    @Test(arguments: [ResponseRules.Oversize.refuse, .pass]) func aResponseThatCannotBeHeldIsTold(oversize: ResponseRules.Oversize) throws {
        budget.limit = 200_000
        let sink = SlowSink(most: 1000)
        do {
            let question = ResponseInspection.Question.judgement(try judgement({ $0.oversize = oversize }, limit: 1 << 20))
            let inspection = inspection(question, to: sink, inspectedBody: 1 << 20, isForwarded: false)
            var buffer = ByteBuffer(slabs: slabs)
            Self.head.withUnsafeBytes { buffer.append(copying: $0) }
            var finding: ResponseInspection.Finding?
            var written = 0
            while finding == nil, written < 1_000_000 {
                [UInt8](repeating: 0x20, count: 10_000).withUnsafeBytes { buffer.append(copying: $0) }
                written += 10_000
                _ = inspection.write(buffer.count, from: &buffer)
                finding = inspection.takeFinding()
            }
            guard case .notKept? = finding else { throw Unexpected(text: "\(String(describing: finding))") }
            #expect(written <= 200_000 && sink.taken.isEmpty && budget.inUse > 0 && budget.refused == [.response: 1])
        }
        #expect(budget.inUse == 0)
    }

    /// What is passed on is not kept back for that.
    @Test func aCopyWithoutRoomIsNoBody() throws {
        budget.limit = 40_000
        let sink = SlowSink(most: 700)
        let body = [UInt8](repeating: 0x20, count: 100_000)
        let question = ResponseInspection.Question.judgement(try judgement(limit: 1 << 20))
        let inspection = inspection(question, to: sink, inspectedBody: 1 << 20, isForwarded: true, isEnforced: false)
        #expect(write(Self.head + body, by: 1000, to: inspection).isEmpty)
        #expect(sink.taken == Self.head + body && inspection.body == nil)
        #expect(budget.inUse == 0 && budget.refused == [.response: 1])
    }

    @Test(arguments: [true, false]) func whatWasHeldIsGivenBackWhenItHasGoneOn(isChunked: Bool) throws {
        let sink = SlowSink(most: 30_000)
        let body = [UInt8](repeating: 0x31, count: 200_000)
        let question = ResponseInspection.Question.judgement(try judgement(limit: 1 << 20))
        let inspection = inspection(question, to: sink, inspectedBody: 1 << 20, isForwarded: false, isChunked: isChunked)
        let message = Self.head + (isChunked ? chunked(body, by: 9000) : body)
        #expect(write(message, by: 5000, to: inspection).isEmpty)
        let held = budget.inUse
        #expect(held >= message.count)
        // The decoded body is a second copy only if the message is chunked.
        #expect(inspection.body?.bytes == body && (held >= message.count + body.count) == isChunked)
        inspection.open()
        #expect(budget.inUse >= message.count && budget.inUse < message.count + (64 << 10))
        release(inspection)
        #expect(sink.taken == message && budget.inUse == 0)
    }

    @Test func aRewrittenMessageHasToFitToo() throws {
        let sink = SlowSink(most: 30_000)
        let inspection = inspection(.judgement(try judgement()), to: sink, isForwarded: false)
        _ = write(Self.head + Array("[null]".utf8), by: 9, to: inspection)
        budget.limit = 100_000
        #expect(!inspection.replace(with: [UInt8](repeating: 0x31, count: 200_000)))
        let message = [UInt8](repeating: 0x31, count: 60_000)
        #expect(inspection.replace(with: message) && budget.inUse == 65_536)
        inspection.open()
        release(inspection)
        #expect(sink.taken == message && budget.inUse == 0)
    }

    // MARK: Length and emptiness

    @Test func aLengthThatIsEnforcedStopsTheBody() {
        let sink = SlowSink(most: 4)
        let inspection = inspection(.length, to: sink, limit: 10, isForwarded: true)
        var buffer = ByteBuffer(slabs: slabs)
        (Self.head + [UInt8](repeating: 1, count: 11)).withUnsafeBytes { buffer.append(copying: $0) }
        guard case .blocked = inspection.write(buffer.count, from: &buffer), case .refused? = inspection.takeFinding() else {
            Issue.record("not stopped")
            return
        }
        #expect(sink.taken.isEmpty)
    }

    @Test func aReportedLengthIsToldOnceAndPasses() {
        let sink = SlowSink(most: 4)
        let body = [UInt8](repeating: 1, count: 50)
        let inspection = inspection(.length, to: sink, limit: 10, isForwarded: true, isEnforced: false)
        #expect(write(Self.head + body, by: 3, to: inspection).count == 1)
        #expect(sink.taken == Self.head + body)
    }

    @Test(arguments: [true, false])
    func theFirstByteOfABodyIsFound(isChunked: Bool) throws {
        let body = isChunked ? chunked([1, 2, 3], by: 1) : [1, 2, 3]
        let none = isChunked ? chunked([], by: 1) : []
        for isForwarded in [true, false] {
            let error = ResponseSerializationError.tooLong(limit: 0)
            func make() -> ResponseInspection {
                inspection(
                    .emptiness(error), to: SlowSink(most: 2), isForwarded: isForwarded, isEnforced: !isForwarded,
                    isChunked: isChunked)
            }
            #expect(write(Self.head + body, by: 1, to: make()).count == 1)
            #expect(write(Self.head + none, by: 1, to: make()).isEmpty)
        }
    }
}
