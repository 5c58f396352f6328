import Configuration
import EventLoop
import Logging
import HTTPWire
import Session
import Transport

/// One thread with its loop, its clients and their upstream connections. Nothing of it is shared: a
/// client and the origins that it talks to live on the same worker, so that no request takes a lock.
final class Worker {
    /// How long a connection that was used a moment ago gets for one more request when the proxy stops:
    /// the request may be on its way already.
    static let lastChanceNanoseconds: UInt64 = 1_000_000_000
    /// How long after a peak what it took is given back: the next one may follow at once.
    private static let quietNanoseconds: UInt64 = 5_000_000_000

    let loop: EventLoop
    let context: ProxyContext
    private(set) var configuration: ActiveConfiguration
    /// Where its exchanges get their connections.
    let session: SessionManager
    /// What its servers of HTTP may take.
    let serverSettings = HTTP1ServerSettings()
    private let resolver: Resolver
    private let accessLog: AccessLog
    private let load: WorkerLoad

    private var clients: [ObjectIdentifier: ClientConnection] = [:]
    private var fronts: [ObjectIdentifier: TLSFront] = [:]
    private var peak = PeakWatch()
    private lazy var quiet = Deadline(loop: loop) { [unowned self] in giveMemoryBack() }
    private(set) var isDraining = false
    private var stopped: (() -> Void)?

    init(
        loop: EventLoop, context: ProxyContext, configuration: ActiveConfiguration, load: WorkerLoad
    ) throws {
        self.loop = loop
        self.context = context
        self.configuration = configuration
        self.load = load
        resolver = try Resolver(loop: loop, cache: context.names)
        let slabs = SlabPool()
        let pool = UpstreamPool(capacity: context.idleUpstreams)
        let connector = UpstreamConnector(
            loop: loop, resolver: resolver, slabs: slabs, pool: pool, sessions: context.sessions,
            probes: context.probes, listeners: context.listeners, tls: context.clientTLS, unixTime: context.unixTime)
        let accessLog = AccessLog(output: context.logOutput, loop: loop)
        self.accessLog = accessLog
        var hooks = TaskHooks()
        hooks.completed = { accessLog.write($0, now: loop.now) }
        session = SessionManager(loop: loop, slabs: slabs, pool: pool, connector: connector, hooks: hooks)
        settle(configuration)
    }

    var snapshot: Snapshot { configuration.snapshot }
    var users: UserVerifier? { configuration.users }

    func unixTime() -> Int64 { context.unixTime() }

    // MARK: Clients

    /// Takes over an accepted socket that ``WorkerLoad/handedOver()`` was told of.
    func adopt(_ socket: consuming Descriptor, from peer: SocketAddress) {
        load.adopted()
        guard !isDraining else { return load.ended() }
        if let frontTLS = configuration.frontTLS {
            let front = TLSFront(
                loop: loop, socket: socket, slabs: session.slabs, idleNanoseconds: serverSettings.idleNanoseconds
            ) { [unowned self] front, inside in
                serve(inside, from: peer, behind: front)
            } ended: { [unowned self] front, failure in
                if let failure { logFrontFailure(failure, peer: peer) }
                fronts[ObjectIdentifier(front)] = nil
                load.ended()
                finishDraining()
            }
            fronts[ObjectIdentifier(front)] = front
            front.start(frontTLS, within: snapshot.timeouts.tlsHandshake.nanoseconds)
        } else {
            serve(socket, from: peer)
        }
    }

    /// - Parameter front: what takes the client's TLS off, and stands for it where clients are counted.
    private func serve(_ socket: consuming Descriptor, from peer: SocketAddress, behind front: TLSFront? = nil) {
        let stream = ByteStream(loop: loop, descriptor: socket)
        if let front { stream.aborted = { [weak front] in front?.stop() } }
        let client = ClientConnection(worker: self, stream: stream, peer: peer, isCounted: front == nil)
        clients[ObjectIdentifier(client)] = client
        _ = peak.changed(to: connections)
        client.start()
    }

