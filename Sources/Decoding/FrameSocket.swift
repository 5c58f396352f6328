internal import Glibc

/// The process's end of the socket. Its calls block.
struct FrameSocket {
    private let descriptor: CInt

    init(_ descriptor: CInt) { self.descriptor = descriptor }

    /// - Returns: whether everything was sent.
    func send(_ message: [UInt8], _ body: [UInt8]) -> Bool {
        send(Frame.head(message: message.count, body: body.count) + message) && send(body)
    }

    private func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + sent, bytes.count - sent) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// The next frame; nil at the end. The proxy's lengths are trusted.
    func receive() -> (message: [UInt8], body: [UInt8])? {
        guard let head = receive(Frame.headLength),
            let lengths = try? Frame.lengths(head, longestMessage: .max, longestBody: .max),
            let message = receive(lengths.message), let body = receive(lengths.body)
        else { return nil }
        return (message, body)
    }

    private func receive(_ count: Int) -> [UInt8]? {
        var isWhole = true
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, received in
            received = 0
            while received < count {
                let more = read(descriptor, buffer.baseAddress! + received, count - received)
                if more < 0, errno == EINTR { continue }
                guard more > 0 else {
                    isWhole = false
                    return
                }
                received += more
            }
        }
        return isWhole ? bytes : nil
    }
}
