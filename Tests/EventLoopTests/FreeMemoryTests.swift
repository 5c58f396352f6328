import EventLoop
import Synchronization
import Testing

@Suite struct FreeMemoryTests {
    @Test func requestsThatComeTogetherWalkTheHeapOnce() throws {
        let waiting = Mutex<[@Sendable () -> Void]>([])
        let walks = Atomic(0)
        let memory = FreeMemory(
            run: { work in waiting.withLock { $0.append(work) } }, give: { walks.add(1, ordering: .relaxed) })
        for round in 1...3 {
            for _ in 0..<5 { memory.giveBack() }
            let works = waiting.withLock { works in
                defer { works = [] }
                return works
            }
            #expect(works.count == 1)
            for work in works { work() }
            #expect(walks.load(ordering: .relaxed) == round)
        }
    }
}
