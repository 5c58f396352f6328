import Glibc
import Logging
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// The proxy's listening sockets, by the configuration in force. On the daemon's main thread.
final class ProxyListening {
    private let inherited: [InheritedSocket]
    private let notices: DaemonNotices
    private let logger: Logger
    private(set) var sockets: [ListeningSocket] = []

    /// - Parameter inherited: listening sockets from a supervisor.
    init(inherited: [InheritedSocket], notices: DaemonNotices, logger: Logger) {
        self.inherited = inherited
        self.notices = notices
        self.logger = logger
    }

    var addresses: [SocketAddress] { sockets.compactMap(\.address) }

    var description: String { sockets.map(\.place.description).joined(separator: ", ") }

    /// The addresses without those for load balancers.
    func directAddresses(_ proxy: ProxySettings) -> [SocketAddress] {
        let senders = proxy.listen.senders
        return sockets.filter { senders[$0.wanted] == nil }.compactMap(\.address)
    }

    // MARK: At the start

    func open(as snapshot: Snapshot) throws {
        let file = snapshot.files.first ?? ""
        let listen = snapshot.proxy.listen
        let named = listen.takesInherited ? ListeningSocket.named(for: .proxy, among: inherited) : []
        if listen.takesInherited, named.isEmpty { throw MissingSocket(port: .proxy, file: file) }
        let addresses = listen.addresses.compactMap(SocketAddress.init).filter { address in
            !named.contains { $0.serves(address) }
        }
        let taken = named + (try ListeningSocket.open(.proxy, on: addresses, namedIn: file, inherited: inherited))
        sockets = taken + (try ListeningSocket.open(.proxy, at: listen.paths, snapshot.proxy.socket, namedIn: file))
    }

    /// Closes unwanted sockets: clients there would wait for ever. The supervisor keeps the others.
    /// - Parameter isHeld: whether another port has taken a socket over.
    func settle(_ snapshot: Snapshot, isHeld: (InheritedSocket) -> Bool) {
        for socket in inherited where !sockets.contains(where: { $0.raw == socket.raw }) && !isHeld(socket) {
            refuse(socket, namedIn: snapshot.files.first ?? "")
        }
        for socket in sockets where socket.isKept { notices.listening(socket.raw, socket.name) }
        sayWhere(snapshot)
    }

    private func refuse(_ socket: InheritedSocket, namedIn file: String) {
        defer { close(socket.raw) }
        // From pinproxy.socket and from the previous process: one socket.
        if let address = socket.address, let own = sockets.first(where: { $0.serves(address) }) {
            if own.isNamed, own.name == socket.name { notices.notListening(socket.name) }
            return
        }
        let kind = socket.address.map { "that listens on \($0)" } ?? "that is not a TCP socket which listens"
        logger.warning(
            "config.warning",
            metadata: [
                "cause": """
                systemd hands over a socket named \"\(socket.name)\" \(kind), and no listen in \
                \(file) uses it: it is closed
                """
            ])
        notices.notListening(socket.name)
    }

    /// For users who can't ask this process.
    private func sayWhere(_ snapshot: Snapshot) {
        guard sockets.contains(where: \.isNamed) else { return }
        let file = ListenFile(in: snapshot.stateDirectory)
        do throws(FileProblem) {
            try file.write(directAddresses(snapshot.proxy))
        } catch {
            logger.warning(
                "state.unwritable",
                metadata: [
                    "file": "\(file.path)", "cause": "\(error)",
                    "effect": "pinproxy env and exec don't know where this proxy listens",
                ])
        }
    }

    // MARK: At a reload

    /// systemd hands sockets over only at a start.
    func needsRestart(_ listen: ListenSettings) -> Bool {
        listen.takesInherited != sockets.contains(where: \.isNamed)
    }

    /// Opens what a new configuration adds, before it takes effect.
    func openAdded(by fresh: Snapshot) throws(ConfigurationProblems) -> [ListeningSocket] {
        guard !needsRestart(fresh.proxy.listen) else { return [] }
        let added = fresh.proxy.listen.addresses.compactMap(SocketAddress.init).filter { address in
            !sockets.contains { $0.serves(address) }
        }
        let paths = fresh.proxy.listen.paths.filter { path in !sockets.contains { $0.serves(.unix(path)) } }
        let file = fresh.files.first ?? ""
        func refused(_ cause: String) -> ConfigurationProblems {
            ConfigurationProblems([Problem(.error, at: Place(file: file), cause)])
        }
        let opened: [ListeningSocket]
        do throws(ListenError) {
            opened = try ListeningSocket.open(.proxy, on: added, namedIn: file)
        } catch {
            let own = sockets.first { $0.address?.port == error.address.port }
            guard error.cause.code == EADDRINUSE, let own else { throw refused("\(error)") }
            throw refused(
                "proxy.listen: \(error.address) can't be opened while the proxy listens on \(own.place): restart it")
        }
        do throws(SocketFileError) {
            return opened + (try ListeningSocket.open(.proxy, at: paths, fresh.proxy.socket, namedIn: file))
        } catch {
            for socket in opened { socket.discard() }
            throw refused("\(error)")
        }
    }

    /// - Parameter added: the sockets of ``openAdded(by:)``.
    /// - Returns: the sockets that are no longer wanted. Their acceptor closes them.
    func follow(_ snapshot: Snapshot, adding added: [ListeningSocket]) -> [ListeningSocket] {
        let wanted = snapshot.proxy.listen.places
        func stays(_ socket: ListeningSocket) -> Bool { socket.isNamed || wanted.contains(where: socket.serves) }
        let removed = sockets.filter { !stays($0) }
        sockets = sockets.filter(stays)
        for socket in sockets { socket.apply(snapshot.proxy.socket) }
        sockets += added
        if !added.isEmpty || !removed.isEmpty { sayWhere(snapshot) }
        for socket in removed where socket.isKept { notices.notListening(socket.name) }
        for socket in added where socket.isKept { notices.listening(socket.raw, socket.name) }
        return removed
    }
}

extension ListenSettings {
    /// Besides a supervisor's sockets.
    var places: [Endpoint] {
        addresses.compactMap { SocketAddress($0).map(Endpoint.network) } + paths.map(Endpoint.unix)
    }

    /// Places with PROXY headers, and their trusted senders.
    var senders: [Endpoint: [AddressRange]] {
        var senders: [Endpoint: [AddressRange]] = [:]
        for (address, ranges) in proxyProtocol {
            if let address = SocketAddress(address) { senders[.network(address)] = ranges }
        }
        return senders
    }
}

/// The addresses of `listen: systemd`, for users who can't ask the proxy. Outlives the process, like the sockets.
package struct ListenFile {
    package static let name = "listen"
    private let directory: TrustedDirectory
    package var path: String { "\(directory.path)/\(Self.name)" }

    package init(in stateDirectory: String) { directory = TrustedDirectory(stateDirectory) }

    func write(_ addresses: [SocketAddress]) throws(FileProblem) {
        try directory.write(Array(addresses.map { "\($0)\n" }.joined().utf8), to: Self.name, mode: 0o644)
    }

    /// Empty if there is no such file.
    package func read() -> [Substring] {
        guard let file = try? directory.read(Self.name) else { return [] }
        return String(decoding: file.bytes, as: UTF8.self).split(separator: "\n")
    }
}
