internal import CCares
internal import Glibc

/// One configuration of c-ares (servers, search list, hosts file) with its sockets and its timer, driven by a loop.
///
/// Answers are handed out after c-ares has returned: its own callbacks may not free the channel, and who receives
/// an answer may well do that.
final class ResolverChannel {
    /// What differs from the system's configuration.
    struct Settings {
        /// `address:port`, comma separated; nil for those of /etc/resolv.conf.
        var servers: String?
        /// For the first attempt; c-ares doubles it each time it has been through all servers.
        var attemptMilliseconds: CInt = 2000
        var attempts: CInt = 3
    }

    typealias Answered = (Result<[IPAddress], ResolutionError>, _ timeToLive: Int) -> Void

    private let loop: EventLoop
    private var channel: ares_channel?
    private var sockets: [CInt: ResolverSocket] = [:]
    private var timeout: Deadline?
    private var depth = 0
    private var queries = 0
    private var isClosing = false
    private var closesWhenIdle = false
    private var finished: [() -> Void] = []

    /// c-ares reads /etc/resolv.conf here, blocking, like every program does when it starts.
    init(loop: EventLoop, settings: Settings) throws(ResolutionError) {
        self.loop = loop
        try Self.prepareLibrary()
        var options = ares_options()
        options.timeout = settings.attemptMilliseconds
        options.tries = settings.attempts
        options.sock_state_cb = { context, descriptor, readable, writable in
            guard let context else { return }
            Unmanaged<ResolverChannel>.fromOpaque(context).takeUnretainedValue()
                .watch(descriptor, read: readable != 0, write: writable != 0)
        }
        // Unretained: the channel calls back no later than in ares_destroy, which comes before our end.
        options.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
        let mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS
        // Hosts file, then DNS, whatever nsswitch.conf says: c-ares knows no other sources, and a line that names
        // only "resolve" would leave it none.
        let status = "fb".withCString { lookups in
            options.lookups = UnsafeMutablePointer(mutating: lookups)
            return ares_init_options(&channel, &options, mask)
        }
        guard status == ARES_SUCCESS, let channel else {
            throw ResolutionError(status: status, name: "resolver")
        }
        if let servers = settings.servers {
            let status = ares_set_servers_ports_csv(channel, servers)
            guard status == ARES_SUCCESS else { throw ResolutionError(status: status, name: servers) }
        }
        timeout = Deadline(loop: loop) { [unowned self] in
            process(read: ARES_SOCKET_BAD, write: ARES_SOCKET_BAD)
        }
    }

    deinit {
        // Whoever holds the channel closes it before letting go; this is for an init that threw half-way.
        if let channel { ares_destroy(channel) }
    }

    /// Asks for A and AAAA; `answered` is called once, never while c-ares is at work, but perhaps before this returns.
    func lookUp(_ name: String, answered: @escaping Answered) {
        guard let channel, !isClosing else { return answered(.failure(.cancelled), 0) }
        let query = Query(name: name, channel: self, answered: answered)
        queries += 1
        var hints = ares_addrinfo_hints()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        // ENVHOSTS: the variable CARES_HOSTS may name another hosts file. Sorted by RFC 6724, since NOSORT isn't set.
        hints.ai_flags = ARES_AI_ENVHOSTS
        whileWorking {
            // Released in the callback, which c-ares calls exactly once for each query, if need be in ares_destroy.
            let context = Unmanaged.passRetained(query).toOpaque()
            ares_getaddrinfo(
                channel, name, nil, &hints,
                { context, status, _, info in
                    guard let context else { return }
                    Unmanaged<Query>.fromOpaque(context).takeRetainedValue().finish(status: status, info: info)
                }, context)
        }
    }

    var isClosed: Bool { channel == nil }

    /// Ends every query in progress with `.cancelled`, closes the sockets. May be called from within an answer.
    func close() {
        isClosing = true
        whileWorking {}
    }

    /// Closes when the last query in progress has its answer.
    func closeWhenIdle() {
        closesWhenIdle = true
        if queries == 0 { close() }
    }

    fileprivate func process(read: CInt, write: CInt) {
        whileWorking {
            if let channel { ares_process_fd(channel, read, write) }
        }
    }

    /// Brackets each call into c-ares: what has to wait for its return is done when the outermost one has returned.
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
        // An answer may start the next look-up, or drop the resolver and this channel with it.
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

    /// c-ares wants to hear about a socket, or (neither) is about to close it.
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

    /// One look-up in c-ares' hands.
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
            let answered = self.answered
            let answer = status == ARES_SUCCESS ? Self.read(info, name: name) : .failure(.init(status: status, name: name))
            let timeToLive = Self.timeToLive(of: info)
            ares_freeaddrinfo(info)
            channel.queries -= 1
            if channel.queries == 0, channel.closesWhenIdle { channel.isClosing = true }
            channel.finished.append { answered(answer, timeToLive) }
        }

        private static func read(
            _ info: UnsafeMutablePointer<ares_addrinfo>?, name: String
        ) -> Result<[IPAddress], ResolutionError> {
            var addresses: [IPAddress] = []
            var node = info?.pointee.nodes
            while let current = node {
                if let address = current.pointee.ai_addr.flatMap({ SocketAddress($0) })?.ip,
                    !addresses.contains(address)
                {
                    addresses.append(address)
                }
                node = current.pointee.ai_next
            }
            return addresses.isEmpty ? .failure(.noAddresses(name)) : .success(addresses)
        }

        /// Seconds: the shortest of all records that led to the addresses, aliases included.
        private static func timeToLive(of info: UnsafeMutablePointer<ares_addrinfo>?) -> Int {
            var shortest = CInt.max
            var node = info?.pointee.nodes
            while let current = node {
                shortest = min(shortest, current.pointee.ai_ttl)
                node = current.pointee.ai_next
            }
            var alias = info?.pointee.cnames
            while let current = alias {
                shortest = min(shortest, current.pointee.ttl)
                alias = current.pointee.next
            }
            return Int(shortest)
        }
    }

    /// Done once in the process, before any channel.
    private static let libraryStatus = ares_library_init(ARES_LIB_INIT_ALL)

    private static func prepareLibrary() throws(ResolutionError) {
        guard libraryStatus == ARES_SUCCESS else { throw ResolutionError(status: libraryStatus, name: "resolver") }
    }
}

/// One of c-ares' sockets, UDP or TCP. c-ares owns the descriptor.
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
