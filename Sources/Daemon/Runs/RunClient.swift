import FoundationEssentials
import Glibc
package import PinproxyClients
package import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

/// Begins a run of `pinproxy exec`, which lasts until ``end()``, or until this object or its process ends.
package final class RunClient {
    /// Readable when ``receive()`` has something.
    package var descriptor: CInt { call.descriptor }
    package let begun: RunBegun
    private var call: ControlCall

    /// Blocks until the proxy answers.
    /// - Parameter credentials: `NAME:PASSWORD` of `proxy.users`.
    package init(
        _ place: StateSocket, process: Int32, token: RunToken, credentials: String?, seconds: Int
    ) throws(ControlFailure) {
        var fields = "Authorization: Bearer \(token.text)\r\n"
        if let credentials {
            fields += "Proxy-Authorization: Basic \(Data(credentials.utf8).base64EncodedString())\r\n"
        }
        var call = try ControlCall(place, process: process, seconds: seconds, .post, "/runs", fields: fields)
        begun = try Self.answer(&call)
        _ = fcntl(call.descriptor, F_SETFL, fcntl(call.descriptor, F_GETFL) | O_NONBLOCK)
        self.call = call
    }

    private static func answer(_ call: inout ControlCall) throws(ControlFailure) -> RunBegun {
        let head = try call.head(to: .post)
        guard head.status == 200 else { throw ControlFailure(status: head.status, body: try call.rest()) }
        guard let first = try call.line(), let begun = update(first)?.begun else {
            throw .broken("it has no first line")
        }
        return begun
    }

    private static func update(_ line: [UInt8]) -> RunUpdate? {
        try? JSONDecoder.forControl().decode(RunUpdate.self, from: Data(line))
    }

    /// Doesn't wait. Nil: the connection has ended.
    package func receive() -> [RunUpdate]? {
        var updates: [RunUpdate] = []
        while true {
            do throws(ControlFailure) {
                guard let line = try call.line() else { return updates.isEmpty ? nil : updates }
                if let update = Self.update(line) { updates.append(update) }
            } catch {
                return updates.isEmpty && error != .silent ? nil : updates
            }
        }
    }

    /// Drops answers without room in the socket; a proxy that reads has room.
    package func answer(_ answers: [RunAnswer]) {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        for answer in answers {
            guard let line = try? encoder.encode(answer) else { continue }
            let bytes = [UInt8](line) + [UInt8(ascii: "\n")]
            _ = send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        }
    }

    /// The proxy still sends its last updates.
    package func end() { shutdown(descriptor, CInt(SHUT_WR)) }
}

/// Asks a running proxy for addresses of names, for a run of `pinproxy exec`. Each question is a connection, so that a
/// restarted proxy is asked like the one before. Belongs to one loop.
package final class RunNames {
    private static let patienceNanoseconds: UInt64 = 35_000_000_000

    private let loop: EventLoop
    private let slabs = SlabPool()
    private let place: StateSocket
    private let token: RunToken
    private var questions: [ObjectIdentifier: Question] = [:]

    package init(loop: EventLoop, _ place: StateSocket, token: RunToken) {
        self.loop = loop
        self.place = place
        self.token = token
    }

    /// - Parameters:
    ///   - name: a final dot excludes the search list.
    ///   - completion: called once, on the loop, never before this returns.
    package func ask(_ name: String, completion: @escaping (Result<ResolvedName, ControlFailure>) -> Void) {
        let request =
            """
            GET \(RunConnection.namePrefix)\(name) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \
            \(token.text)\r\n\r\n
            """
        let socket: Descriptor
        do throws(ControlFailure) {
            socket = try place.connectAtOnce()
        } catch {
            return loop.afterThisTurn { completion(.failure(error)) }
        }
        let question = Question(loop: loop, slabs: slabs, socket: socket, within: Self.patienceNanoseconds)
        let key = ObjectIdentifier(question)
        questions[key] = question
        question.ask(request) { [weak self, loop] result in
            loop.afterThisTurn {
                self?.questions[key] = nil
                completion(result)
            }
        }
    }

    private final class Question: ByteStreamOwner {
        typealias Answer = Result<ResolvedName, ControlFailure>
        private static let longest = 64 << 10

        private let stream: ByteStream
        private var answer: ByteBuffer
        private var completion: ((Answer) -> Void)?
        private let deadline: Deadline

        init(loop: EventLoop, slabs: SlabPool, socket: consuming Descriptor, within nanoseconds: UInt64) {
            stream = ByteStream(loop: loop, descriptor: socket)
            answer = ByteBuffer(slabs: slabs)
            deadline = Deadline(loop: loop)
            deadline.bind(to: self) { $0.end(.failure(.silent)) }
            deadline.set(afterNanoseconds: nanoseconds)
        }

        func ask(_ request: String, completion: @escaping (Answer) -> Void) {
            self.completion = completion
            stream.owner = self
            answer.append(Array(request.utf8))
            // A new socket has room for it.
            guard case .done = stream.write(answer.count, from: &answer) else { return end(.failure(.ended)) }
            stream.wantsRead = true
        }

        func streamIsReadable(_ stream: ByteStream) {
            guard answer.makeRoom(limit: Self.longest) else { return end(.failure(.broken("it is too long"))) }
            switch stream.read(into: &answer) {
            case .received, .blocked: break
            case .ended: end(parsed())
            case .failed: end(.failure(.ended))
            }
        }

        private func parsed() -> Answer {
            let bytes = Array(answer.unread)
            if bytes.isEmpty { return .failure(.ended) }
            var parser = HeadParser(limit: Self.longest)
            var head = ResponseHead()
            guard case .complete = parser.parseResponse(bytes.span, to: .get, into: &head) else {
                return .failure(.broken("it has no head"))
            }
            let body = Array(bytes[Int(head.length)...])
            guard head.status == 200 else { return .failure(ControlFailure(status: head.status, body: body)) }
            guard let name = try? JSONDecoder().decode(ResolvedName.self, from: Data(body)) else {
                return .failure(.broken("it has no addresses"))
            }
            return .success(name)
        }

        private func end(_ answer: Answer) {
            guard let completion else { return }
            self.completion = nil
            deadline.clear()
            stream.stop()
            completion(answer)
        }
    }
}
