internal import Glibc

/// A server's UDP sockets on all addresses, which answer from the address of the request (ip(7), IP_PKTINFO; RFC 3542
/// section 6), as clients require.
package enum DatagramSocket {
    package struct Arrival: Sendable {
        package let bytes: [UInt8]
        package let peer: SocketAddress
        /// The destination.
        package let local: IPAddress
    }

    /// Constants of linux/in6.h that the headers show under _GNU_SOURCE only: IPV6_RECVPKTINFO, IPV6_PKTINFO,
    /// IPV6_FREEBIND.
    private static let (recvPacketInfo6, packetInfo6, freeBind6): (CInt, CInt, CInt) = (49, 50, 78)

    /// Not blocking, close-on-exec; an IPv6 socket takes IPv6 only.
    package static func bind(on address: SocketAddress) throws(SystemError) -> Descriptor {
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let raw = socket(address.ip.isIPv6 ? AF_INET6 : AF_INET, type, 0)
        guard raw >= 0 else { throw SystemError.last("socket") }
        let descriptor = Descriptor(owning: raw)
        var on: CInt = 1
        let size = socklen_t(MemoryLayout<CInt>.size)
        let options: [(CInt, CInt)] =
            address.ip.isIPv6
            // IPv6 needs FREEBIND to bind addresses that no interface has.
            ? [IPV6_V6ONLY, recvPacketInfo6, freeBind6].map { (CInt(IPPROTO_IPV6), $0) }
            : [(CInt(IPPROTO_IP), IP_PKTINFO)]
        for (level, option) in options {
            guard setsockopt(raw, level, option, &on, size) == 0 else { throw SystemError.last("setsockopt") }
        }
        guard address.withSockaddr({ Glibc.bind(raw, $0, $1) }) == 0 else { throw SystemError.last("bind") }
        return descriptor
    }

    /// Truncates to `longest`. Nil if nothing has arrived, or it can't be answered.
    package static func receive(_ raw: CInt, longest: Int) -> Arrival? {
        var bytes = [UInt8](repeating: 0, count: longest)
        var control = [UInt8](repeating: 0, count: 128)
        var (count, controlLength) = (0, 0)
        let peer = SocketAddress { address, length in
            bytes.withUnsafeMutableBytes { bytes in
                control.withUnsafeMutableBytes { control in
                    ControlMessages.withMessage(name: address, Int(length.pointee), bytes, control) { message in
                        count = recvmsg(raw, &message, 0)
                        controlLength = Int(message.msg_controllen)
                        return count < 0 ? -1 : 0
                    }
                }
            }
        }
        guard let peer, let local = local(in: ControlMessages.parse(control[..<controlLength])) else { return nil }
        return Arrival(bytes: Array(bytes[..<count]), peer: peer, local: local)
    }

    private static func local(in messages: [ControlMessages.Message]) -> IPAddress? {
        for message in messages {
            // struct in_pktinfo: the interface, the local address, the one in the header.
            if message.level == CInt(IPPROTO_IP), message.type == IP_PKTINFO, message.data.count >= 12 {
                return IPAddress(bytes: Array(message.data[8..<12]))
            }
            // struct in6_pktinfo: the address, the interface.
            if message.level == CInt(IPPROTO_IPV6), message.type == packetInfo6, message.data.count >= 16 {
                return IPAddress(bytes: Array(message.data[..<16]))
            }
        }
        return nil
    }

    /// Answers. Datagrams that can't be sent are lost.
    package static func answer(_ bytes: [UInt8], to arrival: Arrival, over raw: CInt) {
        var bytes = bytes
        let address = arrival.local.bytes
        let interface = [UInt8](repeating: 0, count: 4)
        var control = ControlMessages.bytes(
            of: arrival.local.isIPv6
                ? .init(level: CInt(IPPROTO_IPV6), type: packetInfo6, data: address + interface)
                : .init(level: CInt(IPPROTO_IP), type: IP_PKTINFO, data: interface + address + address))
        _ = arrival.peer.withSockaddr { peer, length in
            bytes.withUnsafeMutableBytes { bytes in
                control.withUnsafeMutableBytes { control in
                    ControlMessages.withMessage(
                        name: UnsafeMutableRawPointer(mutating: peer), Int(length), bytes, control
                    ) { sendmsg(raw, &$0, CInt(MSG_NOSIGNAL)) }
                }
            }
        }
    }
}
