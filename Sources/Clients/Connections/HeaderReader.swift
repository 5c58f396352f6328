import Glibc
package import PinproxyEventLoop

/// Reads the PROXY header before a client's first byte, and nothing beyond.
package final class HeaderReader: SocketHandler {
    /// HAProxy's specification asks for at least 3 seconds, in case a packet is lost.
    static let patience: UInt64 = 5_000_000_000

    private let loop: EventLoop
    private var source: SocketSource?
    /// -1: given away, or closed.
    private var raw: CInt
    private var received: [UInt8] = []
    private lazy var deadline = Deadline(loop: loop, owner: self) {
        let seconds = HeaderReader.patience / 1_000_000_000
        $0.end(.failure(Failure(cause: "no complete PROXY header came within \(seconds) seconds")))
    }
    private var completion: ((HeaderReader, Result<ProxyHeader, Failure>) -> Void)?

    package struct Failure: Error {
        package let cause: String
    }

    /// - Parameter completion: called once, on the loop. After a success ``take()`` has the socket.
    package init(
        loop: EventLoop, socket: consuming Descriptor,
        completion: @escaping (HeaderReader, Result<ProxyHeader, Failure>) -> Void
    ) {
        self.loop = loop
        self.completion = completion
        raw = socket.release()
        source = SocketSource(loop: loop, descriptor: raw, handler: self)
    }

    deinit { close() }

    package func start() {
        deadline.set(afterNanoseconds: Self.patience)
        source?.wantsRead = true
    }

    package func stop() { end(.failure(Failure(cause: "the proxy was stopped"))) }

    /// The socket, with the client's own bytes next. Called once, after a success.
    package func take() -> Descriptor {
        defer { raw = -1 }
        return Descriptor(owning: raw)
    }

    package func socketReady(_ readiness: Readiness) {
        var room = [UInt8](repeating: 0, count: ProxyHeader.longest + 1 - received.count)
        let count = recv(raw, &room, room.count, CInt(MSG_PEEK))
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else {
            return end(.failure(Failure(cause: "the connection ended before a complete PROXY header")))
        }
        let known = received.count
        received += room[..<count]
        do throws(ProxyHeader.Defect) {
            let header = try ProxyHeader.parse(received)
            // The client's own bytes stay in the socket.
            consume((header?.length ?? received.count) - known)
            if let header {
                end(.success(header))
            } else if received.count >= ProxyHeader.longest {
                throw .tooLong
            }
        } catch {
            end(.failure(Failure(cause: "\(error)")))
        }
    }

    private func consume(_ count: Int) {
        var room = [UInt8](repeating: 0, count: count)
        _ = recv(raw, &room, count, 0)
    }

    private func close() {
        source?.invalidate()
        source = nil
        if raw >= 0 { Glibc.close(raw) }
        raw = -1
    }

    private func end(_ result: Result<ProxyHeader, Failure>) {
        guard let completion else { return }
        self.completion = nil
        deadline.clear()
        source?.invalidate()
        source = nil
        if case .failure = result { close() }
        completion(self, result)
    }
}
