import Dispatch
import Glibc
import PinproxyEventLoop
import PinproxyLocalPeers
import Synchronization

/// Finds the processes and users of local connections, on its own thread: no worker waits for `/proc` or a directory.
///
/// A search through all processes takes milliseconds, and through those found before a tenth of one: more than a new
/// connection costs. So one search answers all questions that have arrived. The log's wait ``thrift`` times the last
/// search's duration, which takes at most a hundredth of one processor. A decision is searched for at once, unless the
/// same user has just had one: then it waits ``thriftOfOne`` times the duration, which bounds what a user can cause.
final class PeerInquiry: Sendable {
    /// Waiting questions, a quarter of them of one user. Beyond that the process stays unknown.
    static let capacity = 4096
    private static let thrift: UInt64 = 100
    private static let thriftOfOne: UInt64 = 4
    /// The longest pause between searches for one user's decisions.
    private static let longestPause: UInt64 = 250_000_000
    private static let mostRemembered = 64
    private static let mostNames = 1024
    private static let nameSeconds = 60

    private struct Question: Sendable {
        let socket: LocalSocket
        let isComplete: Bool
        let answer: @Sendable (ClientPeer) -> Void
    }

    private struct State {
        var waiting: [Question] = []
        var share = FairShare<Claimant>(places: capacity)
        /// Users with waiting decisions.
        var deciding: Set<UInt32> = []
        var isWantedByLog = false
        var isScheduled = false
        /// The next search waits for ``urgent`` or the end of the pause.
        var isPausing = false
        /// The end of the pause after the last search for the log.
        var logPauseEnd: UInt64 = 0
        /// The end of each user's pause after a search for a decision.
        var userPauseEnds: [UInt32: UInt64] = [:]
        var names: [UInt32: KnownName] = [:]
    }

    private struct KnownName {
        /// Nil: the user has no name.
        let name: String?
        let until: Int
    }

    private struct Memory {
        /// Processes that held a connection, the latest last. Used on the queue alone.
        var holders: [Int32] = []
    }

    private let sight: Sight
    private let state = Mutex(State())
    private let memory = Mutex(Memory())
    private let queue: WorkQueue
    private let urgent = DispatchSemaphore(value: 0)

    /// Finds the processes that hold sockets; candidates nil: everywhere.
    typealias Look = @Sendable (_ inodes: Set<UInt64>, _ candidates: [Int32]?) -> SocketHolders
    private let look: Look

    /// - Parameter sight: processes that this one may examine.
    init(
        sight: Sight = .current, look: @escaping Look = { ProcessTable.holders(of: $0, among: $1) }
    ) throws(SystemError) {
        queue = try WorkQueue("peers")
        self.sight = sight
        self.look = look
    }

    /// Calls `answer` once, on the loop's thread: before this returns if nothing is searched, else later; never if the
    /// loop ends before. It should hold its objects weakly, since it may be released on another thread.
    /// - Parameter isComplete: all processes that hold the connection are needed, for a decision.
    func ask(_ peer: ClientPeer, isComplete: Bool, on loop: EventLoop, _ answer: @escaping (ClientPeer) -> Void) {
        guard let socket = peer.socket else { return answer(peer) }
        if let reason = reasonNotToLook(for: socket), let known = knownName(of: socket.user) {
            var peer = peer
            peer.userName = known.name
            peer.processes = .unknown(why: reason)
            return answer(peer)
        }
        let bound = LoopBound(answer, on: loop)
        let question = Question(socket: socket, isComplete: isComplete) { peer in bound.post { $0(peer) } }
        let (lack, isFirst): (FairShare<Claimant>.Lack?, Bool) = state.withLock { state in
            if let lack = state.share.enter(.user(socket.user)) { return (lack, false) }
            state.waiting.append(question)
            if isComplete { state.deciding.insert(socket.user) } else { state.isWantedByLog = true }
            if isComplete, state.isPausing {
                state.isPausing = false
                urgent.signal()
            }
            defer { state.isScheduled = true }
            return (nil, !state.isScheduled)
        }
        if let lack {
            var peer = peer
            let waiting = lack.text("connections", of: .user(socket.user))
            peer.processes = .unknown(why: "\(waiting) wait for a process search")
            return answer(peer)
        }
        if isFirst { queue.async { [self] in work() } }
    }

