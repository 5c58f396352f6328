import EventLoop
import Glibc
import LocalPeers
import Synchronization
import Testing

@testable import Proxy

@Suite struct PeerInquiryTests {
    private final class Looks: Sendable {
        /// Those through all processes.
        let whole = Atomic(0)
        let some = Atomic(0)
    }

    /// A look takes a tenth of a second of processor time, so that the next would come after ten seconds at the earliest.
    private func inquiry(_ looks: Looks) -> PeerInquiry {
        PeerInquiry(sight: .everything) { inodes, candidates in
            guard candidates == nil else {
                looks.some.add(1, ordering: .relaxed)
                return [:]
            }
            looks.whole.add(1, ordering: .relaxed)
            let until = Self.spent() + 100_000_000
            while Self.spent() < until {}
            var found: [UInt64: [LocalProcess]] = [:]
            for inode in inodes { found[inode] = [LocalProcess(id: Int32(inode), started: 1, executable: nil, unit: nil)] }
            return found
        }
    }

    /// Nanoseconds of processor time, of this thread.
    private static func spent() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    private func peer(_ inode: UInt64) -> ClientPeer { ClientPeer(LocalSocket(user: 0, inode: inode)) }

    private func process(_ peer: ClientPeer) -> Int32? {
        if case .found(let processes, _) = peer.processes { processes.first?.id } else { nil }
    }

    @Test func `a burst is looked for together, and whoever decides waits for nobody's rest`() throws {
        let loop = try EventLoop()
        let looks = Looks()
        let inquiry = inquiry(looks)
        var answers: [Int32?] = []
        func count(_ peer: ClientPeer) {
            answers.append(process(peer))
            if answers.count == 1 {
                for inode in 2...100 as ClosedRange<UInt64> {
                    inquiry.ask(self.peer(inode), isComplete: false, on: loop) { count($0) }
                }
                // The burst rests now; this one may not.
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
}
