internal import CPinproxyMNL
internal import Glibc
package import PinproxyEventLoop

/// Follows the status of targets on a loop. On any notification it reads links, addresses and each target's route
/// again: lost notifications (ENOBUFS) do no harm, and no status mixes different times.
package final class NetworkMonitor: SocketHandler {
    package enum LookUpResult: Sendable {
        case found([IPAddress])
        /// The name has no address, with a human-readable reason.
        case noSuchHost(String)
        /// Unknown: earlier results stay.
        case failed
    }

    /// Looks up a host's addresses, and calls the completion once on the loop, at once or later.
    package typealias LookUp = (_ name: String, _ completion: @escaping (LookUpResult) -> Void) -> Void

    /// Called on the loop.
    package struct Listener {
        package var changed: (ReachabilityChange) -> Void = { _ in }
        /// ``NetworkMonitor/statuses`` has changed, or a reason.
        package var updated: () -> Void = {}
        /// The kernel doesn't answer; called once until it does again. Statuses stay.
        package var failed: (SystemError) -> Void = { _ in }

        package init() {}
    }

    /// Between two queries of the kernel.
    private static let pauseNanoseconds: UInt64 = 50_000_000
    private static let retryNanoseconds: UInt64 = 1_000_000_000
    /// The resolver's cache decides when name servers are queried again.
    private static let lookUpNanoseconds: UInt64 = 30_000_000_000
    private static let failedLookUpNanoseconds: UInt64 = 5_000_000_000
    /// Addresses of one host with route look-ups.
    private static let mostAddresses = 16

    private struct Followed {
        let target: ReachabilityTarget
        var filter = StatusFilter()
        /// The addresses of a host; nil: not known.
        var addresses: [IPAddress]?
        var noSuchHost: String?
        var isLookingUp = false
        /// The network has changed since the look-up began.
        var mustLookUpAgain = false
        var nextLookUp: MonotonicTime?
    }

    private let loop: EventLoop
    private let sysfs: String
    private let lookUp: LookUp
    private let listener: Listener

    private var followed: [Followed]
    private var news: NetlinkSocketSource?
    private var kernel: KernelNetwork?
    private var lastState: NetworkState?
    private var lastAsked: MonotonicTime?
    private var hasFailed = false
    /// Distinguishes look-ups of an earlier start.
    private var generation = 0
    private lazy var nextLook = Deadline(loop: loop, owner: self) { $0.look() }
    private lazy var nextLookUps = Deadline(loop: loop, owner: self) { $0.lookUpDue() }

    /// - Parameter sysfs: where links are folders.
    package init(
        loop: EventLoop, targets: [ReachabilityTarget], sysfs: String = "/sys/class/net", listener: Listener,
        lookUp: @escaping LookUp
    ) {
        self.loop = loop
        self.sysfs = sysfs
        self.lookUp = lookUp
        self.listener = listener
        followed = targets.map { Followed(target: $0) }
    }

    /// In the order of the targets. All unknown while it is stopped.
    package var statuses: [(target: ReachabilityTarget, status: ReachabilityStatus)] {
        followed.map { ($0.target, $0.filter.current) }
    }

    /// Statuses are reported before this returns, a host's once its addresses are known.
    package func start() throws(SystemError) {
        guard news == nil else { return }
        // Subscribed before the first look, to miss no change.
        let news = try NetlinkSocketSource(loop: loop, handler: self)
        kernel = try KernelNetwork(marksReader: LinkMarksReader(folder: sysfs))
        self.news = news
        look()
        lookUpNames()
    }

    /// After a restart it reports first statuses again.
    package func stop() {
        news = nil
        kernel = nil
        lastState = nil
        lastAsked = nil
        hasFailed = false
        generation += 1
        nextLook.clear()
        nextLookUps.clear()
        followed = followed.map { Followed(target: $0.target) }
    }

    /// Targets that stay keep their status.
    package func follow(_ targets: [ReachabilityTarget]) {
        followed = targets.map { target in followed.first { $0.target == target } ?? Followed(target: target) }
        guard news != nil else { return }
        look()
        lookUpNames()
    }

    /// Looks up the hosts' addresses, e.g. after name servers have changed.
    package func lookUpNames() {
        guard news != nil else { return }
        for target in followed.map(\.target) { beginLookUp(of: target) }
    }

    // MARK: News

    package func socketReady(_ readiness: Readiness) {
        // Neither its content nor lost notifications matter.
        news?.discard()
        let asked = lastAsked?.advanced(byNanoseconds: Self.pauseNanoseconds) ?? loop.now
        lookAgain(at: max(asked, loop.now))
    }

    private var lookIsDue: MonotonicTime?

    private func lookAgain(at time: MonotonicTime) {
        if let lookIsDue, lookIsDue <= time { return }
        lookIsDue = time
        nextLook.set(time)
    }

    // MARK: Looking

    private func look() {
        lookIsDue = nil
        guard let kernel else { return }
        lastAsked = loop.now
        let state: NetworkState
        do {
            state = try kernel.state(routesTo: Set(NetworkState.internet + followed.flatMap { destinations(of: $0) }))
            hasFailed = false
        } catch {
            if !hasFailed { listener.failed(error) }
            hasFailed = true
            return lookAgain(at: loop.now.advanced(byNanoseconds: Self.retryNanoseconds))
        }
        let isAnother = lastState.map { $0.differs(from: state) } ?? false
        lastState = state
        tell(of: state)
        // Name servers may have changed. Not at once: a flapping link would flood them.
        if isAnother { lookUpSoon() }
    }

    private func destinations(of followed: Followed) -> [IPAddress] {
        switch followed.target.kind {
        case .any: []
        case .address(let address): [address]
        case .host: Array((followed.addresses ?? []).prefix(Self.mostAddresses))
        }
    }

    private func tell(of state: NetworkState) {
        let now = loop.now
        var changes: [ReachabilityChange] = []
        var isUpdated = false
        for index in followed.indices {
            guard let status = status(of: followed[index], in: state) else { continue }
            switch followed[index].filter.observed(status, at: now) {
            case .same: break
            case .refined: isUpdated = true
            case .changed(let from):
                changes.append(
                    ReachabilityChange(
                        target: followed[index].target, from: from, to: followed[index].filter.current))
            case .unsettled(let until): lookAgain(at: until)
            }
        }
        // After the loop: a listener may stop the monitor, or change its targets.
        if isUpdated || !changes.isEmpty { listener.updated() }
        for change in changes { listener.changed(change) }
    }

    /// Nil: not known yet.
    private func status(of followed: Followed, in state: NetworkState) -> ReachabilityStatus? {
        switch followed.target.kind {
        case .any: return state.machine
        case .address(let address): return state.status(of: [address])
        case .host:
            if let text = followed.noSuchHost { return .notReachable(.noSuchHost(text)) }
            if followed.addresses != nil { return state.status(of: destinations(of: followed)) }
            // The look-up failed: the reason is why name servers are unreachable.
            guard followed.nextLookUp != nil else { return nil }
            let machine = state.machine
            return machine.isReachable ? .unknown : machine
        }
    }

    // MARK: Names

    private func lookUpSoon() {
        let soon = loop.now.advanced(byNanoseconds: StatusFilter.settlingNanoseconds)
        for index in followed.indices where followed[index].nextLookUp != nil || followed[index].isLookingUp {
            followed[index].mustLookUpAgain = true
            followed[index].nextLookUp = soon
        }
        setNextLookUps()
    }

    private func lookUpDue() {
        let now = loop.now
        for one in followed where one.nextLookUp.map({ $0 <= now }) ?? false { beginLookUp(of: one.target) }
        setNextLookUps()
    }

    private func setNextLookUps() {
        let due = followed.lazy.filter { !$0.isLookingUp }.compactMap(\.nextLookUp).min()
        if let due { nextLookUps.set(due) } else { nextLookUps.clear() }
    }

    private func beginLookUp(of target: ReachabilityTarget) {
        guard case .host(let name) = target.kind, let index = followed.firstIndex(where: { $0.target == target }) else {
            return
        }
        guard !followed[index].isLookingUp else {
            followed[index].mustLookUpAgain = true
            return
        }
        followed[index].isLookingUp = true
        followed[index].mustLookUpAgain = false
        let generation = generation
        lookUp(name) { [weak self] result in
            guard let self, self.generation == generation else { return }
            found(result, for: target)
        }
    }

    private func found(_ result: LookUpResult, for target: ReachabilityTarget) {
        guard let index = followed.firstIndex(where: { $0.target == target }) else { return }
        followed[index].isLookingUp = false
        var pause = Self.failedLookUpNanoseconds
        switch result {
        case .found(let addresses):
            followed[index].addresses = addresses.map(\.unmapped)
            followed[index].noSuchHost = nil
            pause = Self.lookUpNanoseconds
        case .noSuchHost(let text):
            followed[index].addresses = nil
            followed[index].noSuchHost = text
        case .failed: break
        }
        if followed[index].mustLookUpAgain { pause = StatusFilter.settlingNanoseconds }
        followed[index].nextLookUp = loop.now.advanced(byNanoseconds: pause)
        setNextLookUps()
        // Not at once: the answer may come before the call has returned.
        lookAgain(at: loop.now)
    }
}

