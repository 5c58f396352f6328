import Foundation
import PinproxyEventLoop
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

    /// Mapped file pages in KiB, as counted by the kernel.
    private static func mapped() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        return try #require(status.firstMatch(of: /RssFile:\s+([0-9]+)/).flatMap { Int($0.output.1) })
    }

    /// Code that has run is dropped from memory, and still runs again.
    @Test func afterAStartCodeIsGivenBack() throws {
        let before = try Self.mapped()
        FreeMemory(run: { $0() }, give: {}).giveBackAfterStart()
        #expect(try Self.mapped() < before / 2)
    }
}
