import Glibc
import Synchronization
import Testing

@testable import EventLoop

@Suite(.timeLimit(.minutes(5)))
struct ThreadTests {
    private final class Ingredient: Sendable {}

    private final class Object {
        let loop: EventLoop

        init(_ loop: EventLoop, _ ingredient: Ingredient?) { self.loop = loop }
    }

    /// A worker's first configuration isn't kept by the thread that it was started on.
    @Test func whatAnObjectWasMadeOfGoes() throws {
        var ingredient: Ingredient? = Ingredient()
        weak let seen = ingredient
        let thread = try LoopThread.start("test", stackSize: 256 << 10) { [ingredient] loop in Object(loop, ingredient) }
        ingredient = nil
        #expect(seen == nil)
        #expect(thread.perform { _ in })
        thread.stop()
    }

    @Test func workIsWaitedForOnItsOwnThread() throws {
        let caller = pthread_self()
        for number in 0..<200 {
            let (result, thread) = try SystemThread.run("test", stackSize: 128 << 10) { ([number, number * 2], pthread_self()) }
            #expect(result == [number, number * 2] && thread != caller)
        }
    }
}
