import Glibc

/// What a peer sent next. It stays to be read.
package enum Peeked {
    case byte(UInt8)
    case nothing
    case ended
}

extension ByteStream {
    /// Looks at the next byte. Only in the clear.
    package func peek() -> Peeked {
        withDescriptor { descriptor in
            var next: UInt8 = 0
            return switch recv(descriptor, &next, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)) {
            case 1: .byte(next)
            case 0: .ended
            default: errno == EAGAIN || errno == EINTR ? .nothing : .ended
            }
        }
    }
}
