import Dispatch
import EventLoop
import Glibc
import LocalPeers
import Synchronization

/// Finds the processes at the other end of local connections, and the names of their users, on a thread of its own: a worker
/// waits neither for `/proc` nor for a directory service.
///
/// To look through all processes takes milliseconds. So all who ask meanwhile are answered together by the next look; and where
/// only the log wants to know, processes that were found before are looked at first, and all of them at most once in
/// ``restNanoseconds``.
final class PeerInquiry: Sendable {
    /// Questions that may wait; for more it isn't known who it is.
    static let capacity = 4096
    private static let restNanoseconds: UInt64 = 250_000_000
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
        /// They will be, but for those with something to decide first, when ``urgent`` or the time says so.
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
        var looked: UInt64?
    }

    private let sight: Sight
    private let state = Mutex(State())
    private let memory = Mutex(Memory())
    private let queue = DispatchQueue(label: "pinproxy.peers")
    private let urgent = DispatchSemaphore(value: 0)

    /// - Parameter sight: which processes this one may look into.
    init(sight: Sight = .current) { self.sight = sight }

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
        let questions = state.withLock { state in
            state.isScheduled = false
            defer { state.waiting = [] }
            return state.waiting
        }
        guard !questions.isEmpty else { return }
        let wanted = Set(questions.lazy.filter { self.reasonNotToLook(for: $0.socket) == nil }.compactMap(\.socket.inode))
        if questions.contains(where: \.isComplete) { return answer(questions, lookThrough(for: wanted), isComplete: true) }
        let found = ProcessTable.holders(of: wanted, among: memory.withLock { $0.holders })
        guard found.count < wanted.count else { return answer(questions, found, isComplete: false) }
        let rest = timeToRest
        guard rest > 0 else { return answer(questions, lookThrough(for: wanted), isComplete: true) }
        let isKnown = { (question: Question) in question.socket.inode.map { !wanted.contains($0) || found[$0] != nil } ?? true }
        answer(questions.filter(isKnown), found, isComplete: false)
        let isUrgent = state.withLock { state in
            state.isResting = !state.waiting.contains(where: \.isComplete)
            state.waiting += questions.filter { !isKnown($0) }
            state.isScheduled = true
            return !state.isResting
        }
        // Not by a timer of Dispatch's: that takes three descriptors for good, and ends the process where there are none.
        if !isUrgent { _ = urgent.wait(timeout: .now() + .nanoseconds(Int(rest))) }
        queue.async { [self] in
            state.withLock { $0.isResting = false }
            work()
        }
    }

    private func lookThrough(for wanted: Set<UInt64>) -> [UInt64: [LocalProcess]] {
        defer { memory.withLock { $0.looked = Self.uptime } }
        return wanted.isEmpty ? [:] : ProcessTable.holders(of: wanted)
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

    /// Until all processes may be looked at again for those who only want to know.
    private var timeToRest: UInt64 {
        guard let looked = memory.withLock({ $0.looked }) else { return 0 }
        let passed = Self.uptime - looked
        return passed < Self.restNanoseconds ? Self.restNanoseconds - passed : 0
    }

    private static var uptime: UInt64 { DispatchTime.now().uptimeNanoseconds }

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
