internal import CMNL
import EventLoop

/// One message of rtnetlink(7), as far as it says something here.
struct NetlinkMessage: Equatable {
    enum Content: Equatable {
        case link(LinkRecord)
        case address(AddressRecord)
        case route(RouteRecord)
        case done
        /// The request failed with this `errno`; 0: it is acknowledged.
        case failed(CInt)
        /// Anything else: it is passed over.
        case other
    }

    /// The request's, in an answer; in what the kernel tells unasked, whoever's caused it.
    let sequence: UInt32
    /// Something changed while the kernel wrote the dump that this belongs to: it has to be asked for again.
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
    /// IFLA_INFO_KIND: what ip-link(8) calls its type; nil for hardware.
    var kind: String?
    /// The link below this one, e.g. of a VLAN, if it is in the same namespace.
    var lower: CInt?

    /// It is up, and carries: RFC 2863's operational status is up, or unknown to the driver.
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

    /// It reaches beyond the link, and may be sent from: duplicate address detection (RFC 4862) has accepted it.
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
    /// The address that packets are sent from.
    var source: IPAddress?
}
