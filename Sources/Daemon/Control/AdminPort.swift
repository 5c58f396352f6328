import Clients
import Configuration
import EventLoop
import Glibc
import Logging
import Session
import TLS

/// The admin port (`admin` in pinproxy.yaml), on the main loop. The control socket's resources, by ``AdminGate``.
final class AdminPort {
    /// Sockets that a configuration adds, which nobody is accepted from yet.
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
        clients = ControlClients(loop: loop, session: session, share: ControlClients.limit / 4, answer: answer, feed: feed)
    }

    /// Where it can be asked over TCP.
    var addresses: [SocketAddress] { listeners.compactMap(\.socket.address) }
    /// Where it can be asked, for people.
    var places: [String] { listeners.map(\.socket.place.description) }

    /// Opens what the settings add to what is open, and changes nothing else.
    /// - Parameters:
    ///   - file: where the settings are written.
    ///   - inherited: sockets that listen already, from a supervisor.
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
            // Which addresses they have, systemd's units say.
            let exposed = (named + listeners.map(\.socket)).first { $0.isNamed && $0.address.map { ClientPlace(of: $0.ip) } != .thisMachine }
            if let exposed, !settings.isProtected {
                throw refused(
                    "systemd's socket on \(exposed.place) can be reached from other machines, so admin.tls and admin.token_file must "
                        + "be set too; or let pinproxy-admin.socket listen on 127.0.0.1")
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

    /// Whether it took that socket over.
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

    /// Goes on by the settings that `added` was opened for.
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
                if let path = peer.path { self.accepted(descriptor, at: path) } else { self.accepted(descriptor, from: peer, isKnown: isKnown) }
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
        logger.warning("admin.failed", metadata: ["cause": "\(error)", "effect": "who asks the admin port has to wait"])
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
