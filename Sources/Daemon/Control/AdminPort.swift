import Glibc
import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTLS

/// The admin port (`admin`): the control socket's resources, guarded by ``AdminGate``. On the main loop.
final class AdminPort {
    /// Sockets that a configuration adds, not accepting yet.
    struct Added {
        fileprivate var sockets: [ListeningSocket] = []
        fileprivate let gate: AdminGate
        fileprivate let tls: TLSServerContext?

        func close() {
            for socket in sockets { socket.discard() }
        }
    }

    private let loop: EventLoop
    private let logger: Logger
    private let clients: ControlClients
    private let desk = ArrivalDesk()
    private var listeners: [(socket: ListeningSocket, listener: Listener)] = []
    private(set) var gate = AdminGate(AdminSettings())
    private var tls: TLSServerContext?

    init(
        loop: EventLoop, session: LoopSession, logger: Logger, answer: @escaping ControlConnection.Answer,
        feed: @escaping () -> LiveFeed?
    ) {
        self.loop = loop
        self.logger = logger
        clients = ControlClients(
            loop: loop, session: session, share: ControlClients.limit / 4, answer: answer, feed: feed)
    }

    var addresses: [SocketAddress] { listeners.compactMap(\.socket.address) }
    var places: [String] { listeners.map(\.socket.place.description) }

    /// Opens what the settings add, and changes nothing else.
    /// - Parameters:
    ///   - file: of the settings.
    ///   - inherited: listening sockets of a supervisor.
    func open(
        _ settings: AdminSettings, namedIn file: String, inherited: [InheritedSocket] = []
    ) throws(ConfigurationProblems) -> Added {
        func refused(_ cause: String) -> ConfigurationProblems {
            ConfigurationProblems([Problem(.error, at: Place(file: file), "admin.listen: \(cause)")])
        }
        var added = Added(gate: AdminGate(settings), tls: try context(settings, file))
        let named = settings.takesInherited ? ListeningSocket.named(for: .admin, among: inherited) : []
        if settings.takesInherited {
            let hasSome = !named.isEmpty || listeners.contains { $0.socket.isNamed }
            guard hasSome else { throw refused(MissingSocket(port: .admin, file: file).description) }
            // systemd's units have the addresses.
            let exposed = (named + listeners.map(\.socket)).first {
                $0.isNamed && $0.address.map { ClientPlace(of: $0.ip) } != .thisMachine
            }
            if let exposed, !settings.isProtected {
                throw refused(
                    "systemd's socket on \(exposed.place) can be reached from other machines, so admin.tls and "
                        + "admin.token_file must be set too; or let pinproxy-admin.socket listen on 127.0.0.1")
            }
        }
        let wanted = settings.addresses.filter { address in
            !(listeners.map(\.socket) + named).contains { $0.serves(address) }
        }
        do throws(ListenError) {
            added.sockets = named + (try ListeningSocket.open(.admin, on: wanted, namedIn: file, inherited: inherited))
        } catch {
            throw ConfigurationProblems([Problem(.error, at: Place(file: file), error.description)])
        }
        let paths = settings.paths.filter { path in !listeners.contains { $0.socket.serves(.unix(path)) } }
        do throws(SocketFileError) {
            added.sockets += try ListeningSocket.open(.admin, at: paths, settings.socket, namedIn: file)
        } catch {
            added.close()
            throw refused(error.reason)
        }
        return added
    }

    func holds(_ socket: InheritedSocket) -> Bool { listeners.contains { $0.socket.raw == socket.raw } }

    private func context(_ settings: AdminSettings, _ file: String) throws(ConfigurationProblems) -> TLSServerContext? {
        guard let identity = settings.tls else { return nil }
        do {
            var options = TLSServerContext.Options()
            options.identity = identity
            return try TLSServerContext(options: options)
        } catch {
            throw ConfigurationProblems([Problem(.error, at: Place(file: file), "admin.tls: \(error)")])
        }
    }

    func replace(with settings: AdminSettings, _ added: Added) {
        gate = added.gate
        tls = added.tls
        let isWanted = { (socket: ListeningSocket) in
            if let path = socket.place.path { return settings.paths.contains(path) }
            return socket.isNamed ? settings.takesInherited : settings.addresses.contains(where: socket.serves)
        }
        for (socket, listener) in listeners where !isWanted(socket) { listener.stop() }
        listeners.removeAll { !isWanted($0.socket) }
        for (socket, _) in listeners { socket.apply(settings.socket) }
        for socket in added.sockets {
            let isKnown = desk.knowsConnections(to: socket.raw)
            let accepted = { [weak self] (descriptor: consuming Descriptor, peer: Endpoint, _: Bool) in
                guard let self else { return }
                guard let path = peer.path else { return self.accepted(descriptor, from: peer, isKnown: isKnown) }
                self.accepted(descriptor, at: path)
            }
            let listener = Listener(loop: loop, socket: socket, accepted: accepted) { [weak self] in self?.failed($0) }
            listeners.append((socket, listener))
            listener.resume()
        }
    }

