import FoundationEssentials
import PinproxyClients
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// One client of the run socket, with one request: `POST /runs`, then lines of its run; or `GET /addresses?name=NAME`.
final class RunConnection {
    enum Asked {
        case run(Order)
        case addresses(name: String, token: RunToken)
    }

    struct Order {
        let token: RunToken
        /// The credentials of the client's own HTTPS_PROXY, in Proxy-Authorization.
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

    /// - Parameter ask: called once; answers by ``accept(_:token:begun:)``, ``answer(_:)`` or ``refuse(_:_:)``.
    init(
        stream: ByteStream, session: LoopSession, settings: ServerSettings, peer: UnixSocket.Peer,
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

    /// The token of the run, which lasts as long as this connection.
    var token: RunToken? { accepted?.token }

    func start() { server.serve() }

    func tell() { feed?.tell() }

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

    /// The body ends with the connection.
    private static let head = Array(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
            .utf8)

    /// Answers a question for addresses.
    func answer(_ name: ResolvedName) {
        guard server.isHeld else { return }
        server.answer(ControlResponse(name).bytes(keepAlive: false), then: .linger)
    }

    /// Bounds the time for an answer.
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
        case .post where target == "/runs":
            return .run(Order(token: token, credentials: Credentials(in: view.head, view.bytes)))
        // Not decoded: names hold nothing that URLs percent-encode.
        case .get where target.hasPrefix(namePrefix):
            return .addresses(name: String(target.dropFirst(namePrefix.count)), token: token)
        default: return nil
        }
    }
}

extension RunConnection: AnsweringOwner {
    func received(by door: ServerDoor) {
        guard let asked = server.readRequest({ Self.asked($0) }) else {
            return refuse(
                400,
                """
                the requests here are POST /runs and GET \(Self.namePrefix)NAME, with a run's token: Authorization: \
                Bearer TOKEN
                """
            )
        }
        ask(asked, self)
    }

    func handedOver(by server: HTTP1Server) {
        guard let (run, _, begun) = accepted else { return server.abort() }
        server.clearDeadline()
        let feed = RunFeed(
            loop: session.loop, stream: server.stream, slabs: session.slabs, run: run, begun: begun
        ) { [weak server] in
            server?.close()
        }
        self.feed = feed
        feed.start()
    }

    func clientHasGone(_ why: String) { server.abort() }
    func closed(_ server: HTTP1Server) { ended(self) }

    func secured(_ result: Result<Void, StreamError>) { server.abort() }
}

/// The connection of a run: ``RunUpdate``s to the other side, which answers by ``RunAnswer``s and ends the run.
final class RunFeed: ByteStreamOwner {
    private let stream: ByteStream
    private let run: Run
    private var ended: (() -> Void)?
    private var lines: ByteBuffer
    private var received: ByteBuffer
    private var told = 0
    private var isFinishing = false
    private var awaitingSteps: Timer?
    private var patience = 25
    /// Workers may still handle a run's last requests for a moment.
    private static let stepNanoseconds: UInt64 = 20_000_000

    private let loop: EventLoop

    /// - Parameter ended: called once, when the other side has ended.
    init(loop: EventLoop, stream: ByteStream, slabs: SlabPool, run: Run, begun: RunBegun, ended: @escaping () -> Void) {
        self.loop = loop
        self.stream = stream
        self.run = run
        self.ended = ended
        lines = ByteBuffer(slabs: slabs)
        received = ByteBuffer(slabs: slabs)
        append(RunUpdate(begun: begun))
    }

    func start() {
        stream.owner = self
        stream.wantsRead = true
        tell()
    }

    /// Sends updates. Updates that the peer doesn't read wait in the run.
    func tell() {
        guard !isFinishing else { return write() }
        if lines.isEmpty {
            let fresh = run.refusals(from: told)
            told += fresh.count
            for refusal in fresh { append(RunUpdate(refusal: refusal)) }
            for question in run.questions.takeUnsent() { append(RunUpdate(question: question)) }
        }
        write()
    }

    /// Sends the last line and the end, without waiting.
    func finish() {
        guard !isFinishing else { return }
        isFinishing = true
        run.settle()
        for refusal in run.refusals(from: told) { append(RunUpdate(refusal: refusal)) }
        append(RunUpdate(summary: run.summary))
        write()
        stream.endWriting()
    }

    private func append(_ update: RunUpdate) {
        lines.append(ControlResponse(update).body)
        lines.append([UInt8(ascii: "\n")])
    }

    private func write() {
        guard lines.count > 0 else { return }
        switch stream.write(lines.count, from: &lines) {
        case .done:
            lines.releaseIfEmpty()
            if !isFinishing, run.hasNews(after: told) { tell() }
        case .blocked: break
        case .failed: end()
        }
    }

    func streamIsReadable(_ stream: ByteStream) {
        // The initial room fits any answer.
        guard received.makeRoom(limit: 0) else { return leave() }
        switch stream.read(into: &received) {
        case .received: takeAnswers()
        case .blocked: received.releaseIfEmpty()
        case .ended, .failed: leave()
        }
    }

    /// A peer that sends anything but answers is no longer read.
    private func takeAnswers() {
        while let line = received.unread.firstIndex(of: UInt8(ascii: "\n")) {
            let answer = line > Self.longestAnswer ? nil : RunAnswer(received.unread[..<line])
            guard let answer, run.questions.received(answer) else { return leave() }
            received.consume(line + 1)
        }
        if received.count > Self.longestAnswer { leave() }
        received.releaseIfEmpty()
    }

    private static let longestAnswer = 128

    private func leave() {
        stream.wantsRead = false
        run.questions.end()
        awaitSteps()
    }

    private func awaitSteps() {
        guard run.hasSteps, patience > 0 else {
            awaitingSteps = nil
            finish()
            return end()
        }
        patience -= 1
        awaitingSteps = Timer(loop: loop, owner: self, afterNanoseconds: Self.stepNanoseconds) { $0.awaitSteps() }
    }

    private func end() {
        let ended = ended
        self.ended = nil
        ended?()
    }

    func streamIsWritable(_ stream: ByteStream) { tell() }
}

extension RunAnswer {
    init?(_ line: some Collection<UInt8>) {
        guard let answer = try? JSONDecoder.forControl().decode(RunAnswer.self, from: Data(line)) else { return nil }
        self = answer
    }
}
