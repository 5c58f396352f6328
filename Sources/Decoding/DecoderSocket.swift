import Glibc
import PinproxyEventLoop

/// The proxy's end of the socket to a decoder process. It never waits.
struct DecoderSocket {
    enum Written { case done, blocked, failed }

    enum Received {
        case piece
        case frame(message: [UInt8], body: [UInt8])
        /// Impossible lengths, or unrequested bytes.
        case malformed
        case blocked
        case closed
    }

    private static let pieceLength = 64 << 10

    private var descriptor: CInt
    private var outgoing: [[UInt8]] = []
    private var sent = 0
    private var reader = FrameReader(longestMessage: 0, longestBody: 0)

    /// - Parameter descriptor: closed by ``close()``.
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor.release() }

    var raw: CInt { descriptor }
    /// Part of the last frame isn't sent yet.
    var isSending: Bool { !outgoing.isEmpty }

    mutating func close() {
        guard descriptor >= 0 else { return }
        _ = Glibc.close(descriptor)
        descriptor = -1
        outgoing = []
    }

    // MARK: Sending

    mutating func send(_ message: [UInt8], _ body: [UInt8]) {
        outgoing = [Frame.head(message: message.count, body: body.count) + message, body].filter { !$0.isEmpty }
        sent = 0
    }

    mutating func write() -> Written {
        while let first = outgoing.first {
            let count = first.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
                return Glibc.send(descriptor, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                return errno == EAGAIN ? .blocked : .failed
            }
            sent += count
            guard sent == first.count else { continue }
            outgoing.removeFirst()
            sent = 0
        }
        return .done
    }

    // MARK: Receiving

    /// Expects one frame, with a body of at most this length.
    mutating func expect(longestBody: Int) {
        reader = FrameReader(longestMessage: Frame.longestAnswer, longestBody: longestBody)
    }

    mutating func read() -> Received {
        withUnsafeTemporaryAllocation(byteCount: Self.pieceLength, alignment: 1) { room in
            let count = recv(descriptor, room.baseAddress, room.count, 0)
            guard count > 0 else {
                if count == 0 { return .closed }
                return errno == EAGAIN || errno == EINTR ? .blocked : .closed
            }
            do throws(Frame.Defect) {
                guard let frame = try reader.take(UnsafeRawBufferPointer(rebasing: room[..<count])) else {
                    return .piece
                }
                return .frame(message: frame.message, body: frame.body)
            } catch {
                return .malformed
            }
        }
    }
}
