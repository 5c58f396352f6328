import Logging
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyReachability
import PinproxyRecords
import PinproxySession

/// Follows the network on the daemon's main loop: logs configured targets, and informs workers. The machine as a whole
/// is always followed, since requests are refused while it has no network.
final class NetworkWatch {
    private typealias Target = PinproxyReachability.ReachabilityTarget

    private let loop: EventLoop
    private let logger: Logger
    private let resolver: Resolver
    private let tell: (NetworkOutlook, _ isAnotherNetwork: Bool) -> Void
    private let serversChanged: () -> Void
    private lazy var servers = FileWatch(loop: loop) { [weak self] in self?.readServers() }
    private var looking: RepeatingTimer?
    private var logged: Set<Target>
    /// The latest first.
    private(set) var changes: [NetworkChange] = []
    private static let changeLimit = 50
    private lazy var monitor = NetworkMonitor(
        loop: loop, targets: [], listener: listener, lookUp: NetworkMonitor.lookUp(by: resolver))

    /// - Parameter tell: on another network, earlier connections and names are useless.
    init(
        loop: EventLoop, names: ResolverCache, targets: [PinproxyConfiguration.ReachabilityTarget], logger: Logger,
        tell: @escaping (NetworkOutlook, _ isAnotherNetwork: Bool) -> Void, serversChanged: @escaping () -> Void
    ) throws {
        self.loop = loop
        self.logger = logger
        self.tell = tell
        self.serversChanged = serversChanged
        resolver = try Resolver(loop: loop, cache: names)
        logged = Set(targets.map(\.watched))
        monitor.follow(Self.followed(targets))
    }

    /// Reports the first statuses before it returns. Without rtnetlink nothing is known, and nothing refused.
    func start() {
        servers.watch([Self.serverFile])
        // For directories that inotify misses, or that are new.
        looking = RepeatingTimer(loop: loop, owner: self, everyNanoseconds: 60_000_000_000) { $0.servers.look() }
        do throws(SystemError) {
            try monitor.start()
        } catch {
            failed(error)
        }
    }

    func follow(_ targets: [PinproxyConfiguration.ReachabilityTarget]) {
        logged = Set(targets.map(\.watched))
        monitor.follow(Self.followed(targets))
        updated()
    }

    func stop() {
        monitor.stop()
        servers.stop()
        looking = nil
    }

    /// The machine as a whole first.
    var targets: [TargetStatus] { monitor.statuses.map { TargetStatus($0.target, $0.status) } }

    /// Why nothing outside this machine can be reached; nil: something can, or unknown.
    var isolation: String? {
        guard case .notReachable(let reason)? = monitor.statuses.first(where: { $0.target == .any })?.status,
            reason.isIsolation
        else { return nil }
        return "\(reason)"
    }

    private static func followed(_ targets: [PinproxyConfiguration.ReachabilityTarget]) -> [Target] {
        var followed = [Target.any]
        for target in targets.map(\.watched) where !followed.contains(target) { followed.append(target) }
        return followed
    }

    private var listener: NetworkMonitor.Listener {
        var listener = NetworkMonitor.Listener()
        listener.updated = { [weak self] in self?.updated() }
        listener.changed = { [weak self] in self?.changed($0) }
        listener.failed = { [weak self] in self?.failed($0) }
        return listener
    }

    private func updated() { tell(NetworkOutlook(monitor.statuses), false) }

    private func changed(_ change: ReachabilityChange) {
        if logged.contains(change.target) { log(change) }
        guard change.from != .unknown else { return }
        // The new network may have brought other name servers.
        reloadResolver()
        tell(NetworkOutlook(monitor.statuses), true)
        if change.target == .any { monitor.lookUpNames() }
    }

    /// What c-ares reads.
    private static let serverFile = "/etc/resolv.conf"

    /// A VPN, a DHCP client or systemd-resolved writes it without any change of links.
    private func readServers() {
        logger.notice("resolver.reload", metadata: ["file": "\(Self.serverFile)"])
        reloadResolver()
        serversChanged()
    }

    private func reloadResolver() {
        do throws(ResolutionError) {
            try resolver.reload()
        } catch {
            logger.error("resolver.reload", metadata: ["cause": "\(error)"])
        }
    }

    private func log(_ change: ReachabilityChange) {
        changes.insert(
            NetworkChange(
                time: WallClock.milliseconds(), target: "\(change.target)", from: "\(change.from)", to: "\(change.to)",
                reason: change.to.reason), at: 0)
        if changes.count > Self.changeLimit { changes.removeLast() }
        var fields: Logger.Metadata = [
            "target": "\(change.target)", "from": "\(change.from)", "to": "\(change.to)",
            "reason": "\(change.to.reason)",
        ]
        // Without a link, the lost one's.
        if let link = (change.to.path ?? change.from.path)?.link {
            fields["link"] = "\(link.name)"
            fields["kind"] = "\(link.kind.rawValue)"
        }
        if change.to.isReachable {
            logger.notice("reachability.change", metadata: fields)
        } else {
            logger.warning("reachability.change", metadata: fields)
        }
    }

    private func failed(_ error: SystemError) {
        logger.warning(
            "reachability.failed",
            metadata: [
                "cause": "can't query the network by rtnetlink: \(error)",
                "effect": "the last known state is kept; if there is none, no request is refused for lack of a network",
            ])
    }
}

extension PinproxyConfiguration.ReachabilityTarget {
    fileprivate var watched: PinproxyReachability.ReachabilityTarget {
        switch self {
        case .any: .any
        case .address(let text), .host(let text): .host(text)
        }
    }
}
