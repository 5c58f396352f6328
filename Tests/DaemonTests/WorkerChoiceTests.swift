import Testing

@testable import PinproxyDaemon

/// Which worker a client is handed to.
@Suite struct WorkerChoiceTests {
    private func picks(_ times: Int, _ loads: [(waiting: Int, clients: Int)]) -> [Int] {
        var choice = WorkerChoice()
        var loads = loads
        return (1...times).map { _ in
            let number = choice.pick(of: loads.count) { loads[$0] }
            loads[number].clients += 1
            return number
        }
    }

    @Test func equalsTakeTurns() {
        #expect(picks(7, [(0, 5), (0, 5), (0, 5)]) == [0, 1, 2, 0, 1, 2, 0])
        #expect(picks(2, [(0, 9)]) == [0, 0])
    }

    @Test func theOneWithFewerClientsIsNext() {
        #expect(picks(5, [(0, 4), (0, 2), (0, 4)]) == [1, 1, 2, 0, 1])
    }

    /// Each connection is closed before the next one arrives.
    @Test func tiesDoNotGoToTheFirst() {
        var choice = WorkerChoice()
        #expect((1...6).map { _ in choice.pick(of: 3) { _ in (0, 0) } } == [0, 1, 2, 0, 1, 2])
    }

    @Test func theOneThatTakesNothingIsPassedOver() {
        #expect(picks(4, [(1, 1), (0, 7), (0, 8)]) == [1, 2, 1, 2])
    }
}
