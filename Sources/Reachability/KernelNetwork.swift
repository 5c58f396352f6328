internal import CPinproxyMNL
internal import Glibc
import PinproxyEventLoop

/// Asks the kernel for the network's state. It answers at once.
final class KernelNetwork {
    private static let attempts = 5

    private let socket: NetlinkSocket
    private let marksReader: LinkMarksReader
    private let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: NetlinkSocket.datagramSize, alignment: MemoryLayout<nlmsghdr>.alignment)
    private var sequence: UInt32 = 0

    init(marksReader: LinkMarksReader) throws(SystemError) {
        socket = try NetlinkSocket(NETLINK_ROUTE)
        self.marksReader = marksReader
    }

    deinit {
        buffer.deallocate()
    }

    /// Links, addresses, and the routes to those destinations.
    func state(routesTo destinations: some Sequence<IPAddress>) throws(SystemError) -> NetworkState {
        var state = NetworkState()
        for case .link(let link) in try dump(RTM_GETLINK, header: ifinfomsg(), skippingStatistics: true) {
            state.links[link.index] = link
        }
        for case .address(let address) in try dump(RTM_GETADDR, header: ifaddrmsg()) { state.addresses.append(address) }
        for destination in destinations where !destination.isLoopback {
            state.routes[destination] = try route(to: destination)
        }
        for index in state.linksUsed() {
            guard let link = state.links[index] else { continue }
            state.marks[index] = marksReader.marks(of: link.name)
        }
        return state
    }

    /// All of one kind; repeated if something changed meanwhile.
    private func dump(
        _ type: Int, header: some BitwiseCopyable, skippingStatistics: Bool = false
    ) throws(SystemError) -> [NetlinkMessage.Content] {
        for _ in 0..<Self.attempts {
            let request = begin(type, flags: CInt(NLM_F_DUMP), header: header)
            // RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h: most of a link's data are counters.
            if skippingStatistics { mnl_attr_put_u32(request, UInt16(IFLA_EXT_MASK), 1 << 3) }
            try socket.send(request)
            if let found = try readDump() { return found }
        }
        throw SystemError(code: EINTR, call: "a dump of rtnetlink")
    }

    private func readDump() throws(SystemError) -> [NetlinkMessage.Content]? {
        var found: [NetlinkMessage.Content] = []
        var isWhole = true
        while true {
            for message in try answers() {
                if message.isInterrupted { isWhole = false }
                switch message.content {
                case .done: return isWhole ? found : nil
                case .failed(let code): throw SystemError(code: code, call: "a dump of rtnetlink")
                case let content: found.append(content)
                }
            }
        }
    }

    private func route(to destination: IPAddress) throws(SystemError) -> NetworkState.RouteAnswer {
        var header = rtmsg()
        header.rtm_family = UInt8(destination.isIPv6 ? AF_INET6 : AF_INET)
        header.rtm_dst_len = destination.isIPv6 ? 128 : 32
        let request = begin(RTM_GETROUTE, flags: 0, header: header)
        let bytes = destination.bytes
        mnl_attr_put(request, UInt16(RTA_DST.rawValue), bytes.count, bytes)
        try socket.send(request)
        while true {
            for message in try answers() {
                switch message.content {
                case .route(let route): return .route(route)
                case .failed(let code): return .failed(code)
                default: break
                }
            }
        }
    }

    private func begin(_ type: Int, flags: CInt, header: some BitwiseCopyable) -> UnsafeMutablePointer<nlmsghdr> {
        sequence &+= 1
        return NetlinkSocket.question(type, flags: flags, sequence: sequence, header, in: buffer)
    }

    /// Answers of one datagram to the last question; earlier ones are skipped.
    private func answers() throws(SystemError) -> [NetlinkMessage] {
        guard let bytes = try socket.receive(into: buffer) else {
            throw SystemError(code: EAGAIN, call: "recvmsg(AF_NETLINK)")
        }
        do {
            return try NetlinkParser.messages(in: bytes).filter { $0.sequence == sequence }
        } catch {
            throw SystemError(code: EBADMSG, call: "recvmsg(AF_NETLINK)")
        }
    }
}
