import PinproxyHTTPWire
import PinproxyTransport
import Testing

@testable import PinproxySession

/// Takes bytes up to a limit.
final class BoundedSink: BodySink {
    var room: Int
    private(set) var bytes: [UInt8] = []
    private(set) var sizes: [Int] = []
    private(set) var isEnded = false

    init(room: Int = .max) { self.room = room }

    var carried: UInt64 { UInt64(bytes.count) }

    func write(_ piece: RawSpan) -> Int {
        let count = min(room, piece.byteCount)
        room -= count
        bytes += [UInt8](copying: piece.extracting(first: count))
        sizes.append(count)
        return count
    }

    func end(_ trailers: TrailerSection) -> Bool {
        isEnded = true
        return true
    }
}

/// Supplies the bytes that the test puts into it.
final class PieceSource: BodySource {
    private var bytes: [UInt8] = []
    var isEnded = false
    private(set) var moved: UInt64 = 0

    init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    func put(_ more: [UInt8]) { bytes += more }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        do throws(StreamError) {
            if !bytes.isEmpty {
                // A copy in hand, since the span borrows from it.
                let bytes = bytes
                let count = try sink.write(bytes.span.bytes)
                moved += UInt64(count)
                self.bytes.removeFirst(count)
                if !self.bytes.isEmpty { return .blocked }
            }
            guard isEnded else { return .waiting }
            return try sink.end(TrailerSection()) ? .ended : .blocked
        } catch {
            return .sinkFailed(error)
        }
    }
}

extension BodyMove {
    var name: String { String("\(self)".prefix { $0 != "(" }) }
}

@Suite struct ReplayedBodyTests {
    private static let body = (0..<27).map { UInt8($0) }

    /// The first sink gets some of the body, the second one all of it.
    @Test(arguments: 0...27) func whatWasSentCanBeSentAgain(cut: Int) {
        let source = PieceSource(Array(Self.body[..<cut]))
        let replayed = ReplayedBody(source, limit: 27, from: BodyBudget())
        let (first, second) = (BoundedSink(), BoundedSink())
        #expect(replayed.move(to: first, readable: false).name == "waiting")
        #expect(first.bytes == Array(Self.body[..<cut]) && replayed.canRewind)
        replayed.rewind()
        source.put(Array(Self.body[cut...]))
        source.isEnded = true
        #expect(replayed.move(to: second, readable: false).name == "ended")
        #expect(second.bytes == Self.body && second.isEnded && replayed.moved == 27)
        replayed.rewind()
        let third = BoundedSink(room: 13)
        #expect(replayed.move(to: third, readable: false).name == "blocked")
        third.room = .max
        #expect(replayed.move(to: third, readable: false).name == "ended")
        #expect(third.bytes == Self.body && third.isEnded)
    }

    /// A body within the limit is kept. With one byte more it isn't, and still arrives.
    @Test(arguments: [0, 1]) func aBodyIsKeptUpToTheLimit(beyond: Int) {
        let source = PieceSource()
        let budget = BodyBudget()
        let replayed = ReplayedBody(source, limit: 27 - beyond, from: budget)
        let sink = BoundedSink()
        for byte in Self.body {
            source.put([byte])
            source.isEnded = byte == 26
            _ = replayed.move(to: sink, readable: false)
        }
        #expect(sink.bytes == Self.body && sink.isEnded)
        #expect(replayed.canRewind == (beyond == 0) && (budget.inUse > 0) == (beyond == 0))
        replayed.forget()
        #expect(!replayed.canRewind && budget.inUse == 0)
    }

    /// Once the budget is spent, a body isn't kept, and still arrives.
    @Test(arguments: [1 << 20, 200_000, 0]) func whatIsKeptIsDrawnFromTheBudget(limit: Int) {
        let budget = BodyBudget(limit: limit)
        let body = [UInt8](repeating: 7, count: 700_000)
        do {
            let source = PieceSource()
            let replayed = ReplayedBody(source, limit: 700_000, from: budget)
            let sink = BoundedSink()
            for start in stride(from: 0, to: body.count, by: 50_000) {
                source.put(Array(body[start..<start + 50_000]))
                _ = replayed.move(to: sink, readable: false)
                #expect(budget.inUse <= limit)
            }
            #expect(sink.bytes == body && replayed.canRewind == (limit == 1 << 20))
            #expect(budget.refused == (replayed.canRewind ? [:] : [.replay: 1]))
        }
        #expect(budget.inUse == 0)
    }

    /// The answer arrived while the body was being sent again.
    @Test func whatIsForgottenInTheMiddleStillArrives() {
        let source = PieceSource(Self.body)
        source.isEnded = true
        let replayed = ReplayedBody(source, limit: 27, from: BodyBudget())
        _ = replayed.move(to: BoundedSink(), readable: false)
        replayed.rewind()
        let sink = BoundedSink(room: 5)
        _ = replayed.move(to: sink, readable: false)
        replayed.forget()
        #expect(!replayed.canRewind)
        sink.room = .max
        #expect(replayed.move(to: sink, readable: false).name == "ended")
        #expect(sink.bytes == Self.body && sink.isEnded)
    }
}
