// Importers see the IP address type too.
internal import Glibc
@_exported public import PinproxyAddresses

package struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    package var ip: IPAddress
    package var port: UInt16

    package init(ip: IPAddress, port: UInt16) {
        self.ip = ip
        self.port = port
    }

    /// `192.0.2.1:80` or `[2001:db8::1]:80`
    package var description: String {
        ip.isIPv6 ? "[\(ip)]:\(port)" : "\(ip):\(port)"
    }

    /// Nil unless it is an internet address.
    init?(_ address: UnsafePointer<sockaddr>) {
        let raw = UnsafeRawPointer(address)
        switch CInt(address.pointee.sa_family) {
        case AF_INET:
            let v4 = raw.loadUnaligned(as: sockaddr_in.self)
            self.init(
                ip: IPAddress(words: (v4.sin_addr.s_addr, 0, 0, 0), isIPv6: false), port: UInt16(bigEndian: v4.sin_port)
            )
        case AF_INET6:
            let v6 = raw.loadUnaligned(as: sockaddr_in6.self)
            self.init(
                ip: IPAddress(words: v6.sin6_addr.__in6_u.__u6_addr32, isIPv6: true),
                port: UInt16(bigEndian: v6.sin6_port))
        default:
            return nil
        }
    }

    /// From a call such as `getsockname`; nil if it failed, or for other addresses.
    init?(filledBy call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let address = withUnsafeMutableBytes(of: &storage) { bytes -> SocketAddress? in
            guard let base = bytes.baseAddress else { return nil }
            let pointer = base.assumingMemoryBound(to: sockaddr.self)
            return call(pointer, &length) < 0 ? nil : SocketAddress(pointer)
        }
        guard let address else { return nil }
        self = address
    }

    /// Borrows the address as C wants it.
    func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        func lend<Address>(_ address: Address) -> Result {
            withUnsafeBytes(of: address) { bytes in
                // A struct is never empty.
                body(bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
            }
        }
        if ip.isIPv6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr.__in6_u.__u6_addr32 = ip.words
            return lend(address)
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = ip.words.0
            return lend(address)
        }
    }
}
