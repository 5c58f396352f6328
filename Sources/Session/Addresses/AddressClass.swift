package import PinproxyEventLoop

/// A class of addresses, by what is found there (`upstream.block_addresses`, `upstream.allow_addresses`).
package enum AddressClass: String, Sendable, CaseIterable {
    /// 127.0.0.0/8, ::1, and "this host" (0.0.0.0/8, ::).
    case loopback
    /// 169.254.0.0/16, fe80::/10.
    case linkLocal = "link-local"
    /// RFC 1918, RFC 4193 and RFC 3879: 10/8, 172.16/12, 192.168/16, fc00::/7, fec0::/10.
    case `private`
    /// RFC 6598: 100.64.0.0/10.
    case cgnat
    /// 224.0.0.0/4, ff00::/8, and broadcast.
    case multicast
    /// The addresses at which clouds serve credentials to their machines.
    case metadata

    /// The classes that `address` belongs to, by any of its ``EventLoop/IPAddress/readings``.
    package static func classes(of address: IPAddress) -> Set<AddressClass> {
        address.readings.reduce(into: []) { $0.formUnion(classes(ofReading: $1)) }
    }

    static func classes(ofReading address: IPAddress) -> Set<AddressClass> {
        let bytes = address.bytes
        if bytes.count == 4 { return classes(v4: bytes) }
        var found: Set<AddressClass> = []
        if bytes.dropLast().allSatisfy({ $0 == 0 }), bytes[15] <= 1 { found.insert(.loopback) }
        if bytes[0] == 0xfe, bytes[1] & 0xc0 == 0x80 { found.insert(.linkLocal) }
        if bytes[0] & 0xfe == 0xfc || (bytes[0] == 0xfe && bytes[1] & 0xc0 == 0xc0) { found.insert(.private) }
        if bytes[0] == 0xff { found.insert(.multicast) }
        if metadata6.contains(bytes) { found.insert(.metadata) }
        return found
    }

    private static func classes(v4 b: [UInt8]) -> Set<AddressClass> {
        var found: Set<AddressClass> = []
        if b[0] == 127 || b[0] == 0 { found.insert(.loopback) }
        if b[0] == 169, b[1] == 254 { found.insert(.linkLocal) }
        if b[0] == 10 || (b[0] == 172 && b[1] & 0xf0 == 16) || (b[0] == 192 && b[1] == 168) {
            found.insert(.private)
        }
        if b[0] == 100, b[1] & 0xc0 == 64 { found.insert(.cgnat) }
        if b[0] & 0xf0 == 0xe0 || b == [255, 255, 255, 255] { found.insert(.multicast) }
        if metadata4.contains(b) { found.insert(.metadata) }
        return found
    }

    /// EC2, GCE, Azure, OpenStack and others; ECS tasks; Alibaba; Azure's wire server; Oracle.
    private static let metadata4: Set<[UInt8]> = [
        [169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192],
    ]
    /// EC2 and ECS over IPv6; GCE.
    private static let metadata6: Set<[UInt8]> = Set(
        ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"].compactMap { IPAddress($0)?.bytes })
    static let metadataAddresses = metadata4.union(metadata6)
}
