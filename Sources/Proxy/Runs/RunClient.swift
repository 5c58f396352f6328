import EventLoop
import FoundationEssentials
import Glibc
import HTTPWire

/// Begins a run over a running proxy's run socket, and hears what is refused in it. For `pinproxy exec`.
///
/// The run lasts until ``end()``, or until this object or its process is gone.
package final class RunClient {
    private static let longestLine = 64 << 10

    /// Readable when there is something to ``receive()``.
    package let descriptor: CInt
    package let begun: RunBegun
    private let socket: Descriptor
    private var lines: Lines

    /// Waits for the proxy's answer.
    /// - Parameters:
    ///   - place: of the proxy's socket.
    ///   - process: that is meant.
    ///   - credentials: `NAME:PASSWORD` of `proxy.users`, if there are any.
    ///   - seconds: how long the proxy has for it.
    package init(
        _ place: StateSocket, process: Int32, token: RunToken, credentials: String?, seconds: Int
    ) throws(ControlClient.Failure) {
        let socket = try place.connect(seconds: seconds)
        if let peer = UnixSocket.peer(of: socket.raw), peer.process > 0, peer.process != process {
            throw .stranger(process: peer.process)
        }
        let raw = socket.raw
        var lines = Lines(raw)
        var request = "POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token.text)\r\n"
        if let credentials {
            request += "Proxy-Authorization: Basic \(Data(credentials.utf8).base64EncodedString())\r\n"
        }
        let bytes = Array((request + "\r\n").utf8)
        guard send(raw, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count || errno == EPIPE else {
            throw .broken(String(cString: strerror(errno)))
        }
        begun = try Self.answer(&lines)
        let flags = fcntl(raw, F_GETFL)
        _ = fcntl(raw, F_SETFL, flags | O_NONBLOCK)
        descriptor = raw
        self.lines = lines
        self.socket = socket
    }

    /// The head of the proxy's answer, and its first line.
    private static func answer(_ lines: inout Lines) throws(ControlClient.Failure) -> RunBegun {
        guard let start = try lines.next() else { throw .ended }
        let words = start.split(separator: UInt8(ascii: " "))
        guard words.count > 1, let status = Int(String(decoding: words[1], as: UTF8.self)) else {
            throw .broken("it has no head")
        }
        while let field = try lines.next(), !field.allSatisfy({ $0 == UInt8(ascii: "\r") }) {}
        if status != 200 {
            let body = try lines.rest()
            let cause = (try? JSONDecoder().decode([String: String].self, from: Data(body)))?["cause"]
            throw .refused(status: status, cause: cause ?? "the proxy answered \(status)")
        }
        guard let first = try lines.next(), let begun = Self.update(first)?.begun else { throw .broken("it has no first line") }
        return begun
    }

    private static func update(_ line: [UInt8]) -> RunUpdate? {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try? decoder.decode(RunUpdate.self, from: Data(line))
    }

    /// What has come; nil at the end, however that came about. Doesn't wait.
    package func receive() -> [RunUpdate]? {
        var updates: [RunUpdate] = []
        while true {
            do throws(ControlClient.Failure) {
                guard let line = try lines.next() else { return updates.isEmpty ? nil : updates }
                if let update = Self.update(line) { updates.append(update) }
            } catch {
                if case .silent = error { return updates }
                return updates.isEmpty ? nil : updates
            }
        }
    }

    /// Answers what was asked. Where there is no room for it, which the proxy leaves as long as it reads, nothing is said.
    package func answer(_ answers: [RunAnswer]) {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        for answer in answers {
            guard let line = try? encoder.encode(answer) else { continue }
            let bytes = [UInt8](line) + [UInt8(ascii: "\n")]
            _ = send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        }
    }

    /// The run is over: what was not told yet follows, then the end.
    package func end() { shutdown(descriptor, CInt(SHUT_WR)) }

    /// The lines that arrive at a socket.
    private struct Lines {
        private let raw: CInt
        private var bytes: [UInt8] = []

        init(_ raw: CInt) { self.raw = raw }

        /// Nil at the end; `silent` if there is no whole line yet and the socket has no more.
        mutating func next() throws(ControlClient.Failure) -> [UInt8]? {
            while true {
                if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
                    defer { bytes.removeSubrange(...end) }
                    return Array(bytes[..<end])
                }
                guard bytes.count < RunClient.longestLine else { throw .broken("it has a line that is too long") }
                guard try receive() else { return nil }
            }
        }

        /// What is left until the end.
        mutating func rest() throws(ControlClient.Failure) -> [UInt8] {
            while bytes.count < RunClient.longestLine, try receive() {}
            return bytes
        }

        /// - Returns: false at the end.
        private mutating func receive() throws(ControlClient.Failure) -> Bool {
            var chunk = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = recv(raw, &chunk, chunk.count, 0)
                if count > 0 {
                    bytes += chunk[..<count]
                    return true
                }
                if count == 0 || errno == ECONNRESET { return false }
                if errno == EAGAIN { throw .silent }
                guard errno == EINTR else { throw .broken(String(cString: strerror(errno))) }
            }
        }
    }
}
