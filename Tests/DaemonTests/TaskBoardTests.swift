import Dispatch
import PinproxyClients
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySession
import Testing

@testable import PinproxyDaemon

/// Queries to real workers; one of them can be blocked.
@Suite(.timeLimit(.minutes(5))) struct TaskBoardTests {
    /// Runs a loop until `ask` has been answered.
    private func answer<Answer>(
        _ ask: (TaskBoard, @escaping (Answer) -> Void) -> Void, of bench: WorkerBench,
        within patience: Duration = WorkerInquiry.patience
    ) throws -> Answer {
        let loop = try EventLoop()
        let board = TaskBoard(loop: loop, workers: bench.workers, sessionCount: 3, patience: patience)
        var answer: Answer?
        ask(board) {
            #expect(answer == nil, "answered twice")
            answer = $0
            loop.stop()
        }
        loop.run()
        return try #require(answer)
    }

    private func describe(_ finding: TaskBoard.Finding) -> String {
        switch finding {
        case .found(let task): "task \(task.id)"
        case .none: "none"
        case .silent(let worker): "silent: \(worker)"
        }
    }

    @Test(arguments: 0...1) func aWorkerThatDoesNotAnswerIsNamed(number: Int) throws {
        let bench = try WorkerBench()
        let all: TaskList = try answer({ $0.list($1) }, of: bench)
        #expect(all.tasks.isEmpty && all.silentWorkers.isEmpty)
        let proceed = bench.hold(worker: number)
        defer { proceed.signal() }
        let list: TaskList = try answer({ $0.list($1) }, of: bench)
        #expect(list.silentWorkers == ["worker \(number + 1)"])
        // Numbers alternate: 1 and 4 are the first worker's, 2 and 5 the second's, 3 is the control socket's own.
        let own = UInt64(number + 4)
        let other = UInt64(2 - number)
        // Only the silent worker is asked.
        let short: Duration = .milliseconds(1)
        let silent: TaskBoard.Finding = try answer({ $0.find(own, completion: $1) }, of: bench, within: short)
        #expect(describe(silent) == "silent: worker \(number + 1)")
        let cancelled: TaskBoard.Finding = try answer(
            { $0.order(.cancel, own, because: "a test", completion: $1) }, of: bench, within: short)
        #expect(describe(cancelled) == "silent: worker \(number + 1)")
        for none in [other, 3, 0] {
            let finding: TaskBoard.Finding = try answer({ $0.find(none, completion: $1) }, of: bench)
            #expect(describe(finding) == "none", "\(none)")
        }
    }

    @Test(arguments: [
        LearnOrder(), LearnOrder(.stop), LearnOrder(.until(1_893_456_000)), LearnOrder(.stop, forgets: true),
        LearnOrder(.unchanged, forgets: true), LearnOrder(.until(7), forgets: true),
    ]) func anOrderToLearnIsReadAsItWasWritten(_ order: LearnOrder) throws {
        let request = ControlRequest(.post, order.target, through: .socket(ControlPeer(.init(user: 0, process: 1))))
        #expect(request.path == ["learn"])
        #expect(LearnOrder(request.query) == order)
    }
}
