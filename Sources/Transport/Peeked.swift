import Glibc

/// A peer's next byte, left unread.
package enum Peeked {
    case byte(UInt8)
    case nothing
    case ended
}

extension ByteStream {
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
