import Foundation

/// A listening socket on the loopback, with a port that the system chose, to be inherited by a peer:
/// clients can connect from the start, so nothing has to wait for the peer or guess a free port.
struct ListeningSocket: ~Copyable {
    let descriptor: CInt
    let port: UInt16

    /// - Parameter ipv6Port: listens on ::1 at this port, which is one of the bed's own (``TestBed/port()``): for a
    ///   name below localhost both addresses are tried, and 127.0.0.1 at the same port must not be another test's.
    init(ipv6Port: UInt16? = nil) throws {
        descriptor = socket(
            ipv6Port != nil ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var storage = sockaddr_storage()
        var length = socklen_t(0)
        let descriptor = descriptor
        let result = withUnsafeMutableBytes(of: &storage) { bytes -> CInt in
            let address = bytes.baseAddress!
            if let ipv6Port {
                var loopback = sockaddr_in6()
                loopback.sin6_port = ipv6Port.bigEndian
                loopback.sin6_family = sa_family_t(AF_INET6)
                loopback.sin6_addr = in6addr_loopback
                bytes.storeBytes(of: loopback, as: sockaddr_in6.self)
                length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            } else {
                var loopback = sockaddr_in()
                loopback.sin_family = sa_family_t(AF_INET)
                loopback.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
                bytes.storeBytes(of: loopback, as: sockaddr_in.self)
                length = socklen_t(MemoryLayout<sockaddr_in>.size)
            }
            let generic = address.assumingMemoryBound(to: sockaddr.self)
            guard bind(descriptor, generic, length) == 0, listen(descriptor, 512) == 0 else { return -1 }
            return getsockname(descriptor, generic, &length)
        }
        guard result == 0 else { throw TestBedError("cannot listen on the loopback: \(errno)") }
        // The port lies at the same place in both kinds of address.
        port = withUnsafeBytes(of: &storage) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
    }

    deinit { close(descriptor) }
}
