import PinproxyClients
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// One client of the control socket or the admin port.
final class ControlConnection {
    typealias Answer = (ControlRequest, @escaping (ControlResponse) -> Void) -> Void

    private let server: HTTP1Server
    private let door: ControlDoor
    private let claimant: Claimant
    private let answer: Answer
    private let ended: (ControlConnection) -> Void
    private let feed: () -> LiveFeed?
    /// Nil until it asks for events.
    private var watched: LiveFeed?
    private var showsPaths = false
    private var outgoing: ByteBuffer
    private var received: ByteBuffer
    /// Events in a row that had to be dropped.
    private var leftOut = 0
    private static let patienceInEvents = 30

    /// - Parameters:
    ///   - answer: called for each request; calls back once, at once or later, on the loop.
    ///   - ended: called once, when the connection is closed.
    init(
        stream: ByteStream, session: LoopSession, settings: ServerSettings, door: ControlDoor, claimant: Claimant,
        answer: @escaping Answer, feed: @escaping () -> LiveFeed?, ended: @escaping (ControlConnection) -> Void
    ) {
        server = HTTP1Server(stream: stream, session: session, settings: settings)
        self.door = door
        self.claimant = claimant
        self.answer = answer
        self.ended = ended
        self.feed = feed
        outgoing = ByteBuffer(slabs: session.slabs)
        received = ByteBuffer(slabs: session.slabs)
        server.owner = self
        server.handler = self
    }

    var isAsking: Bool {
        if watched != nil { return true }
        return switch server.phase {
        case .held, .answering: true
        default: false
        }
    }

    func start() { server.serve() }

    /// - Parameter nanoseconds: for the TLS handshake.
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
    func received(by door: ServerDoor) {
        // A body is of no use, and isn't read.
        let keeps = server.servesOn
        guard let request = server.readRequest({ ControlRequest($0, through: self.door) }) else {
            return reply(.problem(400, "the request's target is not a path"), keeps: false)
        }
        answer(request) { [weak self] response in self?.reply(response, keeps: keeps, toHead: request.method == .head) }
    }

    private func reply(_ response: ControlResponse, keeps: Bool, toHead: Bool = false) {
        guard server.isHeld else { return }
        if response.opensEvents, !toHead { return openEvents(response) }
        if keeps { server.dropHead() }
        server.answer(response.bytes(keepAlive: keeps, toHead: toHead), then: keeps ? .nextRequest : .linger)
    }

    private func openEvents(_ response: ControlResponse) {
        guard let feed = feed() else { return reply(.problem(503, "the proxy is just starting"), keeps: false) }
        if let lack = feed.lack(for: claimant) {
            return reply(
                .problem(503, "\(lack.text("watchers", of: claimant)) already receive events, which is the limit"),
                keeps: false)
        }
        watched = feed
        showsPaths = response.showsPaths
        server.dropHead()
        server.answer(ControlResponse.eventHead, then: .handOver)
    }

    func handedOver(by server: HTTP1Server) {
        guard let watched else { return server.abort() }
        server.clearDeadline()
        server.stream.owner = self
        server.stream.wantsRead = true
        if !watched.add(self, of: claimant, showsPaths: showsPaths) { stop() }
    }

    private func write() {
        switch server.stream.write(outgoing.count, from: &outgoing) {
        case .blocked: return
        case .failed: stop()
        case .done: outgoing.releaseIfEmpty()
        }
    }

    func clientHasGone(_ why: String) { server.abort() }

    func closed(_ server: HTTP1Server) {
        watched?.remove(self)
        watched = nil
        ended(self)
    }

    func secured(_ result: Result<Void, StreamError>) {
        switch result {
        case .success: server.serve()
        // Garbage, or a client that doesn't trust the certificate.
        case .failure: server.abort()
        }
    }
}

extension ControlConnection: LiveFeedReader {
    func send(_ event: [UInt8]) -> Bool {
        guard !server.isClosed else { return false }
        guard outgoing.isEmpty else {
            leftOut += 1
            if leftOut > Self.patienceInEvents { stop() }
            return false
        }
        leftOut = 0
        outgoing.append(event)
        write()
        return true
    }
}

/// While it watches events.
extension ControlConnection: ByteStreamOwner {
    /// Only the client's end is expected.
    func streamIsReadable(_ stream: ByteStream) {
        switch stream.read(into: &received) {
        case .received, .blocked:
            received.consume(received.count)
            received.releaseIfEmpty()
        case .ended, .failed: stop()
        }
    }

    func streamIsWritable(_ stream: ByteStream) { write() }
}

/// The connections of the control socket, or of the admin port. On the main loop.
final class ControlClients {
    /// A new client displaces one of its user's or address's full share, idle ones first.
    static let limit = 64
    private static let patience: Duration = .seconds(10)

    private let loop: EventLoop
    private let session: LoopSession
    private let settings = ServerSettings(waiting: patience)
    private let answer: ControlConnection.Answer
    private let feed: () -> LiveFeed?
    private var clients: FairRoster<Claimant, ControlConnection>

    init(
        loop: EventLoop, session: LoopSession, share: Int, answer: @escaping ControlConnection.Answer,
        feed: @escaping () -> LiveFeed?
    ) {
        clients = FairRoster(places: Self.limit, share: share)
        self.feed = feed
        self.loop = loop
        self.session = session
        self.answer = answer
    }

    func serve(
        _ socket: consuming Descriptor, of claimant: Claimant, through door: ControlDoor, tls: TLSServerContext? = nil
    ) {
        let client = ControlConnection(
            stream: ByteStream(loop: loop, descriptor: socket), session: session, settings: settings, door: door,
            claimant: claimant, answer: answer, feed: feed
        ) { [weak self] client in
            self?.clients.remove(client)
        }
        clients.add(client, of: claimant, sparing: \.isAsking)?.stop()
        if let tls { client.start(tls, within: Self.patience.nanoseconds) } else { client.start() }
    }

    func stop() {
        for client in clients.members { client.stop() }
    }
}
