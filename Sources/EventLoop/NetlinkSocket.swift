package import CPinproxyMNL
internal import Glibc

/// libmnl's socket, owned: non-blocking and close-on-exec. The kernel answers within the call.
package struct NetlinkSocket: ~Copyable {
    /// The kernel's longest datagram.
    package static let datagramSize = 32 << 10

    private let raw: OpaquePointer

    /// - Parameter groups: a mask of multicast groups; 0: for requests.
    package init(_ family: CInt, groups: UInt32 = 0) throws(SystemError) {
        guard let raw = mnl_socket_open2(family, CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)) else {
            throw SystemError.last("socket(AF_NETLINK)")
        }
        guard mnl_socket_bind(raw, groups, MNL_SOCKET_AUTOPID) == 0 else {
            let error = SystemError.last("bind(AF_NETLINK)")
            mnl_socket_close(raw)
            throw error
        }
        self.raw = raw
    }

    deinit {
        mnl_socket_close(raw)
    }

    package var descriptor: CInt { mnl_socket_get_fd(raw) }

    /// Begins a request with its fixed header, before attributes, in an aligned buffer.
    package static func question(
        _ type: Int, flags: CInt = 0, sequence: UInt32, _ header: some BitwiseCopyable,
        in buffer: UnsafeMutableRawBufferPointer
    ) -> UnsafeMutablePointer<nlmsghdr> {
        // libmnl returns the given address.
        let message = mnl_nlmsg_put_header(buffer.baseAddress)!
        message.pointee.nlmsg_type = UInt16(type)
        message.pointee.nlmsg_flags = UInt16(NLM_F_REQUEST | flags)
        message.pointee.nlmsg_seq = sequence
        withUnsafeBytes(of: header) { bytes in
            mnl_nlmsg_put_extra_header(message, bytes.count).copyMemory(
                from: bytes.baseAddress!, byteCount: bytes.count)
        }
        return message
    }

    package func send(_ message: UnsafePointer<nlmsghdr>) throws(SystemError) {
        guard mnl_socket_sendto(raw, message, Int(message.pointee.nlmsg_len)) >= 0 else {
            throw SystemError.last("sendto(AF_NETLINK)")
        }
    }

    /// One datagram's bytes in `buffer`; nil if none has arrived.
    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> UnsafeRawBufferPointer? {
        while true {
            let count = mnl_socket_recvfrom(raw, buffer.baseAddress, buffer.count)
            if count >= 0 { return UnsafeRawBufferPointer(rebasing: buffer.prefix(count)) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return nil
            default: throw SystemError.last("recvmsg(AF_NETLINK)")
            }
        }
    }
}