    private func accepted(_ socket: consuming Descriptor, at path: String) {
        let peer = UnixSocket.peer(of: socket.raw)
        clients.serve(
            socket, of: Claimant(user: peer?.user, source: .unix(path)),
            through: .port(client: peer.map { ControlPeer($0).description } ?? path), tls: tls)
    }

    private func accepted(_ socket: consuming Descriptor, from peer: Endpoint, isKnown: Bool) {
        let arrival = desk.arrival(of: socket.raw, from: peer, isKnown: isKnown)
        clients.serve(
            socket, of: Claimant(arrival.peer, source: peer), through: .port(client: peer.description), tls: tls)
    }

    private func failed(_ error: SystemError) {
        logger.warning(
            "admin.failed", metadata: ["cause": "\(error)", "effect": "clients of the admin port have to wait"])
    }

    func stop() {
        for (_, listener) in listeners { listener.stop() }
        listeners = []
        clients.stop()
    }
}

extension AdminSettings {
    fileprivate var addresses: [SocketAddress] {
        listen.compactMap { if case .address(let address) = $0 { SocketAddress(address) } else { nil } }
    }

    fileprivate var paths: [String] {
        listen.compactMap { if case .unix(let path) = $0 { path } else { nil } }
    }
}

/// Guards requests: the control socket may ask for everything, the admin port for what its settings allow. Any web page
/// can make a browser ask the admin port, and read answers by DNS rebinding: so it answers only to addresses,
/// `localhost` and its configured names, and to no other site's page (Fetch Metadata).
struct AdminGate: Sendable {
    enum Right: Int, Comparable, Sendable {
        /// For any client: health, and files for clients.
        case fetch
        /// The proxy's state and settings.
        case read
        case change
        case own

        static func < (one: Right, other: Right) -> Bool { one.rawValue < other.rawValue }
    }

    private let token: SHA256Digest?
    private let hosts: Set<String>

    init(_ settings: AdminSettings) {
        token = settings.token
        hosts = Set(settings.hosts)
    }

    /// Nil: the request may have the right.
    func objection(to request: ControlRequest, needing right: Right) -> ControlResponse? {
        guard case .port = request.door else { return nil }
        // Only browsers are led here by a name, which they always send.
        if let host = request.host, !isOwn(host) {
            return .problem(
                421,
                "the admin port does not answer to the name \(ShownText(host)): use its address or localhost, or "
                    + "add the name to admin.hosts")
        }
        // Other ports of this machine are the same site, but not trusted.
        if let site = request.fetchSite, site != "same-origin", site != "none" {
            return .problem(
                403,
                "another site's page has led the browser here (Sec-Fetch-Site: \(ShownText(site))), and the admin port "
                    + "answers to none: type the address into the browser")
        }
        switch right {
        case .fetch: return nil
        case .own: return .problem(403, "only the control socket answers this: use the pinproxy command")
        case .change where token == nil:
            return .problem(
                403, "the admin port changes nothing without a token: use the pinproxy command, or set admin.token_file"
            )
        case .read where token == nil: return nil
        case .read, .change: return holdsToken(request) ? nil : Self.unauthorized
        }
    }

    /// Whether it may see what only controllers may, such as request paths.
    func mayControl(_ request: ControlRequest) -> Bool {
        switch request.door {
        case .socket: true
        case .port: token != nil && holdsToken(request)
        }
    }

    private static let unauthorized: ControlResponse = {
        var response = ControlResponse.problem(
            401, "the admin port requires the token of admin.token_file, as Authorization: Bearer TOKEN")
        response.wantsToken = true
        return response
    }()

    /// Compared by digest: the time reveals nothing about the token.
    private func holdsToken(_ request: ControlRequest) -> Bool {
        guard let token, let authorization = request.authorization else { return false }
        let parts = authorization.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return false }
        let shown = parts[1].utf8.drop { $0 == UInt8(ascii: " ") }
        return zip(SHA256Digest.of(Array(shown)).bytes, token.bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private func isOwn(_ host: String) -> Bool {
        guard case .success(let authority) = Authority.parse(host, defaultPort: 80) else { return false }
        return authority.isIPAddress || authority.host == "localhost" || hosts.contains(authority.host)
    }
}
