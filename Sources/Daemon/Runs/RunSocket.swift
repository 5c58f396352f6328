import Glibc
import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyLocalPeers
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// `runs.sock` in the state directory: begins runs of `pinproxy exec` and looks names up, for every user: a run grants
/// nothing beyond its user's rights (``Run/Grant``). On the main loop.
package final class RunSocket {
    private static let patience: Duration = .seconds(10)
    /// Connections without a run; one more of a user with a quarter displaces that user's oldest.
    static let waitingLimit = 64
    /// Connections that wait for addresses, a quarter of them of one user's runs.
    static let lookUpLimit = 512
    private static let lookUpNanoseconds: UInt64 = 30_000_000_000

    struct Daemon {
        var snapshot: () -> Snapshot?
        var users: () -> UserVerifier?
        var addresses: () -> [String]
        /// Only the proxy's own user and root may begin a run.
        var isOwnersAlone: Bool
    }

    private let loop: EventLoop
    private let session: LoopSession
    private let settings = ServerSettings(waiting: patience)
    private let register: RunRegister
    private let daemon: Daemon
    private let logger: Logger
    private var listener: Listener?
    private var runs: [ObjectIdentifier: RunConnection] = [:]
    private var waiting = FairRoster<Claimant, RunConnection>(places: waitingLimit)
    /// Connections that wait for addresses, with the user of their run.
    private var asking: [ObjectIdentifier: (connection: RunConnection, user: UInt32)] = [:]
    private var lookUps = FairShare<Claimant>(places: lookUpLimit)
    private var isFull = false
    /// Called when the last run has ended.
    var unused: (() -> Void)?

    package static func place(in stateDirectory: String) -> StateSocket { StateSocket("runs.sock", in: stateDirectory) }

    init(
        path: String, loop: EventLoop, session: LoopSession, register: RunRegister, logger: Logger, daemon: Daemon
    ) throws(SystemError) {
        self.loop = loop
        self.session = session
        self.register = register
        self.logger = logger
        self.daemon = daemon
        let mode: UInt32 = daemon.isOwnersAlone ? 0o600 : 0o666
        listener = try .own(at: path, mode: mode, loop: loop, logger: logger) { [weak self] socket in
            let peer = UnixSocket.peer(of: socket.raw)
            self?.accepted(socket, peer)
        }
    }

    deinit { stop() }

    /// Removes the socket and ends all runs; each gets its last line.
    func stop() {
        guard let listener else { return }
        listener.stop()
        self.listener = nil
        for connection in waiting.members + Array(runs.values) + asking.values.map(\.connection) { connection.stop() }
    }

    var isUnused: Bool { runs.isEmpty && waiting.isEmpty }

    func forgetNames() { session.forgetNames() }

    private func accepted(_ socket: consuming Descriptor, _ peer: UnixSocket.Peer?) {
        guard let peer else { return }
        let connection = RunConnection(
            stream: ByteStream(loop: loop, descriptor: socket), session: session, settings: settings, peer: peer
        ) { [weak self] asked, connection in
            guard let self else { return }
            switch asked {
            case .run(let order): begin(order, connection)
            case .addresses(let name, let token): lookUp(name, for: token, connection)
            }
        } ended: { [weak self] in
            self?.ended($0)
        }
        waiting.add(connection, of: .user(peer.user))?.stop()
        connection.start()
    }

    // MARK: A run

    private func begin(_ order: RunConnection.Order, _ connection: RunConnection) {
        let isOwn = connection.peer.user == 0 || connection.peer.user == geteuid()
        guard isOwn || !daemon.isOwnersAlone else {
            return connection.refuse(
                403, "this proxy was started by pinproxy exec --start, and serves its own user alone")
        }
        guard let users = daemon.users(), !isOwn, let credentials = order.credentials else {
            return begin(order.token, isOwn ? .owner : .nothing, isOwn, connection)
        }
        // A run within a run has its rights.
        if let outer = RunToken(credentials) {
            return begin(order.token, register.run(with: outer)?.grant ?? .nothing, isOwn, connection)
        }
        users.verify(credentials, for: .user(connection.peer.user), on: loop) { [weak self, weak connection] ruling in
            guard let self, let connection else { return }
            let user = ruling == .right ? users.user(named: credentials.user) : nil
            begin(order.token, user.map { .user($0) } ?? .nothing, isOwn, connection)
        }
    }

    private func begin(_ token: RunToken, _ grant: Run.Grant, _ isOwn: Bool, _ connection: RunConnection) {
        guard waiting.contains(connection) else { return }
        let place = LoopWeak(connection, on: loop)
        do throws(RunRegister.Failure) {
            let run = try register.begin(token, owner: connection.peer.user, isOwn: isOwn, grant: grant) {
                place.post { $0.tell() }
            }
            waiting.remove(connection)
            runs[ObjectIdentifier(connection)] = connection
            isFull = false
            let isLetIn = daemon.users().map(run.isLetIn) ?? true
            logger.info("run.begin", metadata: ["cause": "\(ControlPeer(connection.peer))"])
            connection.accept(
                run, token: token, begun: RunBegun(listen: daemon.addresses(), isLetIn: isLetIn, resolvesNames: true))
        } catch {
            guard case .tooMany(let limit) = error else { return connection.refuse(409, "another run has this token") }
            connection.refuse(
                503, "\(limit) runs of pinproxy exec are running, which is the limit")
            guard !isFull else { return }
            isFull = true
            let who = ControlPeer(connection.peer)
            logger.warning(
                "runs.limit",
                metadata: [
                    "limit": .stringConvertible(limit), "cause": "\(who)",
                    "effect": "further runs of pinproxy exec don't report refusals",
                ])
        }
    }

    // MARK: Names

    private func lookUp(_ name: String, for token: RunToken, _ connection: RunConnection) {
        guard let run = register.run(with: token) else {
            return connection.refuse(404, "no current run has this token")
        }
        guard let snapshot = daemon.snapshot() else { return connection.refuse(503, "the proxy is stopping") }
        let isLetIn = daemon.users().map(run.isLetIn) ?? true
        switch RunNameRuling(name, ofUser: run.owner, isLetIn: isLetIn, in: snapshot) {
        case .lookUp: break
        case .own: return connection.answer(ResolvedName(exists: true, addresses: ["127.0.0.1"]))
        case .refused: return connection.answer(ResolvedName(exists: true, addresses: [], refused: true))
        case .unfit: return connection.answer(ResolvedName(exists: false, addresses: []))
        }
        guard run.lookUpBegan() else {
            return connection.refuse(503, "\(Run.lookUpLimit) names of this run are being looked up")
        }
        if let lack = lookUps.enter(.user(run.owner)) {
            run.lookUpEnded()
            return connection.refuse(503, "\(lack.text("names", of: .user(run.owner))) are being looked up")
        }
        waiting.remove(connection)
        asking[ObjectIdentifier(connection)] = (connection, run.owner)
        connection.allow(Self.lookUpNanoseconds)
        session.resolve(name) { [weak connection] result in
            run.lookUpEnded()
            switch result {
            case .success(let addresses):
                connection?.answer(ResolvedName(exists: true, addresses: addresses.map(\.description)))
            case .failure(.noAddresses): connection?.answer(ResolvedName(exists: true, addresses: []))
            case .failure(.notFound), .failure(.invalidName):
                connection?.answer(ResolvedName(exists: false, addresses: []))
            case .failure(let error): connection?.refuse(502, "\(error)")
            }
        }
    }

    private func ended(_ connection: RunConnection) {
        waiting.remove(connection)
        runs[ObjectIdentifier(connection)] = nil
        if let asked = asking.removeValue(forKey: ObjectIdentifier(connection)) { lookUps.leave(.user(asked.user)) }
        defer { if isUnused { unused?() } }
        guard let token = connection.token else { return }
        if let summary = register.run(with: token)?.summary {
            logger.info(
                "run.end",
                metadata: [
                    "cause": "\(ControlPeer(connection.peer))", "requests": .stringConvertible(summary.requests),
                    "refusals": .stringConvertible(summary.counts.reduce(summary.unlisted, +)),
                ])
        }
        register.end(token)
    }
}

