internal import Glibc

/// Messages over a Unix socket of packets (SOCK_SEQPACKET), perhaps with descriptors (SCM_RIGHTS of unix(7)).
package enum DescriptorMessage {
    private static let limit = (bytes: 4096, descriptors: 32)

    /// Two connected, blocking ends, close-on-exec, owned by the caller.
    package static func pair() throws(SystemError) -> (CInt, CInt) {
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw SystemError.last("socketpair")
        }
        return (ends[0], ends[1])
    }

    /// - Parameters:
    ///   - bytes: 1 to 4096.
    ///   - descriptors: at most 32; they stay the caller's.
    package static func send(_ bytes: [UInt8], _ descriptors: [CInt] = [], over socket: CInt) throws(SystemError) {
        var bytes = bytes
        var control: [UInt8] = []
        if !descriptors.isEmpty {
            let data = descriptors.withUnsafeBytes { Array($0) }
            control = ControlMessages.bytes(of: .init(level: SOL_SOCKET, type: CInt(SCM_RIGHTS), data: data))
        }
        let sent = bytes.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                ControlMessages.withMessage(name: nil, 0, bytes, control) { message in
                    var sent = sendmsg(socket, &message, CInt(MSG_NOSIGNAL))
                    while sent < 0, errno == EINTR { sent = sendmsg(socket, &message, CInt(MSG_NOSIGNAL)) }
                    return sent
                }
            }
        }
        guard sent == bytes.count else { throw SystemError.last("sendmsg") }
    }

    /// Waits for a message; nil at the end. The descriptors are close-on-exec, owned by the caller.
    package static func receive(from socket: CInt) throws(SystemError) -> (bytes: [UInt8], descriptors: [CInt])? {
        var bytes = [UInt8](repeating: 0, count: limit.bytes)
        var control = [UInt8](
            repeating: 0, count: ControlMessages.space(for: limit.descriptors * MemoryLayout<CInt>.size))
        var controlLength = 0
        let count = bytes.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                ControlMessages.withMessage(name: nil, 0, bytes, control) { message in
                    var count = recvmsg(socket, &message, CInt(MSG_CMSG_CLOEXEC))
                    while count < 0, errno == EINTR { count = recvmsg(socket, &message, CInt(MSG_CMSG_CLOEXEC)) }
                    controlLength = Int(message.msg_controllen)
                    return count
                }
            }
        }
        guard count >= 0 else { throw SystemError.last("recvmsg") }
        guard count > 0 else { return nil }
        var descriptors: [CInt] = []
        for message in ControlMessages.parse(control[..<controlLength]) where message.type == CInt(SCM_RIGHTS) {
            for start in stride(from: 0, to: message.data.count, by: MemoryLayout<CInt>.size) {
                descriptors.append(message.data[start...].withUnsafeBytes { $0.loadUnaligned(as: CInt.self) })
            }
        }
        return (Array(bytes[..<count]), descriptors)
    }
}