    private func logFrontFailure(_ failure: String, peer: SocketAddress) {
        var record = TaskRecord()
        record.began(number: session.takeNumber(), at: loop.now)
        record.client = peer
        record.failed(failure)
        session.complete(&record)
    }

    func remove(_ client: ClientConnection) {
        guard clients.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
        if client.isCounted { load.ended() }
        if peak.changed(to: connections), !quiet.isSet { quiet.set(afterNanoseconds: Self.quietNanoseconds) }
        finishDraining()
    }

    // MARK: Memory

    private var connections: Int { clients.count + session.pool.idleCount }

    private func giveMemoryBack() {
        guard peak.changed(to: connections) else { return }
        clients = Dictionary(uniqueKeysWithValues: clients.lazy.map { ($0.key, $0.value) })
        session.slabs.releaseFree()
        context.freeMemory.giveBack()
        peak.gaveBack(at: connections)
        // The upstream connections of a peak go a while after its clients, without a word to the worker.
        if session.pool.idleCount >= PeakWatch.smallest {
            quiet.set(afterNanoseconds: snapshot.timeouts.idleUpstream.nanoseconds)
        }
    }

    // MARK: The configuration

    /// Decides by `fresh` from the next exchange on; connections that wait for one, in the pool or for one client, and TLS
    /// sessions that it would not have made are given up.
    func replace(with fresh: ActiveConfiguration) {
        settle(fresh)
        do {
            try resolver.reload()
        } catch {
            log(.error, "resolver.reload", ["cause": "\(error)"])
        }
        session.pool.retire { [self] key in isRetired(key) }
        context.sessions.retire { [self] key in isRetired(key) }
        for client in clients.values { client.dropRetired() }
        reviewRelays(Array(clients.values)[...])
    }

    /// A few at a time, so that traffic goes on: each may take the verification of a chain.
    private func reviewRelays(_ clients: ArraySlice<ClientConnection>) {
        for client in clients.prefix(64) { client.reviewRelay() }
        let rest = clients.dropFirst(64)
        guard !rest.isEmpty else { return }
        loop.afterThisTurn { [weak self] in self?.reviewRelays(rest) }
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

    /// Whether the snapshot would reach this origin in another way than the connections to it were made.
    private func isRetired(_ key: OriginKey) -> Bool {
        let host = key.host.contains(":") ? "[\(key.host)]" : key.host
        guard case .success(let authority) = Authority.parse(host, defaultPort: key.port) else { return true }
        let purpose: Purpose = key.layer == .plain ? .plain : .secure
        switch decide(authority, for: purpose, client: Route.Client(place: key.addresses.client)) {
        case .relay(let route), .tunnel(let route): return route.target.key != key
        case .refuse: return true
        }
    }

    // MARK: Upstream connections

    /// Takes back a connection that no exchange uses: the pool keeps it, or closes it if it is of no use to another client.
    func giveBack(_ upstream: UpstreamConnection) {
        session.pool.giveBack(upstream, idleNanoseconds: snapshot.timeouts.idleUpstream.nanoseconds)
    }

    /// An event beside the exchanges, in its place among them.
    func log(_ level: Logger.Level, _ event: Logger.Message, _ fields: @autoclosure () -> Logger.Metadata) {
        guard level >= context.logger.logLevel else { return }
        accessLog.flush()
        context.logger.log(level: level, event, metadata: fields())
    }

    // MARK: The end

    /// Lets what is under way finish, and gives up what rests.
    /// - Parameter stopped: called once the last client has gone.
    func drain(stopped: @escaping () -> Void) {
        isDraining = true
        session.isDraining = true
        serverSettings.requestNanoseconds = Self.lastChanceNanoseconds
        self.stopped = stopped
        session.pool.close()
        for client in Array(clients.values) { client.drain() }
        finishDraining()
    }

    /// Ends all that is still under way.
    func stopClients() {
        for client in Array(clients.values) { client.stop() }
        for front in Array(fronts.values) { front.stop() }
        finishDraining()
    }

    private func finishDraining() {
        guard isDraining, clients.isEmpty, fronts.isEmpty, let stopped else { return }
        self.stopped = nil
        accessLog.flush()
        stopped()
    }
}
