internal import CPinproxyMNL
internal import Glibc
internal import PinproxyEventLoop

/// The loopback interface of a network namespace that is new: down, and without routes. Set up by rtnetlink(7).
final class LoopbackLink {
    private let socket: NetlinkSocket
    private let index: UInt32
    private var sequence: UInt32 = 0

    init() throws(SystemError) {
        index = if_nametoindex("lo")
        guard index > 0 else { throw SystemError(code: errno, call: "if_nametoindex(lo)") }
        socket = try NetlinkSocket(NETLINK_ROUTE)
    }

    /// `ip link set lo up`
    func start() throws(SystemError) {
        var header = ifinfomsg()
        header.ifi_index = CInt(index)
        header.ifi_flags = UInt32(IFF_UP)
        header.ifi_change = UInt32(IFF_UP)
        try request(RTM_NEWLINK, flags: 0, header, "RTM_NEWLINK") { _ in }
    }

    /// `ip address add ADDRESS dev lo`
    func add(_ address: IPAddress) throws(SystemError) {
        var header = ifaddrmsg()
        header.ifa_family = UInt8(address.isIPv6 ? AF_INET6 : AF_INET)
        header.ifa_prefixlen = address.isIPv6 ? 128 : 32
        header.ifa_index = index
        let bytes = address.bytes
        try request(RTM_NEWADDR, flags: NLM_F_CREATE | NLM_F_REPLACE, header, "RTM_NEWADDR") { message in
            mnl_attr_put(message, UInt16(IFA_LOCAL), bytes.count, bytes)
            mnl_attr_put(message, UInt16(IFA_ADDRESS), bytes.count, bytes)
        }
    }

    /// Makes every address one of this machine's, as `ip route add local 0.0.0.0/0 dev lo` does: a socket that listens
    /// on all takes connections to any.
    ///
    /// Programs that use AI_ADDRCONFIG (getaddrinfo(3)) need another address of each family: RFC 2544, RFC 4193.
    func takeAllAddresses() throws(SystemError) {
        for (own, isIPv6) in [("198.18.0.1", false), ("fd70:696e:7072:6f78::1", true)] {
            var header = rtmsg()
            header.rtm_family = UInt8(isIPv6 ? AF_INET6 : AF_INET)
            header.rtm_table = UInt8(RT_TABLE_LOCAL.rawValue)
            header.rtm_protocol = UInt8(RTPROT_STATIC)
            header.rtm_scope = UInt8(isIPv6 ? RT_SCOPE_UNIVERSE.rawValue : RT_SCOPE_HOST.rawValue)
            header.rtm_type = UInt8(RTN_LOCAL)
            do throws(SystemError) {
                if let own = IPAddress(own) { try add(own) }
                try request(RTM_NEWROUTE, flags: NLM_F_CREATE, header, "RTM_NEWROUTE") { message in
                    mnl_attr_put_u32(message, UInt16(RTA_OIF.rawValue), index)
                }
            } catch {
                // A machine may be without IPv6.
                if !isIPv6 { throw error }
            }
        }
    }

    /// Asks, and reads the kernel's word.
    private func request(
        _ type: Int, flags: CInt, _ header: some BitwiseCopyable, _ call: String,
        _ fill: (UnsafeMutablePointer<nlmsghdr>) -> Void
    ) throws(SystemError) {
        sequence += 1
        let failure = try withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 8) {
            buffer throws(SystemError) -> CInt in
            let message = NetlinkSocket.question(type, flags: NLM_F_ACK | flags, sequence: sequence, header, in: buffer)
            fill(message)
            try socket.send(message)
            guard let answer = try socket.receive(into: buffer) else { return EAGAIN }
            return mnl_cb_run(answer.baseAddress, answer.count, sequence, 0, nil, nil) >= 0 ? 0 : errno
        }
        guard failure == 0 else { throw SystemError(code: failure, call: call) }
    }
}
