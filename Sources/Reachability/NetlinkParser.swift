internal import CPinproxyMNL
import PinproxyEventLoop

/// Malformed rtnetlink(7) messages.
enum NetlinkDefect: Error, Equatable {
    /// A message, an attribute or a header ends after the data.
    case truncated
    case attributeSize(type: UInt16)
}

/// Parses rtnetlink messages, by pointers as libmnl does. Every length is checked before it is used.
enum NetlinkParser {
    /// The messages of one datagram, aligned to 4 bytes.
    static func messages(in bytes: UnsafeRawBufferPointer) throws(NetlinkDefect) -> [NetlinkMessage] {
        var messages: [NetlinkMessage] = []
        guard let base = bytes.baseAddress else { return messages }
        var remaining = CInt(clamping: bytes.count)
        var header = base.assumingMemoryBound(to: nlmsghdr.self)
        while mnl_nlmsg_ok(header, remaining) {
            // libmnl compares as signed numbers: a length from 2 GiB on would pass.
            guard header.pointee.nlmsg_len <= UInt32(remaining) else { throw .truncated }
            messages.append(try message(header))
            header = UnsafePointer(mnl_nlmsg_next(header, &remaining))
        }
        guard remaining <= 0 else { throw .truncated }
        return messages
    }

    private static func message(_ header: UnsafePointer<nlmsghdr>) throws(NetlinkDefect) -> NetlinkMessage {
        let content: NetlinkMessage.Content =
            switch CInt(header.pointee.nlmsg_type) {
            case NLMSG_DONE: .done
            case NLMSG_ERROR: .failed(-(try payload(header, as: nlmsgerr.self).error))
            case CInt(RTM_NEWLINK): .link(try link(header))
            case CInt(RTM_NEWADDR): .address(try address(header))
            case CInt(RTM_NEWROUTE): .route(try route(header))
            default: .other
            }
        return NetlinkMessage(
            sequence: header.pointee.nlmsg_seq,
            isInterrupted: CInt(header.pointee.nlmsg_flags) & CInt(NLM_F_DUMP_INTR) != 0, content: content)
    }

    private static func link(_ message: UnsafePointer<nlmsghdr>) throws(NetlinkDefect) -> LinkRecord {
        let fixed = try payload(message, as: ifinfomsg.self)
        var link = LinkRecord(
            index: fixed.ifi_index, name: "", hardwareType: fixed.ifi_type, flags: fixed.ifi_flags)
        var isLowerElsewhere = false
        try forEachAttribute(of: message, after: MemoryLayout<ifinfomsg>.size) { attribute throws(NetlinkDefect) in
            switch attribute.type {
            case UInt16(IFLA_IFNAME): link.name = attribute.text
            case UInt16(IFLA_LINK): link.lower = CInt(bitPattern: try attribute.integer())
            case UInt16(IFLA_LINK_NETNSID): isLowerElsewhere = true
            case UInt16(IFLA_LINKINFO):
                try forEachAttribute(in: attribute.payload) { nested throws(NetlinkDefect) in
                    if nested.type == UInt16(IFLA_INFO_KIND) { link.kind = nested.text }
                }
            default: break
            }
        }
        // A veth's other end counts as below it, and a link without another one is below itself.
        if isLowerElsewhere || link.lower == link.index || link.lower == 0 { link.lower = nil }
        return link
    }

    private static func address(_ message: UnsafePointer<nlmsghdr>) throws(NetlinkDefect) -> AddressRecord {
        let fixed = try payload(message, as: ifaddrmsg.self)
        var address = AddressRecord(
            link: CInt(bitPattern: fixed.ifa_index), isIPv6: CInt(fixed.ifa_family) == AF_INET6,
            scope: fixed.ifa_scope, flags: UInt32(fixed.ifa_flags))
        try forEachAttribute(of: message, after: MemoryLayout<ifaddrmsg>.size) { attribute throws(NetlinkDefect) in
            // The header's field has only eight.
            if attribute.type == UInt16(IFA_FLAGS) { address.flags = try attribute.integer() }
        }
        return address
    }

    private static func route(_ message: UnsafePointer<nlmsghdr>) throws(NetlinkDefect) -> RouteRecord {
        let fixed = try payload(message, as: rtmsg.self)
        var route = RouteRecord(type: fixed.rtm_type)
        try forEachAttribute(of: message, after: MemoryLayout<rtmsg>.size) { attribute throws(NetlinkDefect) in
            switch attribute.type {
            case UInt16(RTA_OIF.rawValue): route.link = CInt(bitPattern: try attribute.integer())
            case UInt16(RTA_GATEWAY.rawValue): route.gateway = try attribute.address()
            case UInt16(RTA_PREFSRC.rawValue): route.source = try attribute.address()
            // An IPv4 route by way of an IPv6 router (RFC 8950): the family comes before the address.
            case UInt16(RTA_VIA.rawValue): route.gateway = try attribute.address(after: MemoryLayout<sa_family_t>.size)
            default: break
            }
        }
        return route
    }

    private static func payload<Header: BitwiseCopyable>(
        _ message: UnsafePointer<nlmsghdr>, as type: Header.Type
    ) throws(NetlinkDefect) -> Header {
        guard mnl_nlmsg_get_payload_len(message) >= MemoryLayout<Header>.size else { throw .truncated }
        return mnl_nlmsg_get_payload(message).loadUnaligned(as: type)
    }

    // MARK: Attributes

    private struct Attribute {
        let type: UInt16
        let payload: UnsafeRawBufferPointer

        /// Up to the final NUL.
        var text: String { String(decoding: payload.prefix { $0 != 0 }, as: UTF8.self) }

        func integer() throws(NetlinkDefect) -> UInt32 {
            guard payload.count == MemoryLayout<UInt32>.size else { throw .attributeSize(type: type) }
            return payload.loadUnaligned(as: UInt32.self)
        }

        func address(after offset: Int = 0) throws(NetlinkDefect) -> IPAddress {
            guard let address = IPAddress(bytes: Array(payload.dropFirst(offset))) else {
                throw .attributeSize(type: type)
            }
            return address
        }
    }

    private static func forEachAttribute(
        of message: UnsafePointer<nlmsghdr>, after headerSize: Int,
        _ body: (Attribute) throws(NetlinkDefect) -> Void
    ) throws(NetlinkDefect) {
        let start = mnl_nlmsg_get_payload_offset(message, headerSize)
        // Not mnl_nlmsg_get_payload_tail, which may round up past the last message.
        let end = mnl_nlmsg_get_payload(message) + mnl_nlmsg_get_payload_len(message)
        guard let start, start < end else { return }
        try forEachAttribute(in: UnsafeRawBufferPointer(start: start, count: end - start), body)
    }

    private static func forEachAttribute(
        in bytes: UnsafeRawBufferPointer, _ body: (Attribute) throws(NetlinkDefect) -> Void
    ) throws(NetlinkDefect) {
        guard let base = bytes.baseAddress else { return }
        var attribute = base.assumingMemoryBound(to: nlattr.self)
        let end = base + bytes.count
        while mnl_attr_ok(attribute, CInt(clamping: end - UnsafeRawPointer(attribute))) {
            try body(
                Attribute(
                    type: mnl_attr_get_type(attribute),
                    payload: UnsafeRawBufferPointer(
                        start: mnl_attr_get_payload(attribute), count: Int(mnl_attr_get_payload_len(attribute)))))
            attribute = UnsafePointer(mnl_attr_next(attribute))
        }
        guard UnsafeRawPointer(attribute) >= end else { throw .truncated }
    }
}