/// Whether a run may resolve a name. Queries can leak data, so the policy judges the name first.
enum RunNameRuling: Equatable {
    case lookUp
    /// The proxy answers for the host itself.
    case own
    /// The proxy refuses the host to this run.
    case refused
    /// Not a host's name.
    case unfit

    /// The ports that `--transparent` redirects, with their protocols.
    private static let purposes: [(port: UInt16, purpose: Purpose)] = [(443, .secure), (80, .plain)]

    /// - Parameters:
    ///   - user: the run's starter; the asking process is unknown.
    ///   - isLetIn: whether the run's requests are admitted (`proxy.users`).
    init(_ name: String, ofUser user: UInt32, isLetIn: Bool, in snapshot: Snapshot) {
        guard case .success(let authority) = Authority.parse(name, defaultPort: 443), authority.port == 443,
            !authority.isIPAddress
        else {
            self = .unfit
            return
        }
        let host = authority.canonical.host
        if TestHost(host) != nil {
            self = .own
            return
        }
        let peer = ClientPeer(LocalSocket(user: user, inode: nil))
        let isRefused =
            !isLetIn
            || Self.purposes.allSatisfy { port, purpose in
                let decision = HostDecision(host, port: port, in: snapshot)
                let layer = decision.layer(
                    for: purpose, to: ServerName(host: host), upstream: snapshot.upstream, asker: .client(peer))
                return if case .failure = layer { true } else { false }
            }
        self = isRefused ? .refused : .lookUp
    }
}
