import Dispatch
import Glibc
import PinproxyEventLoop
import PinproxyLocalPeers
import Synchronization
import Testing

@testable import PinproxyClients

@Suite struct PeerInquiryTests {
    /// The searches for processes that were made.
    private final class Looks: Sendable {
        /// Searches through all processes.
        let whole = Atomic(0)
        let some = Atomic(0)
        /// When the last one ended.
        let ended = Atomic<UInt64>(0)
        /// The shortest pause between two searches, in nanoseconds.
        let shortestPause = Mutex(UInt64.max)
        /// The pauses between searches.
        let pauses = Mutex<[UInt64]>([])
    }

    /// - Parameter nanoseconds: the processor time of a search.
    private func inquiry(_ looks: Looks, nanoseconds: Int) throws -> PeerInquiry {
        try PeerInquiry(sight: .everything) { inodes, candidates in
            guard candidates == nil else {
                looks.some.add(1, ordering: .relaxed)
                return SocketHolders()
            }
            let pause = MonotonicTime.now().nanoseconds - looks.ended.load(ordering: .relaxed)
            looks.shortestPause.withLock { $0 = min($0, pause) }
            if looks.ended.load(ordering: .relaxed) > 0 { looks.pauses.withLock { $0.append(pause) } }
            looks.whole.add(1, ordering: .relaxed)
            let until = Self.spent() + nanoseconds
            while Self.spent() < until {}
            looks.ended.store(MonotonicTime.now().nanoseconds, ordering: .relaxed)
            var found = SocketHolders()
            for inode in inodes {
                found.processes[inode] = [LocalProcess(id: Int32(inode), started: 1, executable: nil, unit: nil)]
            }
            return found
        }
    }

    /// Nanoseconds of this thread's processor time.
    private static func spent() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    private func peer(_ inode: UInt64, user: UInt32 = 0) -> ClientPeer {
        ClientPeer(LocalSocket(user: user, inode: inode))
    }

    private func process(_ peer: ClientPeer) -> Int32? {
        if case .found(let processes, _) = peer.processes { processes.first?.id } else { nil }
    }

    @Test func searchesForABurstTogetherAndForADecisionWithoutAPause() throws {
        let loop = try EventLoop()
        let looks = Looks()
        // The next search would come after ten seconds at the earliest.
        let inquiry = try inquiry(looks, nanoseconds: 100_000_000)
        var answers: [Int32?] = []
        func count(_ peer: ClientPeer) {
            answers.append(process(peer))
            if answers.count == 1 {
                for inode in 2...100 as ClosedRange<UInt64> {
                    inquiry.ask(self.peer(inode), isComplete: false, on: loop) { count($0) }
                }
                // The burst has to wait now; this request must not.
                inquiry.ask(self.peer(101), isComplete: true, on: loop) { count($0) }
            }
            if answers.count == 101 { loop.stop() }
        }
        inquiry.ask(peer(1), isComplete: false, on: loop) { count($0) }
        loop.run()
        #expect(Set(answers) == Set((1...101).map { Int32($0) }))
        #expect(looks.whole.load(ordering: .relaxed) == 2)
        #expect(looks.some.load(ordering: .relaxed) == 1)
    }

    @Test func aSearchForTheLogWaitsLongerThanTheLastOneTook() throws {
        let loop = try EventLoop()
        let looks = Looks()
        let inquiry = try inquiry(looks, nanoseconds: 5_000_000)
        var answers: [Int32?] = []
        func ask() {
            inquiry.ask(peer(UInt64(answers.count + 1)), isComplete: false, on: loop) { peer in
                answers.append(process(peer))
                if answers.count < 3 { ask() } else { loop.stop() }
            }
        }
        ask()
        loop.run()
        #expect(answers == [1, 2, 3])
        #expect(looks.shortestPause.withLock { $0 } >= 500_000_000)
    }

    /// A user with many decisions has to wait; another one doesn't.
    @Test func oneUsersDecisionsKeepNoOtherWaiting() throws {
        let loop = try EventLoop()
        let looks = Looks()
        // Each search is followed by a pause of a quarter of a second.
        let inquiry = try inquiry(looks, nanoseconds: 100_000_000)
        var answers: [Int32?] = []
        func count(_ peer: ClientPeer) {
            answers.append(process(peer))
            if answers.count == 1 {
                inquiry.ask(self.peer(2, user: 1), isComplete: true, on: loop) { count($0) }
                inquiry.ask(self.peer(3, user: 2), isComplete: true, on: loop) { count($0) }
            }
            // A query that waits anyway is answered by another user's search.
            if answers.count == 3 { inquiry.ask(self.peer(4, user: 1), isComplete: true, on: loop) { count($0) } }
            if answers.count == 4 { loop.stop() }
        }
        inquiry.ask(peer(1, user: 1), isComplete: true, on: loop) { count($0) }
        loop.run()
        #expect(Set(answers) == [1, 2, 3, 4])
        #expect(looks.whole.load(ordering: .relaxed) == 3)
        #expect(looks.pauses.withLock { $0 }.map { $0 >= 200_000_000 } == [false, true])
    }

    /// No search is made as long as the queue is kept busy.
    @Test func oneUsersQuestionsLeaveRoomForOthers() throws {
        let loop = try EventLoop()
        let (begun, mayProceed) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let inquiry = try PeerInquiry(sight: .everything) { inodes, _ in
            begun.signal()
            mayProceed.wait()
            mayProceed.signal()
            return SocketHolders()
        }
        var refused: [String] = []
        var asked = 0
        func ask(_ user: UInt32) {
            asked += 1
            inquiry.ask(peer(UInt64(asked), user: user), isComplete: true, on: loop) { peer in
                guard case .unknown(let why) = peer.processes, why.contains("wait") else { return }
                refused.append("\(user): \(why)")
            }
        }
        // The first is taken from the queue and searched for.
        ask(1)
        begun.wait()
        for _ in 0..<(PeerInquiry.capacity / 4) { ask(1) }
        #expect(refused.isEmpty)
        ask(1)
        ask(2)
        #expect(refused == ["1: 1024 connections of user 1 wait for a process search"])
        mayProceed.signal()
    }
}
