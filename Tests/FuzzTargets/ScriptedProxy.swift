internal import Glibc
internal import Logging
import PinproxyAddresses
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySecurity
import PinproxySerialization
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// A worker of the proxy. The fuzzer runs its loop, and plays its client and its parent proxy.
final class ScriptedProxy {
    let loop: EventLoop
    /// Where the worker's upstream connections arrive.
    private let parent: Descriptor
    private let worker: WorkerContext
    private let clientTLS: TLSClientContext
    /// By the chosen protocol. The proxy remembers a host's choice, so each protocol has another host.
    private let originTLS: [String: (host: String, context: TLSServerContext)]

    init() throws {
        // Only this process writes to its sockets; a closed one must not end it.
        signal(SIGPIPE, SIG_IGN)
        guard let loopback = IPAddress("127.0.0.1") else { fatalError("an address can be read") }
        parent = try Socket.listen(on: SocketAddress(ip: loopback, port: 0), backlog: 64, reusePort: false)
        let port = Socket.localAddress(parent.raw)?.port ?? 0
        let file = "/fuzz/pinproxy.yaml"
        let main = """
            proxy: {listen: 127.0.0.1:0, workers: 1}
            upstream: {parent: "http://127.0.0.1:\(port)", block_addresses: [], trust: [ca.pem]}
            log: {access: false}
            limits: {request_head: 2KiB, response_head: 2KiB, inspected_body: 1KiB, replay_body: 1KiB}
            pins: pins.yaml

            """
        let time: @Sendable () -> Int64 = { FixedChain.time }
        let authority = try LocalAuthority.temporary(at: time())
        clientTLS = try TLSClientContext()
        var originTLS: [String: (host: String, context: TLSServerContext)] = [:]
        for (alpn, host) in [("h2", "h2.test"), ("http/1.1", "h1.test")] {
            var options = TLSServerContext.Options()
            options.applicationProtocols = [alpn]
            options.identity = try authority.mint(for: .dns(host), at: time(), lifetime: 86_400)
            originTLS[alpn] = (host, try TLSServerContext(options: options))
        }
        self.originTLS = originTLS
        let snapshot = try Snapshot.load(
            file,
            from: ConfigurationFiles(contents: [
                .init(path: file, bytes: Array(main.utf8)),
                .init(path: "/fuzz/pins.yaml", bytes: Array(Self.pins.utf8)),
                .init(path: "/fuzz/ca.pem", bytes: Array(authority.certificate.pem.utf8)),
            ]), stateDirectory: "/fuzz/state")
        let output = try LogOutput(descriptor: -1, format: .json, level: .critical)
        let logger = Logger(label: "fuzz") { _ in EventLogHandler(output: output) }
        let loop = try EventLoop()
        let listeners = OwnListeners()
        let configuration = try ActiveConfiguration(
            snapshot, leaves: LeafCache(authority: .temporary(at: time()), lifetime: 86_400), logger: logger)
        let delivery = try ReportDelivery(
            loop: loop, upstream: configuration.upstream, timeouts: snapshot.timeouts, listeners: listeners,
            logger: logger, unixTime: time,
            refusal: {
                let record = TaskRecord()
                return ProxyError.exchange($0, $1, of: record).refusal(for: Requester(record))
            })
        let pins = PinWatch(
            ledger: PinLedger(directory: "/fuzz/state", logger: logger),
            chains: ChainRecorder(directory: "/fuzz/state", logger: logger),
            incidents: IncidentLedger(directory: "/fuzz/state", logger: logger),
            reporter: PinReporter(delivery, on: loop, logger: logger))
        let context = try ProxyContext(
            pins: pins, rules: RuleLedger(directory: "/fuzz/state", logger: logger), listeners: listeners,
            logger: logger,
            logOutput: output, freeMemory: try FreeMemory(), idleUpstreams: 8, sessionCount: 1,
            bodies: SameThread(), unixTime: time)
        self.loop = loop
        worker = try WorkerContext(loop: loop, number: 0, shared: context, configuration: configuration)
    }

    private static let pins = """
        defaults: {action: intercept}
        hosts:
          - {match: tunnel.test, action: tunnel}
          - {match: deny.test, action: deny}
          - match: rules.test
            request: {set_headers: {X-Set: set}}
            response: {serializer: json, status: [200-299]}
          - {match: follow.test, session: {redirects: follow}}

        """

    /// How both sides negotiate these protocols.
    func openings(client: String, origin: String) -> (client: ScriptedPeer.Opening, origin: ScriptedPeer.Opening) {
        guard let (host, context) = originTLS[origin] else { return (.none, .none) }
        return (.client(clientTLS, host: host, protocols: [client]), .origin(context))
    }

    /// Accepts an upstream connection, if there is one. Polls first, since `accept` allocates a socket before it looks.
    func nextUpstream() -> Descriptor? {
        var arrived = pollfd(fd: parent.raw, events: Int16(POLLIN), revents: 0)
        guard poll(&arrived, 1, 0) == 1, case .accepted(let socket, _) = Socket.accept(parent.raw) else { return nil }
        return socket
    }

    /// - Returns: the client's end, which the caller closes.
    func accept(ended: @escaping () -> Void) throws -> (client: CInt, connection: ClientConnection) {
        let (outer, inner) = try Socket.pair()
        let connection = ClientConnection(
            worker: worker, stream: ByteStream(loop: loop, descriptor: Descriptor(owning: inner)),
            arrival: Arrival(from: .unix("fuzz"), peer: ClientPeer(nil)), isCounted: true
        ) { _ in ended() }
        connection.start()
        return (outer, connection)
    }
}

/// Judges bodies at once, so that an input always takes the same number of turns.
private struct SameThread: BodyExecutor {
    func perform<Work: BodyWork>(
        _ work: Work, on body: [UInt8], of host: String,
        answer: @escaping @Sendable (Result<Work.Outcome, BodyWorkFailure>) -> Void
    ) -> BodyWorkTicket {
        answer(.success(work.outcome(on: body)))
        return BodyWorkTicket(cancelled: {})
    }
}
