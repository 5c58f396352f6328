internal import CMNL
import EventLoop
internal import Glibc

/// libmnl's socket, owned: NETLINK_ROUTE, non-blocking and close-on-exec.
struct NetlinkSocket: ~Copyable {
    /// What may change the way that packets take: RTNLGRP_* as bits.
    static let everyChange: UInt32 = [
        RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_IFADDR,
        RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP,
    ].reduce(0) { $0 | 1 << ($1.rawValue - 1) }

    /// What one datagram of the kernel takes at most, if whoever asks has room for it.
    static let datagramSize = 32 << 10

    private let raw: OpaquePointer

    /// - Parameter groups: whose news are wanted; 0: none, the socket is for questions.
    init(groups: UInt32) throws(SystemError) {
        guard let raw = mnl_socket_open2(NETLINK_ROUTE, CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)) else {
            throw SystemError(code: errno, call: "socket(AF_NETLINK)")
        }
        guard mnl_socket_bind(raw, groups, MNL_SOCKET_AUTOPID) == 0 else {
            let error = SystemError(code: errno, call: "bind(AF_NETLINK)")
            mnl_socket_close(raw)
            throw error
        }
        self.raw = raw
    }

    deinit {
        mnl_socket_close(raw)
    }

    var descriptor: CInt { mnl_socket_get_fd(raw) }

    func send(_ message: UnsafePointer<nlmsghdr>) throws(SystemError) {
        guard mnl_socket_sendto(raw, message, Int(message.pointee.nlmsg_len)) >= 0 else {
            throw SystemError(code: errno, call: "sendto(AF_NETLINK)")
        }
    }

    /// The bytes of one datagram, in `buffer`; nil if there is none.
    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> UnsafeRawBufferPointer? {
        while true {
            let count = mnl_socket_recvfrom(raw, buffer.baseAddress, buffer.count)
            if count >= 0 { return UnsafeRawBufferPointer(rebasing: buffer.prefix(count)) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return nil
            default: throw SystemError(code: errno, call: "recvmsg(AF_NETLINK)")
            }
        }
    }
}
