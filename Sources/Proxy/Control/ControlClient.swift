package import EventLoop
import FoundationEssentials
import Glibc
package import HTTPWire

/// Asks a running proxy over its control socket, and waits for the answer. For the commands.
package struct ControlClient {
    /// Why there is no answer of use.
    package enum Failure: Error, Sendable, Equatable {
        /// No proxy listens there, or this user may not connect.
        case unreachable(SystemError)
        /// Somebody else could have put it there; in words.
        case untrusted(String)
        /// Another process than the one that was meant listens there; nothing was asked of it.
        case stranger(process: Int32)
        /// It answered with an error.
        case refused(status: Int, cause: String)
        case silent
        /// It has closed the connection before it answered.
        case ended
        /// What it answered makes no sense.
        case broken(String)
    }

    private static let longestAnswer = 64 << 20

    private let socket: StateSocket
    private let process: Int32
    private let seconds: Int

    /// - Parameters:
    ///   - process: that is meant.
    ///   - seconds: how long it has for its answer.
    package init(_ socket: StateSocket, process: Int32, seconds: Int) {
        self.socket = socket
        self.process = process
        self.seconds = seconds
    }

    /// - Parameter accepting: a status besides 200 with which the answer comes.
    package func ask<Answer: Decodable>(
        _ method: HTTPWire.Method, _ target: String, accepting: Int = 200, as type: Answer.Type = Answer.self
    ) throws(Failure) -> Answer {
        let bytes = try exchange("\(method.text) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        if bytes.isEmpty { throw .ended }
        var parser = HeadParser(limit: bytes.count)
        var head = ResponseHead()
        guard case .complete = parser.parseResponse(bytes.span, to: method, into: &head) else {
            throw .broken("it has no head")
        }
        let body = Data(bytes[Int(head.length)...])
        if case .length(let length) = head.framing, length != UInt64(body.count) { throw .broken("it is cut short") }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard head.status == 200 || head.status == accepting else {
            let cause = (try? decoder.decode([String: String].self, from: body))?["cause"]
            throw .refused(status: head.status, cause: cause ?? "the proxy answered \(head.status)")
        }
        do {
            return try decoder.decode(type, from: body)
        } catch {
            throw .broken("\(error)")
        }
    }

    /// Writes the request and reads until the proxy closes.
    private func exchange(_ request: String) throws(Failure) -> [UInt8] {
        let socket = try socket.connect(seconds: seconds)
        if let peer = UnixSocket.peer(of: socket.raw), peer.process > 0, peer.process != process {
            throw .stranger(process: peer.process)
        }
        let bytes = Array(request.utf8)
        // One that says no and closes has perhaps said so before this: its word is read all the same.
        let sent = send(socket.raw, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        guard sent == bytes.count || errno == EPIPE else { throw .broken(String(cString: strerror(errno))) }
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while answer.count < Self.longestAnswer {
            let count = recv(socket.raw, &chunk, chunk.count, 0)
            if count == 0 { return answer }
            if count > 0 {
                answer += chunk[..<count]
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: throw .silent
            // Closed with the request unread.
            case ECONNRESET: return answer
            default: throw .broken(String(cString: strerror(errno)))
            }
        }
        throw .broken("it is longer than \(Self.longestAnswer) bytes")
    }
}
