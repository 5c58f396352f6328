import Clients
import EventLoop
import HTTPWire
import Session
import Transport

/// One client of the run socket. It asks once: `POST /runs`, and gets lines for as long as its run lasts; or
/// `GET /addresses?name=NAME`, for a run that is under way.
final class RunConnection {
    enum Asked {
        case run(Order)
        case addresses(name: String, token: RunToken)
    }

    /// A run that is to begin.
    struct Order {
        /// Of the Authorization field.
        let token: RunToken
        /// Those that the client's own HTTPS_PROXY had, of the Proxy-Authorization field.
        let credentials: Credentials?
    }

    typealias Ask = (Asked, RunConnection) -> Void

    let peer: UnixSocket.Peer
    private let server: HTTP1Server
    private let session: LoopSession
    private let ask: Ask
    private let ended: (RunConnection) -> Void
    private var feed: RunFeed?
    private var accepted: (run: Run, token: RunToken, begun: RunBegun)?

    /// - Parameters:
    ///   - ask: called once with what is asked for; answers by ``accept(_:token:begun:)``, ``answer(_:)`` or ``refuse(_:_:)``, at once
    ///     or later.
    ///   - ended: called once, when the connection is over.
    init(
        stream: ByteStream, session: LoopSession, settings: HTTP1ServerSettings, peer: UnixSocket.Peer,
        ask: @escaping Ask, ended: @escaping (RunConnection) -> Void
    ) {
        server = HTTP1Server(stream: stream, session: session, settings: settings)
        self.peer = peer
        self.session = session
        self.ask = ask
        self.ended = ended
        server.owner = self
        server.handler = self
    }

    /// The token of the run that lasts as long as this connection.
    var token: RunToken? { accepted?.token }

    func start() { server.serve() }

    /// Tells what has been refused.
    func tell() { feed?.tell() }

    /// The proxy ends.
    func stop() {
        feed?.finish()
        server.close()
    }

    func accept(_ run: Run, token: RunToken, begun: RunBegun) {
        accepted = (run, token, begun)
        guard server.isHeld else { return }
        server.dropHead()
        server.answer(Self.head, then: .handOver)
    }

    /// It ends with the connection that it is the end of.
    private static let head = Array(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n".utf8)

    /// The end of a question for addresses.
    func answer(_ name: ResolvedName) {
        guard server.isHeld else { return }
        server.answer(ControlResponse(name).bytes(keepAlive: false), then: .linger)
    }

    /// What it asks for takes its time, but not more than so much.
    func allow(_ nanoseconds: UInt64) { server.setDeadline(afterNanoseconds: nanoseconds) }

    func refuse(_ status: Int, _ cause: String) {
        guard server.isHeld else { return }
        server.answer(ControlResponse.problem(status, cause).bytes(keepAlive: false), then: .linger)
    }

    static let namePrefix = "/addresses?name="

    private static func asked(_ view: borrowing RequestView) -> Asked? {
        guard let field = view.head.first(.authorization)?.text(in: view.bytes), field.hasPrefix("Bearer "),
            let token = RunToken(field.dropFirst(7))
        else { return nil }
        let target = view.head.target.text(in: view.bytes)
        switch view.head.method {
        case .post where target == "/runs": return .run(Order(token: token, credentials: Credentials(in: view.head, view.bytes)))
        // As it is: no name holds what a URL would have percent-encoded.
        case .get where target.hasPrefix(namePrefix): return .addresses(name: String(target.dropFirst(namePrefix.count)), token: token)
        default: return nil
        }
    }
}

extension RunConnection: AnsweringOwner {
    func received(by server: HTTP1Server) {
        guard let asked = server.readRequest({ Self.asked($0) }) else {
            return refuse(
                400, "the requests here are POST /runs and GET \(Self.namePrefix)NAME, with a run's token: Authorization: Bearer TOKEN")
        }
        ask(asked, self)
    }

    func handedOver(by server: HTTP1Server) {
        guard let (run, _, begun) = accepted else { return server.abort() }
        server.clearDeadline()
        let feed = RunFeed(
            loop: session.loop, stream: server.stream, slabs: session.slabs, run: run, begun: begun) { [weak server] in
            server?.close()
        }
        self.feed = feed
        feed.start()
    }

    func timedOut(_ server: HTTP1Server) { server.abort() }
    func clientHasGone(_ why: String) { server.abort() }
    func closed(_ server: HTTP1Server) { ended(self) }

    func secured(_ result: Result<Void, StreamError>) { server.abort() }
}
