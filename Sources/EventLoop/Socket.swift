internal import CPinproxyShims
internal import Glibc

/// TCP sockets, always non-blocking and close-on-exec.
package enum Socket {
    /// Listens on that address; port 0 lets the system choose (see `localAddress`).
    ///
    /// Sets SO_REUSEADDR against TIME_WAIT after a restart; an IPv6 socket takes IPv6 only, so that `[::]` and
    /// `0.0.0.0` can be used side by side. `reusePort` lets several sockets share the address, with connections spread
    /// over them.
    package static func listen(
        on address: SocketAddress, backlog: CInt, reusePort: Bool
    ) throws(SystemError) -> Descriptor {
        let socket = try open(for: address.ip)
        try enable(SO_REUSEADDR, level: SOL_SOCKET, on: socket.raw)
        if reusePort { try enable(SO_REUSEPORT, level: SOL_SOCKET, on: socket.raw) }
        if address.ip.isIPv6 { try enable(IPV6_V6ONLY, level: CInt(IPPROTO_IPV6), on: socket.raw) }
        let raw = socket.raw
        guard address.withSockaddr({ Glibc.bind(raw, $0, $1) }) == 0 else { throw SystemError.last("bind") }
        guard Glibc.listen(raw, backlog) == 0 else { throw SystemError.last("listen") }
        return socket
    }

    /// Two connected stream sockets within the process.
    package static func pair() throws(SystemError) -> (CInt, CInt) {
        var ends: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemError.last("socketpair") }
        return (ends[0], ends[1])
    }

    package enum AcceptResult: ~Copyable {
        /// A connected socket, with TCP_NODELAY for TCP; nil for a Unix peer.
        case accepted(Descriptor, peer: SocketAddress?)
        case wouldBlock
        /// EMFILE, ENFILE, ENOBUFS and ENOMEM leave the connection in the queue: pause reading, or it spins.
        case failed(SystemError)
    }

    package static func accept(_ listener: CInt) -> AcceptResult {
        while true {
            var raw: CInt = -1
            let peer = SocketAddress { address, length in
                raw = accept4(listener, address, length, CInt(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
                return raw
            }
            if raw >= 0 {
                let socket = Descriptor(owning: raw)
                guard let peer else { return .failed(SystemError(code: EAFNOSUPPORT, call: "accept4")) }
                setNoDelay(socket.raw)
                return .accepted(socket, peer: peer)
            }
            let code = errno
            switch code {
            case EAGAIN, EWOULDBLOCK:
                return .wouldBlock
            // The connection died in the queue: accept(2) says to treat its network errors as "try again".
            case EINTR, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, ENETUNREACH:
                continue
            default:
                return .failed(SystemError(code: code, call: "accept4"))
            }
        }
    }

    /// Starts to connect, with TCP_NODELAY and the DSCP mark. Writable when done; see `pendingError`.
    package static func beginConnect(to address: SocketAddress, dscp: UInt8 = 0) throws(SystemError) -> Descriptor {
        let socket = try open(for: address.ip)
        setNoDelay(socket.raw)
        if dscp != 0 { mark(socket.raw, dscp) }
        let raw = socket.raw
        // EINTR: a non-blocking connect continues, as with EINPROGRESS (POSIX).
        guard address.withSockaddr({ Glibc.connect(raw, $0, $1) }) == 0 || errno == EINPROGRESS || errno == EINTR
        else { throw SystemError.last("connect") }
        return socket
    }

    /// Whether the address is this machine's by bind(2), local routes included. False without a descriptor.
    package static func isLocal(_ ip: IPAddress) -> Bool {
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let raw = socket(ip.isIPv6 ? AF_INET6 : AF_INET, type, 0)
        guard raw >= 0 else { return false }
        let descriptor = Descriptor(owning: raw)
        return SocketAddress(ip: ip, port: 0).withSockaddr { bind(descriptor.raw, $0, $1) } == 0
    }

    /// The pending error (SO_ERROR), 0 if none; reading it clears it.
    package static func pendingError(_ descriptor: CInt) -> CInt {
        var code: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else { return errno }
        return code
    }

    /// Whether the descriptor is a stream socket.
    package static func isStream(_ descriptor: CInt) -> Bool {
        var type: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == CInt(SOCK_STREAM.rawValue)
    }

    /// This end's address; nil unless it is an internet socket.
    package static func localAddress(_ descriptor: CInt) -> SocketAddress? {
        SocketAddress { getsockname(descriptor, $0, $1) }
    }

    /// Sends small writes at once (TCP_NODELAY). A failure only costs time.
    package static func setNoDelay(_ descriptor: CInt) {
        var on: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Marks later packets (DSCP, RFC 2474), if the kernel allows it.
    package static func mark(_ descriptor: CInt, _ dscp: UInt8) {
        var field = CInt(dscp) << 2
        setsockopt(descriptor, CInt(IPPROTO_IP), IP_TOS, &field, socklen_t(MemoryLayout<CInt>.size))
        setsockopt(descriptor, CInt(IPPROTO_IPV6), IPV6_TCLASS, &field, socklen_t(MemoryLayout<CInt>.size))
    }

    private static func open(for ip: IPAddress) throws(SystemError) -> Descriptor {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let raw = socket(ip.isIPv6 ? AF_INET6 : AF_INET, type, 0)
        guard raw >= 0 else { throw SystemError.last("socket") }
        return Descriptor(owning: raw)
    }

    private static func enable(_ option: CInt, level: CInt, on descriptor: CInt) throws(SystemError) {
        var on: CInt = 1
        guard setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<CInt>.size)) == 0 else {
            throw SystemError.last("setsockopt")
        }
    }
}
