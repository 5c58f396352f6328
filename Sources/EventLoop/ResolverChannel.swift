internal import CPinproxyCares
internal import Glibc

/// A c-ares channel with its sockets and timer, driven by a loop. Answers are delivered after c-ares has returned,
/// since receivers may free the channel.
final class ResolverChannel {
    struct Settings {
        /// `address:port`, comma separated; nil: those of /etc/resolv.conf.
        var servers: String?
        /// For the first attempt; c-ares doubles it after each round of all servers.
        var attemptMilliseconds: CInt = 2000
        var attempts: CInt = 3
        var openSocket = ResolverSockets.system
    }

    private let loop: EventLoop
    private let settings: Settings
    private let hosts: HostsFile
    private var channel: ares_channel?
    private var sockets: [CInt: ResolverSocket] = [:]
    private var timeout: Deadline?
    private var depth = 0
    private var isClosing = false
    private var finished: [() -> Void] = []
    /// The last socket could not be opened.
    fileprivate private(set) var lacksDescriptors = false
    /// The socket that c-ares reads an answer from.
    private var reading: CInt = ARES_SOCKET_BAD

    typealias Answered = (NameLookup.Reply, NameSource) -> Void

    /// c-ares reads /etc/resolv.conf here, blocking, like every program at its start.
    init(loop: EventLoop, settings: Settings) throws(ResolutionError) {
        self.loop = loop
        self.settings = settings
        try Self.prepareLibrary()
        hosts = try HostsFile()
        var options = shim_ares_options()
        options.known.timeout = settings.attemptMilliseconds
        options.known.tries = settings.attempts
        // No search list: both families must be queried under one name.
        options.known.ndomains = 0
        options.known.sock_state_cb = { context, descriptor, readable, writable in
            guard let context else { return }
            Unmanaged<ResolverChannel>.fromOpaque(context).takeUnretainedValue()
                .watch(descriptor, read: readable != 0, write: writable != 0)
        }
        // Unretained: the last callback comes in ares_destroy, before our end.
        let context = Unmanaged.passUnretained(self).toOpaque()
        options.known.sock_state_cb_data = context
        let mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_DOMAINS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS
        // Hosts file, then DNS, whatever nsswitch.conf says: c-ares knows no other source, such as "resolve".
        let status = "b".withCString { lookups in
            options.known.lookups = UnsafeMutablePointer(mutating: lookups)
            return shim_ares_init_options(&channel, &options, mask)
        }
        guard status == shim_ARES_SUCCESS, let channel else {
            throw ResolutionError(status: status, name: "resolver")
        }
        ares_set_socket_functions(channel, ResolverSockets.functions, context)
        if let servers = settings.servers {
            let status = ares_set_servers_ports_csv(channel, servers)
            guard status == shim_ARES_SUCCESS else { throw ResolutionError(status: status, name: servers) }
        }
        timeout = Deadline(loop: loop, owner: self) { $0.process(read: ARES_SOCKET_BAD, write: ARES_SOCKET_BAD) }
    }

    deinit {
        // Holders close the channel before releasing it; this is for an init that threw.
        if let channel { ares_destroy(channel) }
    }

    /// Looks the name up in the hosts file, then in DNS.
    /// - Parameters:
    ///   - begun: called at most once, before `answered`, with addresses to begin with.
    ///   - answered: called once. Both perhaps before this returns, never within c-ares.
    func lookUp(
        _ name: String, begun: @escaping (AddressAnswer) -> Void, answered: @escaping Answered
    ) {
        guard channel != nil, !isClosing else { return answered(.failed(.cancelled), NameSource(.server(nil))) }
        // c-ares compares the text, without a final dot.
        let known = hosts.addresses(of: name.hasSuffix(".") ? String(name.dropLast()) : name)
        guard known.isEmpty else { return answered(.addresses(known, timeToLive: 0), NameSource(.hostsFile)) }
        LookUp(
            name, candidates: hosts.candidates(for: name), channel: self, loop: loop, begun: begun, answered: answered
        ).start()
    }

    /// Ends every query with `.cancelled`, and closes the sockets. May be called within an answer.
    func close() {
        isClosing = true
        whileWorking {}
    }

    /// Queries DNS for one family of exactly this name; `answered` is called once, never within c-ares.
    fileprivate func ask(_ name: String, _ family: NameLookup.Family, answered: @escaping Answered) {
        guard let channel, !isClosing else { return answered(.failed(.cancelled), NameSource(.server(nil))) }
        let query = Query(name: name, channel: self, answered: answered)
        var hints = ares_addrinfo_hints()
        hints.ai_family = family == .ipv6 ? AF_INET6 : AF_INET
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        whileWorking {
            // Released in the callback, which c-ares calls exactly once. Sorted by RFC 6724.
            let context = Unmanaged.passRetained(query).toOpaque()
            ares_getaddrinfo(
                channel, name, nil, &hints,
                { context, status, _, info in
                    guard let context else { return }
                    Unmanaged<Query>.fromOpaque(context).takeRetainedValue().finish(status: status, info: info)
                }, context)
        }
    }

    fileprivate func process(read: CInt, write: CInt) {
        whileWorking {
            reading = read
            if let channel { ares_process_fd(channel, read, write) }
            reading = ARES_SOCKET_BAD
        }
    }

    /// The server that sent the answer being read; nil: none, as after the last timeout.
    fileprivate var answeringServer: SocketAddress? {
        guard reading != ARES_SOCKET_BAD else { return nil }
        return SocketAddress(filledBy: { getpeername(reading, $0, $1) })
    }

