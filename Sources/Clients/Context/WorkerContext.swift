// Clients: the client's side of HTTP, CONNECT and interception, tunnels, decisions about hosts, refusals, users, peers,
// and the runs of pinproxy exec as values.

package import Logging
package import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxyHTTPWire
package import PinproxyRecords
package import PinproxySession
import PinproxyTransport

/// State that the clients of one worker share: configuration, session manager, log and counts. Used on the worker's
/// thread.
package final class WorkerContext {
    /// How long a recently used connection gets for one more request when the proxy stops.
    package static let lastChanceNanoseconds: UInt64 = 1_000_000_000

    package let loop: EventLoop
    package let shared: ProxyContext
    package private(set) var configuration: ActiveConfiguration
    package let session: LoopSession
    package let serverSettings = ServerSettings()
    /// Set if a signer has the authority's key.
    private(set) var signer: SignerClient?
    private let resolver: Resolver
    private let accessLog: AccessLog
    private let events: TaskEvents
    // unowned: the desk is this object's, and reports on its loop.
    private(set) lazy var departures = DepartureDesk(loop: loop, watch: shared.trust) { [unowned self] in report($0) }
    var pending = PendingReports()
    package private(set) var isDraining = false
    private(set) var quietTunnelNanoseconds: UInt64 = 0
    private let tally: Tally
    package var counters: WorkerCounters {
        _read { yield tally.counters }
        _modify { yield &tally.counters }
    }
    package var recent: RecentEvents {
        _read { yield tally.recent }
        _modify { yield &tally.recent }
    }
    package var lookups: Resolver.Counts { resolver.counts }

    private final class Tally {
        // unchecked: their mutating methods call nothing else.
        @exclusivity(unchecked) var counters = WorkerCounters()
        @exclusivity(unchecked) var recent: RecentEvents

        init(worker: Int) { recent = RecentEvents(worker: worker) }
    }

    /// Reused for each request to a host with rules for paths.
    private var readings = PathReadings()

    /// - Parameter number: of the worker, from 0.
    package init(loop: EventLoop, number: Int, shared: ProxyContext, configuration: ActiveConfiguration) throws {
        self.loop = loop
        self.shared = shared
        self.configuration = configuration
        resolver = try Resolver(loop: loop, cache: shared.names)
        let slabs = SlabPool(budget: shared.budget)
        let pool = UpstreamPool(capacity: shared.idleUpstreams)
        let connector = UpstreamConnector(
            loop: loop, resolver: resolver, slabs: slabs, pool: pool, sessions: shared.sessions,
            probes: shared.probes, listeners: shared.listeners,
            ownOrigin: TestOrigin(
                loop: loop, slabs: slabs, hosts: shared.testHosts,
                tls: try shared.interceptedTLS.context(for: [.http1]), unixTime: shared.unixTime),
            tls: shared.clientTLS, unixTime: shared.unixTime)
        let accessLog = AccessLog(output: shared.logOutput, loop: loop)
        self.accessLog = accessLog
        events = TaskEvents(accessLog: accessLog, logger: shared.logger, loop: loop)
        let tally = Tally(worker: number)
        self.tally = tally
        var hooks = events.hooks
        hooks.metricsCollected = { [accessLog, tally] record in
            let now = loop.now
            accessLog.write(record, now: now)
            tally.counters.count(record, now: now)
            if record.failure != nil { tally.recent.note(record, at: WallClock.milliseconds()) }
        }
        let findings = ResponseEvents(accessLog: accessLog, logger: shared.logger)
        hooks.judged = { [shared] finding, error in
            findings.tell(finding, error)
            shared.rules.count(finding, error, at: shared.unixTime())
        }
        session = LoopSession(
            loop: loop, slabs: slabs, pool: pool, connector: connector, hooks: hooks, bodies: shared.bodies,
            challenges: shared.challenges, fetches: shared.fetches, admissions: shared.admissions, cache: shared.cache,
            index: number, of: shared.sessionCount)
        signer = configuration.snapshot.authority.signer.map { path in
            SignerClient(path: path, loop: loop) { [weak self] in self?.signerAnswered($0, to: $1) ?? .failure(.closed)
            }
        }
        settle(configuration)
        pool.noticed = { [weak self] notice, connection in self?.report(notice, by: connection) }
    }

    package var snapshot: Snapshot { configuration.snapshot }
    var users: UserVerifier? { configuration.users }

    func unixTime() -> Int64 { shared.unixTime() }

    func decide(_ authority: Authority, for purpose: Purpose, client: Route.Client) -> Decision {
        Router(
            configuration: configuration, pool: session.pool, loops: shared.loops, slots: shared.slots,
            testHosts: shared.testHosts
        ).decide(authority, for: purpose, client: client)
    }

    func rules(of layers: RuleLayers, for request: borrowing RequestView) -> Result<ExchangeRules, AmbiguousPath> {
        switch request.head.targetForm {
        case .absolute(let target): readings.take(request.bytes.extracting(target.pathAndQuery.offsets))
        default: readings.take(request.bytes.extracting(request.head.target.offsets))
        }
        switch layers.choose(&readings, method: request.bytes.extracting(request.head.methodRange.offsets)) {
        case .decided(let choice): return .success(layers.rules(choice))
        case .ambiguous: return .failure(AmbiguousPath())
        }
    }

    /// Thrown if readings of a path select different rules.
    struct AmbiguousPath: Error {}

    // MARK: The configuration

    /// Applies to the next exchange. Idle connections and TLS sessions that it rules out are dropped.
    package func replace(with fresh: ActiveConfiguration) {
        settle(fresh)
        reloadResolver()
        let connections = session.pool.retire { [self] key in isRetired(key) }
        let sessions = shared.sessions.retire { [self] key in isRetired(key) }
        events.invalidated(connections: connections, sessions: sessions, cause: "the configuration has changed")
    }

    package func reloadResolver() {
        do {
            try resolver.reload()
        } catch {
            log(.error, "resolver.reload", ["cause": "\(error)"])
        }
    }

    private func settle(_ fresh: ActiveConfiguration) {
        configuration = fresh
        let timeouts = fresh.snapshot.timeouts
        serverSettings.idle = timeouts.idleClient
        serverSettings.idleNanoseconds = timeouts.idleClient.nanoseconds
        serverSettings.requestNanoseconds = isDraining ? Self.lastChanceNanoseconds : timeouts.idleClient.nanoseconds
        serverSettings.requestHead = fresh.snapshot.limits.requestHead
        accessLog.configure(fresh.snapshot.log)
    }

    /// Whether the configuration would now connect to this origin differently.
    private func isRetired(_ key: OriginKey) -> Bool {
        let host = key.host.contains(":") ? "[\(key.host)]" : key.host
        guard case .success(let authority) = Authority.parse(host, defaultPort: key.port) else { return true }
        let purpose: Purpose = key.layer == .plain ? .plain : .secure
        switch decide(authority, for: purpose, client: Route.Client(place: key.addresses.client, asker: .anybody)) {
        case .relay(let route), .tunnel(let route): return route.target.key != key
        case .refuse: return true
        }
    }

    // MARK: Upstream connections

    /// The pool keeps an unused connection, or closes it if no other client may use it.
    func giveBack(_ upstream: UpstreamConnection) {
        session.pool.giveBack(upstream, idleNanoseconds: snapshot.timeouts.idleUpstream.nanoseconds)
    }

    // MARK: The log

    /// Logs an event in order with the exchanges.
    package func log(_ level: Logger.Level, _ event: Logger.Message, _ fields: @autoclosure () -> Logger.Metadata) {
        events.log(level, event, fields())
    }

    package func flushLog() { accessLog.flush() }

    // MARK: The end

    /// - Parameter quietTunnels: how long nothing may move in a tunnel.
    package func drain(quietTunnels: Duration) {
        isDraining = true
        quietTunnelNanoseconds = quietTunnels.nanoseconds
        session.isDraining = true
        serverSettings.requestNanoseconds = Self.lastChanceNanoseconds
        events.invalidated(connections: session.pool.close(), sessions: 0, cause: "the proxy is stopping")
    }
}
