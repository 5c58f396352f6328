internal import Glibc

/// Ancillary data of sendmsg(2) and recvmsg(2), in the layout of cmsg(3), which C has as macros.
enum ControlMessages {
    struct Message {
        let level: CInt
        let type: CInt
        let data: [UInt8]
    }

    private static let headerSize = aligned(MemoryLayout<cmsghdr>.size)

    private static func aligned(_ count: Int) -> Int {
        let word = MemoryLayout<Int>.size
        return (count + word - 1) / word * word
    }

    static func space(for count: Int) -> Int { headerSize + aligned(count) }

    static func bytes(of message: Message) -> [UInt8] {
        var header = cmsghdr()
        header.cmsg_len = .init(headerSize + message.data.count)
        header.cmsg_level = message.level
        header.cmsg_type = message.type
        let padding = [UInt8](repeating: 0, count: headerSize - MemoryLayout<cmsghdr>.size)
        let filling = [UInt8](repeating: 0, count: aligned(message.data.count) - message.data.count)
        return withUnsafeBytes(of: header) { Array($0) } + padding + message.data + filling
    }

    static func parse(_ bytes: ArraySlice<UInt8>) -> [Message] {
        var (messages, rest) = ([Message](), bytes)
        while rest.count >= headerSize {
            let header = rest.withUnsafeBytes { $0.loadUnaligned(as: cmsghdr.self) }
            let length = Int(header.cmsg_len)
            guard length >= headerSize, length <= rest.count else { break }
            messages.append(
                Message(
                    level: header.cmsg_level, type: header.cmsg_type,
                    data: Array(rest.dropFirst(headerSize).prefix(length - headerSize))))
            rest = rest.dropFirst(aligned(length))
        }
        return messages
    }

    static func withMessage<Result>(
        name: UnsafeMutableRawPointer?, _ nameLength: Int, _ bytes: UnsafeMutableRawBufferPointer,
        _ control: UnsafeMutableRawBufferPointer,
        _ body: (inout msghdr) -> Result
    ) -> Result {
        var piece = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &piece) { piece in
            var message = msghdr()
            message.msg_name = name
            message.msg_namelen = socklen_t(nameLength)
            message.msg_iov = piece
            message.msg_iovlen = 1
            message.msg_control = control.isEmpty ? nil : control.baseAddress
            message.msg_controllen = .init(control.count)
            return body(&message)
        }
    }
}
