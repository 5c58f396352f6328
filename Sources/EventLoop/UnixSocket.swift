internal import CPinproxyShims
internal import Glibc

/// Named sockets, always close-on-exec.
package enum UnixSocket {
    package enum Kind: Sendable {
        case stream
        /// Connections that preserve message boundaries (SOCK_SEQPACKET of unix(7)).
        case packets

        fileprivate var number: CInt { CInt(self == .stream ? SOCK_STREAM.rawValue : SOCK_SEQPACKET.rawValue) }
    }

    /// The peer of a connection, by the kernel (SO_PEERCRED).
    package struct Peer: Sendable, Equatable {
        package let user: UInt32
        /// 0: invisible from here, as from within a container.
        package let process: Int32

        package init(user: UInt32, process: Int32) {
            self.user = user
            self.process = process
        }
    }

    /// Listens at `path`, non-blocking, and replaces an abandoned socket. Any other file stays: EEXIST.
    /// - Parameters:
    ///   - mode: of the file, 0600 by default.
    ///   - group: of the file, by its number; nil: the process's.
    package static func listen(
        at path: String, backlog: CInt, mode: UInt32 = 0o600, group: UInt32? = nil, kind: Kind = .stream
    ) throws(SystemError) -> Descriptor {
        let socket = try open(kind, flags: CInt(SOCK_NONBLOCK.rawValue))
        // Set before the name exists: otherwise another user could connect in between.
        guard fchmod(socket.raw, 0o600) == 0 else { throw SystemError.last("fchmod") }
        try removeSocket(at: path)
        let raw = socket.raw
        guard try withAddress(path, { Glibc.bind(raw, $0, $1) }) == 0 else { throw SystemError.last("bind") }
        try allow(mode: mode, group: group, at: path)
        guard Glibc.listen(raw, backlog) == 0 else { throw SystemError.last("listen") }
        return socket
    }

    /// Sets who may connect to a socket of this process's; see ``listen(at:backlog:mode:group:)``.
    package static func allow(mode: UInt32, group: UInt32?, at path: String) throws(SystemError) {
        // Opens the socket itself, so that a change of the path doesn't matter.
        let raw = Glibc.open(path, shim_O_PATH | O_NOFOLLOW | O_CLOEXEC)
        guard raw >= 0 else { throw SystemError.last("open") }
        defer { close(raw) }
        var status = stat()
        guard fstat(raw, &status) == 0 else { throw SystemError.last("fstat") }
        guard status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == geteuid() else {
            throw SystemError(code: EEXIST, call: "chmod")
        }
        // Widened once the group is right.
        if let group, fchownat(raw, "", uid_t.max, group, shim_AT_EMPTY_PATH) != 0 {
            throw SystemError.last("fchownat")
        }
        // The kernel has no fchmod(2) for such a descriptor.
        if status.st_mode & 0o777 != mode, chmod("/proc/self/fd/\(raw)", mode) != 0 { throw SystemError.last("chmod") }
    }

    /// Whether a process listens there. Connects to find out.
    package static func isAnswered(at path: String, kind: Kind = .stream) -> Bool {
        do throws(SystemError) {
            _ = try connect(to: path, seconds: 1, kind: kind)
            return true
        } catch {
            return error.code == EAGAIN
        }
    }

    private static func removeSocket(at path: String) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw SystemError(code: EEXIST, call: "bind") }
        guard unlink(path) == 0 else { throw SystemError.last("unlink") }
    }

    /// Connects, blocking, with a timeout of `seconds` for each read and write.
    package static func connect(to path: String, seconds: Int, kind: Kind = .stream) throws(SystemError) -> Descriptor {
        let socket = try open(kind, flags: 0)
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(socket.raw, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        let raw = socket.raw
        guard try withAddress(path, { Glibc.connect(raw, $0, $1) }) == 0 else { throw SystemError.last("connect") }
        return socket
    }

    /// Connects without waiting: EAGAIN if the listener's queue is full.
    package static func connectAtOnce(to path: String, kind: Kind = .stream) throws(SystemError) -> Descriptor {
        let socket = try open(kind, flags: CInt(SOCK_NONBLOCK.rawValue))
        let raw = socket.raw
        guard try withAddress(path, { Glibc.connect(raw, $0, $1) }) == 0 else { throw SystemError.last("connect") }
        return socket
    }

    /// Takes one connection, non-blocking, from a listener's queue, if there is one.
    package static func accept(_ listener: CInt) throws(SystemError) -> CInt? {
        while true {
            let raw = accept4(listener, nil, nil, CInt(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
            if raw >= 0 { return raw }
            switch errno {
            case EAGAIN: return nil
            case EINTR, ECONNABORTED: continue
            default: throw SystemError.last("accept4")
            }
        }
    }

    /// Nil unless it is a connected Unix socket.
    package static func peer(of descriptor: CInt) -> Peer? {
        var credentials = shim_ucred()
        var length = socklen_t(MemoryLayout<shim_ucred>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
        return Peer(user: credentials.user, process: credentials.process)
    }

    private static func open(_ kind: Kind, flags: CInt) throws(SystemError) -> Descriptor {
        let raw = socket(AF_UNIX, kind.number | CInt(SOCK_CLOEXEC.rawValue) | flags, 0)
        guard raw >= 0 else { throw SystemError.last("socket") }
        return Descriptor(owning: raw)
    }

    /// Paths of more than 107 bytes go by their open directory's short name in `/proc`.
    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) throws(SystemError) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path) - 1
        var directory: CInt = -1
        defer { if directory >= 0 { close(directory) } }
        var name = path
        if path.utf8.count > room {
            guard let slash = path.lastIndex(of: "/") else { throw SystemError(code: ENAMETOOLONG, call: "bind") }
            directory = Glibc.open(String(path[..<slash]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard directory >= 0 else { throw SystemError.last("open") }
            name = "/proc/self/fd/\(directory)\(path[slash...])"
            guard name.utf8.count <= room else { throw SystemError(code: ENAMETOOLONG, call: "bind") }
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name.utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        // close(2) must not change errno.
        let code = errno
        if directory >= 0 {
            close(directory)
            directory = -1
        }
        errno = code
        return result
    }
}
