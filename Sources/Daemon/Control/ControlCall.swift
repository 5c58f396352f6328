import FoundationEssentials
import Glibc
import PinproxyEventLoop
package import PinproxyHTTPWire

/// A request to a running proxy over one of its sockets. Its methods block.
struct ControlCall: ~Copyable {
    /// Most bytes of a head, a line, or a refusal.
    static let longestPart = 64 << 10

    private let socket: Descriptor
    private var bytes: [UInt8] = []

    var descriptor: CInt { socket.raw }

    /// - Parameters:
    ///   - process: must be listening there.
    ///   - seconds: for each read and write.
    ///   - fields: of the head besides Host, each with its line's end.
    init(
        _ place: StateSocket, process: Int32, seconds: Int, _ method: PinproxyHTTPWire.Method, _ target: String,
        fields: String
    ) throws(ControlFailure) {
        let socket = try place.connect(seconds: seconds)
        if let peer = UnixSocket.peer(of: socket.raw), peer.process > 0, peer.process != process {
            throw .stranger(process: peer.process)
        }
        let request = Array("\(method.text) \(target) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n".utf8)
        // A proxy that refuses may have answered and closed already: its answer is read.
        guard send(socket.raw, request, request.count, CInt(MSG_NOSIGNAL)) == request.count || errno == EPIPE else {
            throw .broken(String(cString: strerror(errno)))
        }
        self.socket = socket
    }

    mutating func head(to method: PinproxyHTTPWire.Method) throws(ControlFailure) -> ResponseHead {
        var parser = HeadParser(limit: Self.longestPart)
        var head = ResponseHead()
        while true {
            switch parser.parseResponse(bytes.span, to: method, into: &head) {
            case .complete:
                bytes.removeFirst(Int(head.length))
                return head
            case .incomplete:
                guard try receive() else { throw bytes.isEmpty ? .ended : .broken("it has no head") }
            case .malformed, .tooLarge, .tooManyFields: throw .broken("it has no head")
            }
        }
    }

    /// Nil at the end. Throws `silent` if no whole line has arrived.
    mutating func line() throws(ControlFailure) -> [UInt8]? {
        while true {
            if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
                defer { bytes.removeSubrange(...end) }
                return Array(bytes[..<end])
            }
            guard bytes.count < Self.longestPart else { throw .broken("it has a line that is too long") }
            guard try receive() else { return nil }
        }
    }

    mutating func rest(limit: Int = ControlCall.longestPart) throws(ControlFailure) -> [UInt8] {
        while try receive() {
            if bytes.count > limit { throw .broken("it is longer than \(limit) bytes") }
        }
        return bytes
    }

    /// - Returns: false at the end.
    private mutating func receive() throws(ControlFailure) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = recv(socket.raw, &chunk, chunk.count, 0)
            if count > 0 {
                bytes += chunk[..<count]
                return true
            }
            // ECONNRESET: closed with the request unread.
            if count == 0 || errno == ECONNRESET { return false }
            if errno == EAGAIN { throw .silent }
            guard errno == EINTR else { throw .broken(String(cString: strerror(errno))) }
        }
    }
}

extension ControlFailure {
    init(status: Int, body: [UInt8]) {
        let cause = (try? JSONDecoder().decode([String: String].self, from: Data(body)))?["cause"]
        self = .refused(status: status, cause: cause ?? "the proxy answered \(status)")
    }
}

extension JSONDecoder {
    /// For what ``ControlResponse`` writes.
    static func forControl() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }
}

/// Asks a running proxy over its control socket, and blocks. For the commands.
package struct ControlClient {
    private static let longestAnswer = 64 << 20

    private let socket: StateSocket
    private let process: Int32
    private let seconds: Int

    package init(_ socket: StateSocket, process: Int32, seconds: Int) {
        self.socket = socket
        self.process = process
        self.seconds = seconds
    }

    /// - Parameter accepting: a status besides 200 that has an answer.
    package func ask<Answer: Decodable>(
        _ method: PinproxyHTTPWire.Method, _ target: String, accepting: Int = 200, as type: Answer.Type = Answer.self
    ) throws(ControlFailure) -> Answer {
        var call = try ControlCall(
            socket, process: process, seconds: seconds, method, target, fields: "Connection: close\r\n")
        let head = try call.head(to: method)
        let body = try call.rest(limit: Self.longestAnswer)
        if case .known(let length) = head.bodyLength, length != UInt64(body.count) { throw .broken("it is cut short") }
        guard head.status == 200 || head.status == accepting else {
            throw ControlFailure(status: head.status, body: body)
        }
        do {
            return try JSONDecoder.forControl().decode(type, from: Data(body))
        } catch {
            throw .broken("\(error)")
        }
    }
}
