internal import CPinproxyCares
internal import Glibc

// One idea with ResolverChannel.swift: c-ares opens its sockets through these, with the channel as context.

/// Opens c-ares' sockets and notices a lack of descriptors, which it would report as an unreachable server.
enum ResolverSockets {
    /// socket(2); tests make it fail.
    typealias Open = @Sendable (_ family: CInt, _ type: CInt, _ protocol: CInt) -> CInt

    static let system: Open = { socket($0, $1, $2) }

    /// c-ares keeps the pointer: never freed, and immutable.
    static nonisolated(unsafe) let functions: UnsafePointer<ares_socket_functions> = {
        let table = UnsafeMutablePointer<ares_socket_functions>.allocate(capacity: 1)
        table.initialize(
            to: ares_socket_functions(
                asocket: { family, type, proto, context in
                    guard let context else { return -1 }
                    return Unmanaged<ResolverChannel>.fromOpaque(context).takeUnretainedValue()
                        .openSocket(family, type, proto)
                },
                aclose: { descriptor, _ in close(descriptor) },
                aconnect: { descriptor, address, length, _ in connect(descriptor, address, length) },
                arecvfrom: { descriptor, bytes, count, flags, address, length, _ in
                    recvfrom(descriptor, bytes, count, flags, address, length)
                },
                asendv: { descriptor, pieces, count, _ in writev(descriptor, pieces, count) }))
        return UnsafePointer(table)
    }()
}