    /// Brackets each call into c-ares: deferred work runs when the outermost one has returned.
    private func whileWorking(_ work: () -> Void) {
        depth += 1
        work()
        depth -= 1
        guard depth == 0 else { return }
        if isClosing, let channel {
            depth += 1
            ares_destroy(channel)
            depth -= 1
            self.channel = nil
            timeout = nil
        }
        setTimeout()
        // An answer may start the next look-up, or release the resolver and this channel.
        let answers = finished
        finished = []
        for answer in answers { answer() }
    }

    private func setTimeout() {
        guard let channel else { return }
        var time = timeval()
        if ares_timeout(channel, nil, &time) == nil {
            timeout?.clear()
        } else {
            timeout?.set(
                afterNanoseconds: UInt64(max(time.tv_sec, 0)) * 1_000_000_000 + UInt64(max(time.tv_usec, 0)) * 1000)
        }
    }

    // MARK: Sockets

    /// Opens a socket for c-ares: -1 and errno on failure, as socket(2).
    func openSocket(_ family: CInt, _ type: CInt, _ proto: CInt) -> CInt {
        let flags = CInt(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = settings.openSocket(family, type | flags, proto)
        lacksDescriptors = descriptor < 0 && SystemError.last("socket").isLackOfDescriptors
        return descriptor
    }

    /// Sets the interest that c-ares has in a socket; neither before closing it.
    private func watch(_ descriptor: CInt, read: Bool, write: Bool) {
        guard read || write else {
            sockets.removeValue(forKey: descriptor)?.source?.invalidate()
            return
        }
        let socket: ResolverSocket
        if let known = sockets[descriptor] {
            socket = known
        } else {
            socket = ResolverSocket(descriptor: descriptor, channel: self)
            socket.source = SocketSource(loop: loop, descriptor: descriptor, handler: socket)
            sockets[descriptor] = socket
        }
        socket.source?.wantsRead = read
        socket.source?.wantsWrite = write
    }

    private final class Query {
        private let name: String
        private let channel: ResolverChannel
        private let answered: Answered

        init(name: String, channel: ResolverChannel, answered: @escaping Answered) {
            self.name = name
            self.channel = channel
            self.answered = answered
        }

        func finish(status: CInt, info: UnsafeMutablePointer<ares_addrinfo>?) {
            let reply = reply(status, info)
            ares_freeaddrinfo(info)
            let answered = self.answered
            let source = NameSource(.server(channel.answeringServer))
            channel.finished.append { answered(reply, source) }
        }

        private func reply(_ status: CInt, _ info: UnsafeMutablePointer<ares_addrinfo>?) -> NameLookup.Reply {
            if status == shim_ARES_ECONNREFUSED, channel.lacksDescriptors { return .failed(.noDescriptors(name)) }
            guard status == shim_ARES_SUCCESS else { return .failed(ResolutionError(status: status, name: name)) }
            let addresses = AddressInfo.addresses(info)
            if addresses.isEmpty { return .failed(.noAddresses(name)) }
            return .addresses(addresses, timeToLive: AddressInfo.timeToLive(of: info))
        }
    }

    /// Once per process, before any channel.
    private static let libraryStatus = ares_library_init(ARES_LIB_INIT_ALL)

    private static func prepareLibrary() throws(ResolutionError) {
        guard libraryStatus == shim_ARES_SUCCESS else { throw ResolutionError(status: libraryStatus, name: "resolver") }
    }
}

/// Drives a ``NameLookup``. Its queries keep it alive.
private final class LookUp {
    private var state: NameLookup
    private let channel: ResolverChannel
    private var begun: ((AddressAnswer) -> Void)?
    private var answered: ResolverChannel.Answered?
    /// The source of the last answer with addresses.
    private var source = NameSource(.server(nil))
    private let loop: EventLoop
    private var delay: Timer?
    /// The number of names queried, to recognise answers about earlier ones.
    private var asked = 0

    init(
        _ name: String, candidates: [String], channel: ResolverChannel, loop: EventLoop,
        begun: @escaping (AddressAnswer) -> Void, answered: @escaping ResolverChannel.Answered
    ) {
        state = NameLookup(name, candidates: candidates)
        self.channel = channel
        self.loop = loop
        self.begun = begun
        self.answered = answered
    }

    func start() { perform(state.start()) }

    private func perform(_ action: NameLookup.Action) {
        switch action {
        case .wait: break
        case .ask(let name): ask(name)
        case .startDelay:
            delay = Timer(loop: loop, owner: self, afterNanoseconds: NameLookup.resolutionDelayNanoseconds) {
                $0.delay = nil
                $0.perform($0.state.delayPassed())
            }
        case .begin(let addresses):
            delay = nil
            begun?(AddressAnswer(addresses, from: source))
            begun = nil
        case .end(let reply):
            delay = nil
            begun = nil
            let answered = self.answered
            self.answered = nil
            answered?(reply, source)
        }
    }

    private func ask(_ name: String) {
        asked += 1
        let number = asked
        for family in [NameLookup.Family.ipv6, .ipv4] where number == asked {
            channel.ask(name, family) { [self] reply, source in
                guard number == asked, answered != nil else { return }
                if case .addresses = reply { self.source = source }
                perform(state.received(reply, family))
            }
        }
    }
}

/// One of c-ares' sockets, UDP or TCP, which c-ares owns.
private final class ResolverSocket: SocketHandler {
    private let descriptor: CInt
    private weak var channel: ResolverChannel?
    var source: SocketSource?

    init(descriptor: CInt, channel: ResolverChannel) {
        self.descriptor = descriptor
        self.channel = channel
    }

    func socketReady(_ readiness: Readiness) {
        channel?.process(
            read: readiness.contains(.read) ? descriptor : ARES_SOCKET_BAD,
            write: readiness.contains(.write) ? descriptor : ARES_SOCKET_BAD)
    }
}
