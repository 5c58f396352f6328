internal import CPinproxyMNL
internal import Glibc
package import PinproxyEventLoop

/// The kernel's table of sockets (sock_diag(7)). A query takes some ten microseconds, unprivileged. Used by one thread.
package final class SocketTable {
    private let socket: NetlinkSocket
    private var sequence: UInt32 = 0

    package init() throws(SystemError) {
        socket = try NetlinkSocket(CInt(NETLINK_SOCK_DIAG))
    }

    /// False: a supervisor's `listener` belongs to another network namespace.
    package func knowsConnections(to listener: CInt) -> Bool {
        Self.namespace(of: listener) == Self.namespace(of: socket.descriptor)
    }

    /// The other end of an accepted loopback connection, of a listener that ``knowsConnections(to:)``. Reused ports are
    /// harmless: our socket is still connected after the answer, so nobody else has its addresses. A closed socket
    /// belongs to nobody.
    /// - Parameter accepted: the proxy's end.
    /// - Returns: nil: unknown, or not of this machine.
    package func peer(of accepted: CInt, from client: SocketAddress) -> LocalSocket? {
        let client = client.unmapped
        guard client.ip.isLoopback, let own = Socket.localAddress(accepted)?.unmapped, client.ip.isIPv6 == own.ip.isIPv6
        else { return nil }
        guard let found = owner(of: client, connectedTo: own), Self.isConnected(accepted) else { return nil }
        return found
    }

    /// The other end of an accepted Unix connection.
    package func peer(ofUnix accepted: CInt) -> LocalSocket? {
        guard let peer = UnixSocket.peer(of: accepted), UserNamespace.knows(peer.user) else { return nil }
        return LocalSocket(user: peer.user, inode: inode(atOtherEndOf: accepted))
    }

    /// SO_NETNS_COOKIE; nil before Linux 5.14.
    private static func namespace(of descriptor: CInt) -> UInt64? {
        var cookie: UInt64 = 0
        var length = socklen_t(MemoryLayout<UInt64>.size)
        return getsockopt(descriptor, SOL_SOCKET, 71, &cookie, &length) == 0 ? cookie : nil
    }

    private static func isConnected(_ descriptor: CInt) -> Bool {
        // tcpi_state comes first in struct tcp_info.
        var state: UInt8 = 0
        var length = socklen_t(1)
        guard getsockopt(descriptor, CInt(IPPROTO_TCP), TCP_INFO, &state, &length) == 0 else { return false }
        // TCP_ESTABLISHED, and TCP_CLOSE_WAIT: the client has ended its side.
        return state == 1 || state == 8
    }

    // MARK: TCP

    private func owner(of client: SocketAddress, connectedTo server: SocketAddress) -> LocalSocket? {
        var request = inet_diag_req_v2()
        request.sdiag_family = UInt8(client.ip.isIPv6 ? AF_INET6 : AF_INET)
        request.sdiag_protocol = UInt8(IPPROTO_TCP)
        request.idiag_states = .max
        request.id.idiag_sport = client.port.bigEndian
        request.id.idiag_dport = server.port.bigEndian
        request.id.idiag_src = client.ip.words
        request.id.idiag_dst = server.ip.words
        // INET_DIAG_NOCOOKIE
        request.id.idiag_cookie = (.max, .max)
        return ask(request) { answer in
            guard let found = answer.load(inet_diag_msg.self) else { return nil }
            // Without such a connection the kernel reports the listener.
            guard SocketAddress(found.id.idiag_src, found.id.idiag_sport, found.idiag_family) == client,
                SocketAddress(found.id.idiag_dst, found.id.idiag_dport, found.idiag_family) == server
            else { return nil }
            // The kernel reports closed sockets as root's.
            guard found.idiag_inode != 0, UserNamespace.knows(found.idiag_uid) else { return nil }
            return LocalSocket(user: found.idiag_uid, inode: UInt64(found.idiag_inode))
        }
    }

    // MARK: Unix sockets

    private func inode(atOtherEndOf accepted: CInt) -> UInt64? {
        var status = stat()
        guard fstat(accepted, &status) == 0, let own = UInt32(exactly: status.st_ino) else { return nil }
        var request = unix_diag_req()
        request.sdiag_family = UInt8(AF_UNIX)
        request.udiag_states = .max
        request.udiag_ino = own
        request.udiag_show = UInt32(UDIAG_SHOW_PEER)
        request.udiag_cookie = (.max, .max)
        return ask(request) { answer in
            guard let found = answer.load(unix_diag_msg.self), found.udiag_ino == own else { return nil }
            let inode = answer.attribute(UInt16(UNIX_DIAG_PEER), after: MemoryLayout<unix_diag_msg>.size)
            return inode.flatMap { $0 == 0 ? nil : UInt64($0) }
        }
    }

    // MARK: Questions

    private static let roomForAnswer = 8 << 10

    private func ask<Found>(_ request: some BitwiseCopyable, _ read: (Answer) -> Found?) -> Found? {
        sequence &+= 1
        return withUnsafeTemporaryAllocation(byteCount: Self.roomForAnswer, alignment: 8) { buffer -> Found? in
            let question = NetlinkSocket.question(Int(SOCK_DIAG_BY_FAMILY), sequence: sequence, request, in: buffer)
            guard (try? socket.send(question)) != nil else { return nil }
            return receive(into: buffer, read)
        }
    }

    private func receive<Found>(into buffer: UnsafeMutableRawBufferPointer, _ read: (Answer) -> Found?) -> Found? {
        let headerSize = MemoryLayout<nlmsghdr>.size
        while true {
            guard let answer = (try? socket.receive(into: buffer)) ?? nil, answer.count >= headerSize else {
                return nil
            }
            let header = answer.load(as: nlmsghdr.self)
            guard Int(header.nlmsg_len) <= answer.count, Int(header.nlmsg_len) >= headerSize else { return nil }
            // The answer to an earlier question.
            guard header.nlmsg_seq == sequence else { continue }
            guard header.nlmsg_type == UInt16(SOCK_DIAG_BY_FAMILY) else { return nil }
            return read(Answer(bytes: UnsafeRawBufferPointer(rebasing: answer[headerSize..<Int(header.nlmsg_len)])))
        }
    }

    /// A message without its header.
    private struct Answer {
        let bytes: UnsafeRawBufferPointer

        func load<Value: BitwiseCopyable>(_ type: Value.Type) -> Value? {
            bytes.count >= MemoryLayout<Value>.size ? bytes.loadUnaligned(as: type) : nil
        }

        func attribute(_ type: UInt16, after headerSize: Int) -> UInt32? {
            var offset = headerSize
            while offset + MemoryLayout<nlattr>.size <= bytes.count {
                let attribute = bytes.loadUnaligned(fromByteOffset: offset, as: nlattr.self)
                let length = Int(attribute.nla_len)
                guard length >= MemoryLayout<nlattr>.size, offset + length <= bytes.count else { return nil }
                if attribute.nla_type == type {
                    guard length == MemoryLayout<nlattr>.size + 4 else { return nil }
                    return bytes.loadUnaligned(fromByteOffset: offset + MemoryLayout<nlattr>.size, as: UInt32.self)
                }
                offset += (length + 3) & ~3
            }
            return nil
        }
    }
}

extension SocketAddress {
    /// Makes an address of a kernel message; IPv4-mapped addresses become IPv4.
    fileprivate init(_ words: (UInt32, UInt32, UInt32, UInt32), _ port: UInt16, _ family: UInt8) {
        let ip = IPAddress(words: words, isIPv6: CInt(family) == AF_INET6)
        self.init(ip: ip.unmapped, port: UInt16(bigEndian: port))
    }

    fileprivate var unmapped: SocketAddress { SocketAddress(ip: ip.unmapped, port: port) }
}