extension NetworkState {
    /// Whether names may have other addresses, or other servers.
    fileprivate func differs(from other: NetworkState) -> Bool {
        routes != other.routes || addresses != other.addresses
            || links.mapValues(\.isUsable) != other.links.mapValues(\.isUsable)
    }
}

/// The kernel's notifications of changes.
private final class NetlinkSocketSource {
    /// Changes that affect routes: RTNLGRP_* as bits.
    private static let everyChange: UInt32 = [
        RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_IFADDR,
        RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP,
    ].reduce(0) { $0 | 1 << ($1.rawValue - 1) }

    private let socket: NetlinkSocket
    private let source: SocketSource
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: NetlinkSocket.datagramSize, alignment: 16)

    init(loop: EventLoop, handler: any SocketHandler) throws(SystemError) {
        socket = try NetlinkSocket(NETLINK_ROUTE, groups: Self.everyChange)
        source = SocketSource(loop: loop, descriptor: socket.descriptor, handler: handler)
        source.wantsRead = true
    }

    /// Reads a limited number per turn; further ones wait for the next.
    func discard() {
        for _ in 0..<64 {
            do {
                guard try socket.receive(into: buffer) != nil else { return }
            } catch {
                // ENOBUFS: lost notifications count as one.
                continue
            }
        }
    }

    deinit {
        source.invalidate()
        buffer.deallocate()
    }
}
