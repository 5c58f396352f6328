internal import CPinproxyMNL
import PinproxyEventLoop

/// One message of rtnetlink(7).
struct NetlinkMessage: Equatable {
    enum Content: Equatable {
        case link(LinkRecord)
        case address(AddressRecord)
        case route(RouteRecord)
        case done
        /// The request failed with this `errno`; 0: it is acknowledged.
        case failed(CInt)
        case other
    }

    /// The request's; in notifications, of the request that caused it.
    let sequence: UInt32
    /// Something changed during the dump: it must be repeated.
    let isInterrupted: Bool
    let content: Content
}

/// A link: RTM_NEWLINK.
struct LinkRecord: Equatable {
    let index: CInt
    var name: String
    /// ARPHRD_*
    var hardwareType: UInt16
    /// IFF_*
    var flags: UInt32
    /// IFLA_INFO_KIND, the type of ip-link(8); nil for hardware.
    var kind: String?
    /// The link below this one, e.g. of a VLAN, if it is in the same namespace.
    var lower: CInt?

    /// Up with a carrier: RFC 2863's operational status is up, or unknown to the driver.
    var isUsable: Bool { flags & UInt32(IFF_UP) != 0 && flags & UInt32(IFF_RUNNING) != 0 }
    var isLoopback: Bool { flags & UInt32(IFF_LOOPBACK) != 0 }
}

/// An address of this machine: RTM_NEWADDR.
struct AddressRecord: Equatable {
    let link: CInt
    let isIPv6: Bool
    /// RT_SCOPE_*
    var scope: UInt8
    /// IFA_F_*
    var flags: UInt32

    /// Not link-local, and accepted by duplicate address detection (RFC 4862).
    var isUsable: Bool {
        let tentative = UInt32(IFA_F_TENTATIVE) | UInt32(IFA_F_DADFAILED)
        let isOptimistic = flags & UInt32(IFA_F_OPTIMISTIC) != 0 && flags & UInt32(IFA_F_DADFAILED) == 0
        return scope < UInt8(RT_SCOPE_LINK.rawValue) && (flags & tentative == 0 || isOptimistic)
    }
}

/// A route: RTM_NEWROUTE.
struct RouteRecord: Equatable {
    /// RTN_*
    var type: UInt8
    var link: CInt?
    var gateway: IPAddress?
    var source: IPAddress?
}