    private func reasonNotToLook(for socket: LocalSocket) -> String? {
        if socket.inode == nil { return "the kernel has no record of its socket" }
        return sight.covers(socket.user) ? nil : Self.outOfSight
    }

    static let outOfSight = "the proxy may not look into processes of other users; docs/identity.md says what it needs"

    private static var now: Int { time(nil) }

    // MARK: On the queue

    private func work() {
        while let pause = remainingPause() {
            // Not a Dispatch timer: it permanently takes three descriptors, and traps without them.
            _ = urgent.wait(timeout: .now() + .nanoseconds(Int(pause)))
        }
        let questions = state.withLock { state in
            state.isScheduled = false
            state.share = FairShare(places: Self.capacity)
            state.deciding = []
            state.isWantedByLog = false
            defer { state.waiting = [] }
            return state.waiting
        }
        if !questions.isEmpty { answer(questions) }
    }

    /// Until the next search may start; nil: now. A new decision can end it early.
    private func remainingPause() -> UInt64? {
        let now = Self.uptime
        return state.withLock { state in
            var ends = state.deciding.map { state.userPauseEnds[$0] ?? 0 }
            if state.isWantedByLog { ends.append(state.logPauseEnd) }
            let end = ends.min() ?? 0
            state.isPausing = end > now
            return state.isPausing ? end - now : nil
        }
    }

    private func answer(_ questions: [Question]) {
        let wanted = Set(
            questions.lazy.filter { self.reasonNotToLook(for: $0.socket) == nil }.compactMap(\.socket.inode))
        let began = Self.spent
        let deciding = Set(questions.lazy.filter(\.isComplete).map(\.socket.user))
        if !deciding.isEmpty {
            let found = lookThrough(for: wanted)
            let end = Self.uptime + min((Self.spent - began) * Self.thriftOfOne, Self.longestPause)
            state.withLock { state in
                state.userPauseEnds = state.userPauseEnds.filter { $0.value > Self.uptime }
                for user in deciding { state.userPauseEnds[user] = end }
            }
            return answer(questions, found, isComplete: true)
        }
        var found = look(wanted, memory.withLock { $0.holders })
        let isComplete = found.processes.count < wanted.count
        if isComplete { found = lookThrough(for: wanted) }
        let end = Self.uptime + (Self.spent - began) * Self.thrift
        state.withLock { $0.logPauseEnd = end }
        answer(questions, found, isComplete: isComplete)
    }

    private func lookThrough(for wanted: Set<UInt64>) -> SocketHolders {
        wanted.isEmpty ? SocketHolders() : look(wanted, nil)
    }

    private func answer(_ questions: [Question], _ found: SocketHolders, isComplete: Bool) {
        remember(found.processes.values.joined().map(\.id))
        for question in questions {
            var peer = ClientPeer(question.socket)
            peer.userName = name(of: question.socket.user)
            if let reason = reasonNotToLook(for: question.socket) {
                peer.processes = .unknown(why: reason)
            } else if found.overlooked.contains(question.socket.user) {
                peer.processes = .unknown(
                    why: "its user's processes hold more than \(ProcessTable.descriptorLimit) descriptors")
            } else if let processes = question.socket.inode.flatMap({ found.processes[$0] }) {
                peer.processes = .found(processes, isComplete: isComplete)
            } else {
                peer.processes = .unknown(why: "no process holds its socket, or none that the proxy can see")
            }
            question.answer(peer)
        }
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
