internal import CPinproxyMNL

/// Properties of a link from sysfs.
struct LinkMarks: Equatable {
    /// A folder `wireless` or `phy80211`.
    var isWireless = false
    /// DEVTYPE of its `uevent`: `wlan`, `wwan`, `bridge`, `vlan`, …
    var deviceType: String?
}

extension LinkKind {
    /// - Parameters:
    ///   - hardwareType: ARPHRD_*.
    ///   - kind: IFLA_INFO_KIND, nil for hardware.
    init(isLoopback: Bool, hardwareType: UInt16, kind: String?, marks: LinkMarks) {
        if isLoopback {
            self = .loopback
        } else if marks.deviceType == "wwan" || kind.map(Self.cellularKinds.contains) ?? false {
            self = .cellular
        } else if marks.isWireless || marks.deviceType == "wlan" || Self.wirelessTypes.contains(CInt(hardwareType)) {
            self = .wireless
        } else if kind == "bridge" || marks.deviceType == "bridge" || kind == "openvswitch" {
            self = .bridge
        } else if kind.map(Self.tunnelKinds.contains) ?? false || Self.tunnelTypes.contains(CInt(hardwareType)) {
            self = .tunnel
        } else if Self.wiredTypes.contains(CInt(hardwareType)) {
            self = .wired
        } else {
            self = .other
        }
    }

    /// The WWAN subsystem's, and Qualcomm's multiplexed links.
    private static let cellularKinds: Set<String> = ["wwan", "rmnet"]
    private static let tunnelKinds: Set<String> = [
        "tun", "wireguard", "gre", "gretap", "ip6gre", "ip6gretap", "erspan", "ip6erspan", "ipip", "sit", "ip6tnl",
        "vti", "vti6", "xfrm", "vxlan", "geneve", "bareudp", "gtp", "ppp", "l2tp", "amt", "ovpn",
    ]
    private static let tunnelTypes: Set<CInt> = [
        ARPHRD_PPP, ARPHRD_SLIP, ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE, ARPHRD_IP6GRE, ARPHRD_NONE,
        ARPHRD_RAWIP,
    ]
    private static let wirelessTypes: Set<CInt> = [
        ARPHRD_IEEE80211, ARPHRD_IEEE80211_PRISM, ARPHRD_IEEE80211_RADIOTAP,
    ]
    private static let wiredTypes: Set<CInt> = [ARPHRD_ETHER, ARPHRD_INFINIBAND, ARPHRD_IEEE1394]
}
