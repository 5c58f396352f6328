import Foundation

/// A loopback port without a listener, which the system gives to no other process while this lives. It is
/// bound and not listening: a program that requests this port with SO_REUSEADDR, as servers do, gets it.
///
/// A port that was merely free a moment ago may be taken when it is used: the system picks ports for connections from
/// the same range.
final class ReservedPort: Sendable {
    let number: UInt16
    private let descriptor: CInt

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var isOn: CInt = 1
        let descriptor = descriptor
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<CInt>.size)) == 0
                    && bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0
            }
        }
        guard isBound else { throw TestBedError("cannot reserve a port of the loopback: \(errno)") }
        number = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(descriptor) }
}
