package import EventLoop

extension AddressClass {
    /// The classes that `address` belongs to. An IPv4 address wrapped into IPv6 (mapped, NAT64, 6to4,
    /// Teredo) is judged by what it wraps, or it would be a way around.
    package static func classes(of address: IPAddress) -> Set<AddressClass> {
        let bytes = address.bytes
        if bytes.count == 4 { return classes(v4: bytes) }
        let wrapped = wrappedIPv4(bytes)
        if !wrapped.isEmpty { return wrapped.reduce(into: []) { $0.formUnion(classes(v4: $1)) } }
        var found: Set<AddressClass> = []
        if bytes.dropLast().allSatisfy({ $0 == 0 }), bytes[15] <= 1 { found.insert(.loopback) }
        if bytes[0] == 0xfe, bytes[1] & 0xc0 == 0x80 { found.insert(.linkLocal) }
        if bytes[0] & 0xfe == 0xfc { found.insert(.private) }
        if bytes[0] == 0xff { found.insert(.multicast) }
        if metadata6.contains(address) { found.insert(.metadata) }
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

    /// The IPv4 addresses that an IPv6 address stands for, by any reading; none for an ordinary one.
    private static func wrappedIPv4(_ b: [UInt8]) -> [[UInt8]] {
        let last = Array(b[12...])
        // Mapped and, deprecated, compatible (RFC 4291 section 2.5.5); :: and ::1 are none of these.
        if b[..<10].allSatisfy({ $0 == 0 }), b[10] == 0xff, b[11] == 0xff { return [last] }
        if b[..<12].allSatisfy({ $0 == 0 }), last[..<3] != [0, 0, 0] { return [last] }
        // NAT64: the well-known prefix, and the local one, whose length isn't known (RFC 8215).
        if b[..<12] == [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0] { return [last] }
        if b[..<6] == [0, 0x64, 0xff, 0x9b, 0, 1] { 
            return [last, [b[6], b[7], b[9], b[10]]].filter { $0 != [0, 0, 0, 0] }
        }
        // 6to4, and the client behind Teredo, whose bits are inverted (RFC 4380 section 4).
        if b[0] == 0x20, b[1] == 0x02 { return [Array(b[2..<6])] }
        if b[..<4] == [0x20, 0x01, 0, 0] { return [last.map { ~$0 }] }
        return []
    }

    /// EC2, GCE, Azure, OpenStack and others; ECS tasks; Alibaba; Azure's wire server; Oracle.
    private static let metadata4: Set<[UInt8]> = [
        [169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192],
    ]
    /// EC2 and ECS over IPv6; GCE.
    private static let metadata6: Set<IPAddress> = Set(
        ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"].compactMap { IPAddress($0) })
}
