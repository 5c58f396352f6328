import Foundation

/// A plain connection, to the proxy's port or another socket, that sends exactly the given bytes.
final class RawConnection: Sendable {
    private let descriptor: CInt

    /// Runs every operation of one connection in order, off the tasks' threads.
    private let queue = DispatchQueue(label: "connection")

    convenience init(to proxy: ProxyProcess) throws {
        try self.init(port: proxy.port)
    }

    /// - Parameter address: of this machine, over IPv4.
    init(port: UInt16, at address: String = "127.0.0.1") throws {
        let host = address
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw TestBedError("no address: \(host)") }
        // A limit on every wait, so that a silent proxy fails the test and not the run.
        var bound = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
        let descriptor = descriptor
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw TestBedError("connect to \(host):\(port): errno \(errno)") }
    }

    /// To a Unix socket.
    init(path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var bound = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw TestBedError("too long: \(path)")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = descriptor
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw TestBedError("connect to \(path): errno \(errno)") }
    }

    deinit { close(descriptor) }

    /// The port that the other side sees.
    var localPort: UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    func send(_ text: String) async throws {
        try await send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) async throws {
        try await perform { descriptor in
            var sent = 0
            while sent < bytes.count {
                let count = bytes[sent...].withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
                }
                guard count > 0 else { throw TestBedError("send: errno \(errno)") }
                sent += count
            }
        }
    }

    /// Shuts down the sending side.
    func finishSending() async throws {
        try await perform { _ = shutdown($0, CInt(SHUT_WR)) }
    }

    /// Makes the final close a reset.
    func resetOnClose() async throws {
        try await perform { descriptor in
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        }
    }

    /// Resets the connection at once. Nothing can be sent or received afterwards.
    func vanish() async throws {
        try await resetOnClose()
        try await perform { descriptor in
            let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
            defer { close(nothing) }
            // This closes the socket. The number is closed by `deinit`.
            guard dup2(nothing, descriptor) == descriptor, fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else {
                throw TestBedError("dup2: errno \(errno)")
            }
        }
    }

    /// The next bytes, empty at the end.
    func receive(atMost limit: Int = 65_536) async throws -> [UInt8] {
        try await perform { descriptor in
            var buffer = [UInt8](repeating: 0, count: limit)
            let count = recv(descriptor, &buffer, limit, 0)
            guard count >= 0 else { throw TestBedError("receive: errno \(errno)") }
            return Array(buffer[..<count])
        }
    }

    /// Everything up to the end.
    func receiveAll() async throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let some = try await receive()
            if some.isEmpty { return all }
            all += some
        }
    }

    /// Everything up to the end, and whether that was a reset.
    func receiveUntilCut() async throws -> (bytes: [UInt8], wasReset: Bool) {
        try await perform { descriptor in
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count == 0 { return (all, false) }
                if count < 0, errno == ECONNRESET { return (all, true) }
                guard count > 0 else { throw TestBedError("receive: errno \(errno)") }
                all += buffer[..<count]
            }
        }
    }

    /// Waits until the other side has closed the connection, cleanly or by a reset.
    func end() async throws {
        try await perform { descriptor in
            var byte: UInt8 = 0
            while true {
                let count = recv(descriptor, &byte, 1, 0)
                if count == 0 || (count < 0 && errno == ECONNRESET) { return }
                guard count > 0 else { throw TestBedError("not ended: errno \(errno)") }
            }
        }
    }

    /// The next response: its head, and as much of its body as Content-Length says. What follows is left to be
    /// received.
    func response() async throws -> RawResponse {
        try await perform { descriptor in
            var bytes: [UInt8] = []
            func receive(_ count: Int) throws {
                var some = [UInt8](repeating: 0, count: count)
                let received = recv(descriptor, &some, count, 0)
                guard received >= 0 else { throw TestBedError("receive: errno \(errno)") }
                guard received > 0 else {
                    throw TestBedError("closed within a response: \(String(decoding: bytes, as: UTF8.self))")
                }
                bytes += some[..<received]
            }
            while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) { try receive(1) }
            let length = RawResponse(head: bytes)?.contentLength ?? 0
            let whole = bytes.count + length
            while bytes.count < whole { try receive(whole - bytes.count) }
            guard let response = RawResponse(bytes) else {
                throw TestBedError("not a response: \(String(decoding: bytes, as: UTF8.self))")
            }
            return response
        }
    }

    /// Sends a CONNECT for each of these in order, and expects refusals.
    func connectDenied(_ authorities: [String]) async throws {
        for authority in authorities {
            try await send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            var bytes: [UInt8] = []
            while RawResponse(bytes) == nil {
                let some = try await receive()
                guard !some.isEmpty else { throw TestBedError("closed within a response") }
                bytes += some
            }
            guard RawResponse(bytes)?.status == 403 else {
                throw TestBedError("\(authority): \(String(decoding: bytes, as: UTF8.self))")
            }
        }
    }

    private func perform<Value: Sendable>(
        _ work: @escaping @Sendable (CInt) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [descriptor] in
                continuation.resume(with: Result { try work(descriptor) })
            }
        }
    }
}

/// A response as read from the connection.
struct RawResponse: Sendable, CustomStringConvertible {
    let status: Int
    let reason: String
    /// Names in lower case, in the order received.
    let fields: [(name: String, value: String)]
    let body: String
    let description: String

    /// Nil while it is incomplete.
    init?(_ bytes: [UInt8]) {
        self.init(head: bytes)
        guard body.utf8.count >= contentLength else { return nil }
    }

    /// With the body received so far. Nil while the head is incomplete.
    fileprivate init?(head bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        let start = lines[0].split(separator: " ", maxSplits: 2).map(String.init)
        guard start.count >= 2, let status = Int(start[1]) else { return nil }
        self.status = status
        reason = start.count > 2 ? start[2] : ""
        fields = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (
                name: parts[0].lowercased(),
                value: (parts.dropFirst().first ?? "").trimmingCharacters(in: .whitespaces)
            )
        }
        body = String(text[end.upperBound...])
        description = text
    }

    fileprivate var contentLength: Int { self["content-length"].flatMap { Int($0) } ?? 0 }

    subscript(field: String) -> String? {
        fields.first { $0.name == field.lowercased() }?.value
    }
}

extension ProxyProcess {
    /// What the proxy answers to one CONNECT.
    func connect(to authority: String, fields: String = "") async throws -> RawResponse {
        let connection = try RawConnection(to: self)
        try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(fields)\r\n")
        return try await connection.response()
    }
}
