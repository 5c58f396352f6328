import Glibc
package import Logging
import PinproxyClients
package import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySecurity
import PinproxyTLS

/// `pinproxy signer`: has the local authority's key, and issues leaves for hosts that the configuration intercepts.
package final class SignerService {
    /// Most connections: one of each worker, also of a proxy that hands over, as far as there are descriptors.
    private let connectionLimit: Int
    /// Refusals that are logged in a minute.
    private static let refusalsLogged = 30

    private let load: () throws(ConfigurationProblems) -> Snapshot
    private let logger: Logger
    private let notices: DaemonNotices
    private let loop: EventLoop
    private var signer: LeafSigner
    /// The files' stamps, as last read.
    private var stamps: [String: FileStamp]
    private let socket: String
    private var listener: Listener?
    private var connections: [ObjectIdentifier: SignerConnection] = [:]
    private var minute: (began: UInt64, refusals: Int) = (0, 0)

    /// - Parameters:
    ///   - inherited: a listening socket of packets, from a supervisor, taken over; nil: one is made where the
    ///     configuration says.
    ///   - load: reads the configuration, at each reload.
    package init(
        snapshot: Snapshot, inherited: CInt?, logger: Logger, notices: DaemonNotices,
        load: @escaping () throws(ConfigurationProblems) -> Snapshot
    ) throws {
        self.logger = logger
        self.notices = notices
        self.load = load
        loop = try EventLoop()
        Descriptor.raiseLimit()
        connectionLimit = max(1, min(4096, Descriptor.limit - 64))
        let files = snapshot.authorityFiles
        let now = WallClock.milliseconds() / 1000
        let (authority, provenance) = try files.loadOrCreate(at: now)
        if case .found = provenance {
        } else {
            logger.notice("authority.created", metadata: ["certificate": "\(files.certificate)"])
        }
        signer = LeafSigner(
            files.withRotation(authority, at: now), lifetime: snapshot.authority.leafLifetime.components.seconds,
            allowance: LeafAllowance(at: MonotonicTime.now().nanoseconds), intercepts: Self.policy(of: snapshot))
        stamps = Self.stamps(of: snapshot)
        socket = inherited == nil ? snapshot.authority.signer ?? "" : "systemd"
        try listen(at: socket, inherited)
    }

    /// Serves until it is stopped. Called once, on the main thread.
    package func run() throws {
        let signals = ControlSignals.block()
        let service = LoopBound(self, on: loop)
        try signals.watch { signal in service.post { if signal == SIGHUP { $0.reload() } else { $0.loop.stop() } } }
        logger.notice("signer.start", metadata: ["socket": "\(socket)"])
        notices.ready()
        loop.run()
        notices.stopping()
        listener?.stop()
        logger.notice("signer.stop")
    }

    private func listen(at path: String, _ inherited: CInt?) throws {
        let socket: ListeningSocket
        if let inherited {
            socket = .packets(inherited)
        } else {
            if UnixSocket.isAnswered(at: path, kind: .packets) { throw SystemError(code: EADDRINUSE, call: path) }
            socket = try .packets(at: path)
        }
        let shortage = Shortage("signer.accept", loop: loop, logger: logger) { [weak self] in
            self.map { !$0.hasRoom } ?? false
        }
        listener = Listener(
            loop: loop, socket: socket, hasRoom: { [weak self] in self?.hasRoom ?? false },
            mustWait: { [connectionLimit] in
                shortage.strike(.warning, ["cause": "\(connectionLimit) connections are open"])
            },
            accepted: { [weak self] socket, _, isLate in
                if isLate { shortage.met() }
                self?.accepted(socket)
            }, failed: { shortage.strike(.warning, ["cause": "\($0)"]) })
        listener?.resume()
    }

    private var hasRoom: Bool { connections.count < connectionLimit }

    private func accepted(_ socket: consuming Descriptor) {
        let connection = SignerConnection(socket, loop: loop) { [weak self] in
            self?.answer($0) ?? .refused("the signer is stopping")
        } ended: { [weak self] connection in
            guard let self else { return }
            connections[ObjectIdentifier(connection)] = nil
            listener?.resume()
        }
        connections[ObjectIdentifier(connection)] = connection
    }

    private func answer(_ packet: [UInt8]) -> LeafAnswer {
        let nanoseconds = MonotonicTime.now().nanoseconds
        var reply = signer.answer(packet, at: WallClock.milliseconds() / 1000, nanoseconds: nanoseconds)
        // The proxy has read its files again.
        if reply.isPerhapsOutdated, stamps.contains(where: { FileStamp($0) != $1 }) {
            reload()
            reply = signer.answer(packet, at: WallClock.milliseconds() / 1000, nanoseconds: nanoseconds)
        }
        let name = reply.host?.description ?? ""
        switch reply.answer {
        case .leaf: logger.info("leaf.issued", metadata: ["host": "\(name)"])
        case .refused(let reason):
            if nanoseconds - minute.began >= 60_000_000_000 { minute = (nanoseconds, 0) }
            minute.refusals += 1
            guard minute.refusals <= Self.refusalsLogged else { break }
            var fields: Logger.Metadata = ["host": "\(name)", "cause": "\(reason)"]
            if minute.refusals == Self.refusalsLogged {
                fields["effect"] = "no more refusals are logged in this minute"
            }
            logger.warning("leaf.refused", metadata: fields)
        }
        return reply.answer
    }

    /// Follows the files, or keeps what is in force if they can't be used.
    private func reload() {
        notices.reloading()
        defer { notices.ready() }
        // Refused files are read again once they change.
        for path in stamps.keys { stamps[path] = FileStamp(path) }
        do {
            let fresh = try load()
            stamps = Self.stamps(of: fresh)
            let now = WallClock.milliseconds() / 1000
            let files = fresh.authorityFiles
            let authorities = files.withRotation(try files.load(at: now), at: now)
            for problem in authorities.problems {
                logger.warning("authority.failed", metadata: ["cause": "\(problem)"])
            }
            signer.replace(
                with: authorities, lifetime: fresh.authority.leafLifetime.components.seconds,
                intercepts: Self.policy(of: fresh))
            logger.notice("config.reload", metadata: ["files": "\(fresh.files.joined(separator: ", "))"])
        } catch {
            logger.error(
                "config.error", metadata: ["cause": "\(error)", "effect": "what was read before stays in force"])
        }
    }

    private static func stamps(of snapshot: Snapshot) -> [String: FileStamp] {
        // A directory is another one once a file was added.
        let paths =
            snapshot.files + snapshot.listings.map(\.directory) + snapshot.authorityFiles.paths
            + (snapshot.policyFile.map { [$0] } ?? [])
        return Dictionary(paths.map { ($0, FileStamp($0)) }) { first, _ in first }
    }

    private static func policy(of snapshot: Snapshot) -> (ServerName, UInt16) -> Bool {
        { name, port in HostDecision.intercepts(name.description, port: port, in: snapshot) }
    }
}

extension ListeningSocket {
    /// A signer's own socket, for its user and group.
    fileprivate static func packets(at path: String) throws(SystemError) -> ListeningSocket {
        packets(try UnixSocket.listen(at: path, backlog: 64, mode: 0o660, kind: .packets).release(), .unix(path))
    }

    fileprivate static func packets(_ raw: CInt, _ place: Endpoint = .unix("")) -> ListeningSocket {
        ListeningSocket(raw: raw, port: .proxy, wanted: place, place: place, isNamed: false)
    }
}
