import PinproxyHTTPWire
import PinproxyTransport
import Synchronization
import Testing

@testable import PinproxySession

/// The kept bytes draw on the budget until the last reader has them.
@Suite struct SharedFetchBudgetTests {
    /// A reader that takes its news when the test decides.
    private final class Reading: Sendable {
        private let news = Mutex<[SharedFetch.News]>([])
        var reader: SharedFetch.Reader { SharedFetch.Reader { [self] fresh in news.withLock { $0 += fresh } } }

        /// Takes at most `most` pieces.
        func take(_ most: Int = .max, from fetch: SharedFetch, as number: Int) -> [UInt8] {
            var bytes: [UInt8] = []
            for _ in 0..<most {
                guard let next = news.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { break }
                guard case .body(let piece) = next else { continue }
                bytes += piece.bytes
                fetch.took(piece.bytes.count, by: number)
            }
            return bytes
        }

        var wasLeftBehind: Bool { news.withLock { $0.contains { if case .leftBehind = $0 { true } else { false } } } }
    }

    private static let piece = [UInt8](repeating: 7, count: 10_000)
    private let budget = BodyBudget(limit: 100_000)
    private let fetch = SharedFetch(task: 1)
    private let wakes = Wakes()

    private final class Wakes: Sendable {
        let count = Atomic<Int>(0)
    }

    private func start() { fetch.run(wake: { [wakes] in wakes.count.add(1, ordering: .relaxed) }, cancel: {}) }

    /// - Returns: whether more was taken from the origin.
    private func pass() -> Bool {
        guard let piece = fetch.piece(of: Self.piece.span.bytes, from: budget) else { return false }
        fetch.tell(.body(piece))
        return true
    }

    @Test func aPieceIsInMemoryOnceAndUntilTheLastHasTakenIt() throws {
        start()
        let (first, second) = (Reading(), Reading())
        let one = try #require(fetch.join(first.reader))
        let two = try #require(fetch.join(second.reader))
        for _ in 0..<5 { #expect(pass()) }
        #expect(budget.inUse == 50_000)
        #expect(first.take(from: fetch, as: one).count == 50_000)
        // Late readers may want it.
        fetch.close()
        #expect(budget.inUse == 50_000)
        #expect(second.take(2, from: fetch, as: two).count == 20_000)
        #expect(budget.inUse == 30_000)
        _ = second.take(from: fetch, as: two)
        #expect(budget.inUse == 0)
    }

    @Test func whatIsKeptForLatecomersIsGivenBackAtTheEnd() throws {
        start()
        let reading = Reading()
        let number = try #require(fetch.join(reading.reader))
        for _ in 0..<3 { #expect(pass()) }
        _ = reading.take(from: fetch, as: number)
        #expect(budget.inUse == 30_000)
        fetch.tell(.ended(TrailerSection()))
        #expect(budget.inUse == 0)
    }

    /// The latecomers' bytes are dropped first, then the slow readers'. The fastest gets everything, a piece at a time.
    @Test func withoutRoomTheFastestContinuesAlone() throws {
        start()
        let (fast, slow) = (Reading(), Reading())
        let one = try #require(fetch.join(fast.reader))
        let two = try #require(fetch.join(slow.reader))
        var taken = 0
        for _ in 0..<10 {
            #expect(pass())
            taken += fast.take(from: fetch, as: one).count
        }
        #expect(budget.inUse == 100_000 && fetch.isJoinable)
        for turn in 0..<5 {
            #expect(pass(), "\(turn)")
            #expect(!fetch.isJoinable && fetch.join(Reading().reader) == nil && slow.wasLeftBehind)
            // No other piece is read until this one was taken.
            #expect(!pass())
            let wakes = wakes.count.load(ordering: .relaxed)
            taken += fast.take(from: fetch, as: one).count
            #expect(self.wakes.count.load(ordering: .relaxed) == wakes + 1)
        }
        #expect(taken == 150_000 && !fast.wasLeftBehind)
        #expect(slow.take(from: fetch, as: two).count == 100_000)
        #expect(budget.inUse == 0 && budget.refused == [.shared: 1])
    }

    /// The fastest is behind too when the budget is spent.
    @Test func theFastestIsNotLeftBehind() throws {
        start()
        let reading = Reading()
        let number = try #require(fetch.join(reading.reader))
        var passed = 0
        while pass() { passed += 1 }
        #expect(passed == 10 && budget.inUse == 100_000 && !reading.wasLeftBehind)
        #expect(reading.take(9, from: fetch, as: number).count == 90_000)
        #expect(!pass() && wakes.count.load(ordering: .relaxed) == 0)
        #expect(reading.take(from: fetch, as: number).count == 10_000)
        #expect(wakes.count.load(ordering: .relaxed) == 1 && budget.inUse == 0)
        #expect(pass() && !pass())
    }
}
