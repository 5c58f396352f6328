import Dispatch
import EventLoop
import Glibc
import LocalPeers
import Synchronization

/// Finds the processes at the other end of local connections, and the names of their users, on a thread of its own: a worker
/// waits neither for `/proc` nor for a directory service.
///
/// To look through all processes takes milliseconds, through those that were found before a tenth of one; with hundreds of new
/// connections a second each would cost more than its connection. So all who ask meanwhile are answered together by the next look,
/// and where only the log wants to know, that one comes when as much as ``thrift`` times the last one has passed: the first of a
/// burst are looked for at once, and the looks never take more than a hundredth of one processor.
final class PeerInquiry: Sendable {
    /// Questions that may wait; for more it isn't known who it is.
    static let capacity = 4096
    private static let thrift: UInt64 = 100
    private static let mostRemembered = 64
    private static let mostNames = 1024
    /// How long the name of a user is believed.
    private static let nameSeconds = 60

    private struct Question: Sendable {
        let socket: LocalSocket
        let isComplete: Bool
        let answer: @Sendable (ClientPeer) -> Void
    }

    private struct State {
        var waiting: [Question] = []
        /// They will be looked at.
        var isScheduled = false
        /// They will be when ``urgent`` or the time says so.
        var isResting = false
        var names: [UInt32: KnownName] = [:]
    }

    private struct KnownName {
        /// Nil: the user has none.
        let name: String?
        let until: Int
    }

    /// Of the queue alone.
    private struct Memory {
        /// Processes that held a connection, the last as the last.
        var holders: [Int32] = []
        /// When the last look that only the log wanted is paid for.
        var rested: UInt64 = 0
    }

    private let sight: Sight
    private let state = Mutex(State())
    private let memory = Mutex(Memory())
    private let queue = DispatchQueue(label: "pinproxy.peers")
    private let urgent = DispatchSemaphore(value: 0)

    /// Finds the processes that hold sockets, among some of them or everywhere.
    typealias Look = @Sendable (_ inodes: Set<UInt64>, _ candidates: [Int32]?) -> [UInt64: [LocalProcess]]
    private let look: Look

    /// - Parameter sight: which processes this one may look into.
    init(sight: Sight = .current, look: @escaping Look = { ProcessTable.holders(of: $0, among: $1) }) {
        self.sight = sight
        self.look = look
    }

    /// Calls `answer` once, on the loop's thread: before this returns where there is nothing to look for, else later; never if
    /// the loop ends before. It should hold its objects weakly, since it may be released on another thread.
    /// - Parameter isComplete: all processes are wanted that hold the connection, since something is decided by them.
    func ask(_ peer: ClientPeer, isComplete: Bool, on loop: EventLoop, _ answer: @escaping (ClientPeer) -> Void) {
        guard let socket = peer.socket else { return answer(peer) }
        if let reason = reasonNotToLook(for: socket), let known = knownName(of: socket.user) {
            var peer = peer
            peer.userName = known.name
            peer.processes = .unknown(why: reason)
            return answer(peer)
        }
        let bound = LoopBound(answer, on: loop)
        let handle = loop.handle
        let question = Question(socket: socket, isComplete: isComplete) { peer in
            handle.post { bound.value(on: $0)(peer) }
        }
        let (isTaken, isFirst): (Bool, Bool) = state.withLock { state in
            guard state.waiting.count < Self.capacity else { return (false, false) }
            state.waiting.append(question)
            if isComplete, state.isResting {
                state.isResting = false
                urgent.signal()
            }
            defer { state.isScheduled = true }
            return (true, !state.isScheduled)
        }
        guard isTaken else {
            var peer = peer
            peer.processes = .unknown(why: "\(Self.capacity) others wait to be looked for")
            return answer(peer)
        }
        // Those before may have to wait for a while; who has something decided has not.
        if isFirst || isComplete { queue.async { [self] in work() } }
    }

    private func reasonNotToLook(for socket: LocalSocket) -> String? {
        if socket.inode == nil { return "the kernel tells nothing of its socket" }
        return sight.covers(socket.user) ? nil : Self.outOfSight
    }

    static let outOfSight = "the proxy may not look into processes of other users; docs/identity.md says what it needs"

    private static var now: Int { time(nil) }

    // MARK: On the queue

    private func work() {
        let rest = timeToRest
        let mustRest = state.withLock { state in
            state.isResting = rest > 0 && !state.waiting.contains(where: \.isComplete)
            return state.isResting
        }
        if mustRest {
            // Not by a timer of Dispatch's: that takes three descriptors for good, and ends the process where there are none.
            _ = urgent.wait(timeout: .now() + .nanoseconds(Int(rest)))
        }
        let questions = state.withLock { state in
            state.isScheduled = false
            state.isResting = false
            defer { state.waiting = [] }
            return state.waiting
        }
        if !questions.isEmpty { answer(questions) }
    }

    private func answer(_ questions: [Question]) {
        let wanted = Set(questions.lazy.filter { self.reasonNotToLook(for: $0.socket) == nil }.compactMap(\.socket.inode))
        let began = Self.spent
        if questions.contains(where: \.isComplete) { return answer(questions, lookThrough(for: wanted), isComplete: true) }
        var found = look(wanted, memory.withLock { $0.holders })
        let isComplete = found.count < wanted.count
        if isComplete { found = lookThrough(for: wanted) }
        let rested = Self.uptime + (Self.spent - began) * Self.thrift
        memory.withLock { $0.rested = rested }
        answer(questions, found, isComplete: isComplete)
    }

    private func lookThrough(for wanted: Set<UInt64>) -> [UInt64: [LocalProcess]] {
        wanted.isEmpty ? [:] : look(wanted, nil)
    }

    private func answer(_ questions: [Question], _ found: [UInt64: [LocalProcess]], isComplete: Bool) {
        remember(found.values.joined().map(\.id))
        for question in questions {
            var peer = ClientPeer(question.socket)
            peer.userName = name(of: question.socket.user)
            if let reason = reasonNotToLook(for: question.socket) {
                peer.processes = .unknown(why: reason)
            } else if let processes = question.socket.inode.flatMap({ found[$0] }) {
                peer.processes = .found(processes, isComplete: isComplete)
            } else {
                peer.processes = .unknown(why: "no process holds its socket, or none that the proxy can see")
            }
            question.answer(peer)
        }
    }

    /// Until those who only want to know may have processes looked at again.
    private var timeToRest: UInt64 {
        let (rested, now) = (memory.withLock { $0.rested }, Self.uptime)
        return rested > now ? rested - now : 0
    }

    private static var uptime: UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// Nanoseconds of processor time that this thread has used.
    private static var spent: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private func remember(_ ids: [Int32]) {
        memory.withLock { memory in
            memory.holders.removeAll { ids.contains($0) }
            memory.holders += Set(ids)
            memory.holders.removeFirst(max(0, memory.holders.count - Self.mostRemembered))
        }
    }

    private func knownName(of user: UInt32) -> KnownName? {
        state.withLock { state in state.names[user].flatMap { $0.until > Self.now ? $0 : nil } }
    }

    private func name(of user: UInt32) -> String? {
        if let known = knownName(of: user) { return known.name }
        let name = UserName.of(user)
        state.withLock { state in
            if state.names.count >= Self.mostNames { state.names = [:] }
            state.names[user] = KnownName(name: name, until: Self.now + Self.nameSeconds)
        }
        return name
    }
}
