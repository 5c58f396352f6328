import Dispatch
import PinproxyEventLoop
import PinproxySerialization
import PinproxyTransport
import Synchronization
import Testing

@testable import PinproxySession

@Suite(.timeLimit(.minutes(1))) struct ThreadExecutorTests {
    /// Work that waits for permission to continue, and records its name.
    private struct Held: BodyWork {
        static var kind: UInt8 { 200 }
        var needsDecoder: Bool { false }
        var longestBody: Int { 0 }
        let name: String
        var gate: DispatchSemaphore?
        var began: DispatchSemaphore?

        init(_ name: String, gate: DispatchSemaphore? = nil, began: DispatchSemaphore? = nil) {
            (self.name, self.gate, self.began) = (name, gate, began)
        }

        func outcome(on body: [UInt8]) -> String {
            began?.signal()
            gate?.wait()
            return name
        }

        func write(to message: inout MessageWriter) {}
        init(from message: inout MessageReader) throws(MalformedMessage) { throw MalformedMessage() }
        static func write(_ outcome: String, to message: inout MessageWriter) -> [UInt8] { [] }
        func readOutcome(from message: inout MessageReader, _ result: [UInt8]) throws(MalformedMessage) -> String {
            throw MalformedMessage()
        }
    }

    private final class Answers: Sendable {
        private let all = Mutex<[String]>([])
        private let came = DispatchSemaphore(value: 0)

        func add(_ result: Result<String, BodyWorkFailure>) {
            let word = if case .success(let name) = result { name } else { "\(result)" }
            all.withLock { $0.append(word) }
            came.signal()
        }

        /// The first words, in order.
        func first(_ count: Int) -> [String] {
            for _ in 0..<count { came.wait() }
            return all.withLock { $0 }
        }
    }

    private let gate = DispatchSemaphore(value: 0)
    private let began = DispatchSemaphore(value: 0)
    private let answers = Answers()

    @discardableResult
    private func perform(
        _ work: Held, _ size: Int = 0, of host: String = "a", by executor: ThreadExecutor
    ) -> BodyWorkTicket {
        executor.perform(work, on: Array(repeating: 0, count: size), of: host) { answers.add($0) }
    }

    @Test func hostsTakeTurns() {
        let executor = ThreadExecutor(threads: 1)
        perform(Held("first", gate: gate, began: began), by: executor)
        began.wait()
        for name in ["a1", "a2", "a3"] { perform(Held(name), of: "a", by: executor) }
        for name in ["b1", "b2"] { perform(Held(name), of: "b", by: executor) }
        gate.signal()
        #expect(answers.first(6) == ["first", "a1", "b1", "a2", "b2", "a3"])
    }

    @Test func moreThanTheCapacityIsRefused() {
        let executor = ThreadExecutor(threads: 1, capacity: 1 << 20)
        perform(Held("first", gate: gate, began: began), 600_000, by: executor)
        began.wait()
        perform(Held("too much"), 500_000, by: executor)
        #expect(answers.first(1) == ["\(Result<String, BodyWorkFailure>.failure(.noRoom))"])
        perform(Held("fits"), 400_000, by: executor)
        gate.signal()
        #expect(answers.first(2).suffix(2) == ["first", "fits"])
        // A single body may be larger.
        perform(Held("large"), 2 << 20, by: executor)
        #expect(answers.first(1).last == "large")
    }

    @Test func cancelledWorkIsNotBegun() {
        let executor = ThreadExecutor(threads: 1)
        perform(Held("first", gate: gate, began: began), by: executor)
        began.wait()
        let ticket = perform(Held("cancelled"), by: executor)
        perform(Held("last"), by: executor)
        ticket.cancel()
        ticket.cancel()
        gate.signal()
        #expect(answers.first(2) == ["first", "last"])
    }

    @Test func severalThreadsWorkAtOneTime() {
        let executor = ThreadExecutor(threads: 2)
        for name in ["x", "y"] { perform(Held(name, gate: gate, began: began), by: executor) }
        began.wait()
        began.wait()
        gate.signal()
        gate.signal()
        #expect(Set(answers.first(2)) == ["x", "y"])
    }

    @Test func theAnswerComesOnTheLoop() throws {
        let bench = try Workbench()
        var said: [String] = []
        let executor = ThreadExecutor(threads: 1)
        let reservation = BodyReservation(of: BodyBudget(), for: .response)
        _ = executor.perform(Held("x"), on: [], of: "a", holding: reservation, loop: bench.loop) {
            [stop = bench.stop] outcome in
            if case .success(let name) = outcome { said.append(name) }
            stop.isWanted = true
        }
        bench.run()
        #expect(said == ["x"])
    }

    /// A body in progress holds memory until it is done, and a waiting one until it is cancelled.
    @Test func aBodyHoldsItsReservationAsLongAsItIsHere() throws {
        let bench = try Workbench()
        let budget = BodyBudget()
        let executor = ThreadExecutor(threads: 1)
        var answered = 0
        func perform(_ work: Held) throws -> BodyWorkTicket {
            let reservation = try #require(BodyReservation(of: budget, for: .response, bytes: 100))
            return executor.perform(work, on: [1], of: "a", holding: reservation, loop: bench.loop) {
                [stop = bench.stop] _ in
                answered += 1
                stop.isWanted = true
            }
        }
        let first = try perform(Held("first", gate: gate, began: began))
        began.wait()
        let waiting = try perform(Held("waiting"))
        #expect(budget.inUse == 200)
        waiting.cancel()
        #expect(budget.inUse == 100)
        first.cancel()
        #expect(budget.inUse == 100, "it has begun")
        gate.signal()
        bench.run()
        // The thread releases it before it begins the next.
        self.perform(Held("next"), by: executor)
        #expect(answers.first(1) == ["next"])
        #expect(budget.inUse == 0 && answered == 1)
    }
}
