import EventLoop
import HTTPWire
import Session
import Transport

/// One client of the run socket: asks `POST /runs` once, and gets lines for as long as its run lasts.
final class RunConnection {
    /// The one request, read.
    struct Order {
        /// Of the Authorization field.
        let token: RunToken
        /// Those that the client's own HTTPS_PROXY had, of the Proxy-Authorization field.
        let credentials: Credentials?
    }

    typealias Begin = (Order, RunConnection) -> Void

    let peer: UnixSocket.Peer
    private let server: HTTP1Server
    private let session: LoopSession
    private let begin: Begin
    private let ended: (RunConnection) -> Void
    private var feed: RunFeed?
    private var accepted: (run: Run, token: RunToken, begun: RunBegun)?

    /// - Parameters:
    ///   - begin: called once with what is asked for; answers by ``accept(_:token:begun:)`` or ``refuse(_:_:)``, at once or later.
    ///   - ended: called once, when the connection is over.
    init(
        stream: ByteStream, session: LoopSession, settings: HTTP1ServerSettings, peer: UnixSocket.Peer,
        begin: @escaping Begin, ended: @escaping (RunConnection) -> Void
    ) {
        server = HTTP1Server(stream: stream, session: session, settings: settings)
        self.peer = peer
        self.session = session
        self.begin = begin
        self.ended = ended
        server.owner = self
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

    func refuse(_ status: Int, _ cause: String) {
        guard server.isHeld else { return }
        server.answer(ControlResponse.problem(status, cause).bytes(keepAlive: false), then: .linger)
    }

    private static func order(_ view: borrowing RequestView) -> Order? {
        guard view.head.method == .post, view.head.target.text(in: view.bytes) == "/runs",
            let field = view.head.first(.authorization)?.text(in: view.bytes), field.hasPrefix("Bearer "),
            let token = RunToken(field.dropFirst(7))
        else { return nil }
        return Order(token: token, credentials: Credentials(in: view.head, view.bytes))
    }
}

extension RunConnection: AnsweringOwner {
    func received(by server: HTTP1Server) {
        guard let order = server.readRequest({ Self.order($0) }) else {
            return refuse(400, "the only request here is POST /runs with a run's token: Authorization: Bearer TOKEN")
        }
        begin(order, self)
    }

    func handedOver(by server: HTTP1Server) {
        guard let (run, _, begun) = accepted else { return server.abort() }
        server.clearDeadline()
        let feed = RunFeed(
            loop: session.loop, stream: server.stream, slabs: session.slabs, run: run, begun: begun) { [unowned server] in
            server.close()
        }
        self.feed = feed
        feed.start()
    }

    func timedOut(_ server: HTTP1Server) { server.abort() }
    func clientHasGone(_ why: String) { server.abort() }
    func closed(_ server: HTTP1Server) { ended(self) }

    func secured(_ result: Result<Void, StreamError>) { server.abort() }
}
