import HTTPWire
import Session
import TLS
import Transport

/// One client of the control socket or the admin port: reads its requests and writes the answers.
final class ControlConnection {
    typealias Answer = (ControlRequest, @escaping (ControlResponse) -> Void) -> Void

    private let server: HTTP1Server
    private let door: ControlDoor
    private let answer: Answer
    private let ended: (ControlConnection) -> Void

    /// - Parameters:
    ///   - answer: called for each request; calls back once, at once or later, on the loop.
    ///   - ended: called once, when the connection is over.
    init(
        stream: ByteStream, session: LoopSession, settings: HTTP1ServerSettings, door: ControlDoor,
        answer: @escaping Answer, ended: @escaping (ControlConnection) -> Void
    ) {
        server = HTTP1Server(stream: stream, session: session, settings: settings)
        self.door = door
        self.answer = answer
        self.ended = ended
        server.owner = self
    }

    /// A request of its is being answered.
    var isAsking: Bool {
        switch server.phase {
        case .held, .answering: true
        default: false
        }
    }

    func start() { server.serve() }

    /// Begins with TLS.
    /// - Parameter nanoseconds: for the handshake.
    func start(_ context: TLSServerContext, within nanoseconds: UInt64) {
        server.lend()
        server.setDeadline(afterNanoseconds: nanoseconds)
        do {
            let connection = try server.stream.withDescriptor { descriptor in
                try TLSConnection(server: context, descriptor: descriptor, ticketContext: Array("admin".utf8))
            }
            server.stream.owner = server
            server.stream.secure(connection)
        } catch {
            server.abort()
        }
    }

    func stop() { server.abort() }
}

extension ControlConnection: AnsweringOwner {
    func received(by server: HTTP1Server) {
        // A body would be of no use; what follows it would have to be found behind it.
        let keeps = server.head.keepsAlive && server.head.framing == .none
        guard let request = server.readRequest({ ControlRequest($0, through: door) }) else {
            return reply(.problem(400, "the request's target is not a path"), keeps: false)
        }
        answer(request) { [weak self] response in self?.reply(response, keeps: keeps, toHead: request.method == .head) }
    }

    private func reply(_ response: ControlResponse, keeps: Bool, toHead: Bool = false) {
        guard server.isHeld else { return }
        if keeps { server.dropHead() }
        server.answer(response.bytes(keepAlive: keeps, toHead: toHead), then: keeps ? .nextRequest : .linger)
    }

    func timedOut(_ server: HTTP1Server) { server.abort() }
    func clientHasGone(_ why: String) { server.abort() }
    func closed(_ server: HTTP1Server) { ended(self) }

    /// No answer of it hands the stream over.
    func handedOver(by server: HTTP1Server) { server.abort() }

    func secured(_ result: Result<Void, StreamError>) {
        switch result {
        case .success: server.serve()
        // Garbage, or a client that doesn't trust the certificate: it knows why.
        case .failure: server.abort()
        }
    }
}
