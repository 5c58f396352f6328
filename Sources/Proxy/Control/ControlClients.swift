import EventLoop
import Session
import TLS
import Transport

/// The connections of the control socket, or those of the admin port: a bounded number, on the main loop.
final class ControlClients {
    /// Clients at one time; for one more the one goes that has kept a request back for longest.
    static let limit = 64
    /// For a request's arrival, and for an answer's being taken.
    private static let patience: Duration = .seconds(10)

    private let loop: EventLoop
    private let session: LoopSession
    private let settings = HTTP1ServerSettings()
    private let answer: ControlConnection.Answer
    private let feed: () -> LiveFeed?
    /// The one that came first is the first.
    private var clients: [ControlConnection] = []

    init(loop: EventLoop, session: LoopSession, answer: @escaping ControlConnection.Answer, feed: @escaping () -> LiveFeed?) {
        self.feed = feed
        self.loop = loop
        self.session = session
        self.answer = answer
        settings.idle = Self.patience
        settings.idleNanoseconds = Self.patience.nanoseconds
        settings.requestNanoseconds = Self.patience.nanoseconds
        settings.requestHead = 16 << 10
    }

    /// Serves an accepted socket.
    /// - Parameter tls: spoken with it; nil: none.
    func serve(_ socket: consuming Descriptor, through door: ControlDoor, tls: TLSServerContext? = nil) {
        if clients.count >= Self.limit { (clients.first { !$0.isAsking } ?? clients.first)?.stop() }
        let client = ControlConnection(
            stream: ByteStream(loop: loop, descriptor: socket), session: session, settings: settings, door: door, answer: answer,
            feed: feed
        ) { [weak self] client in
            self?.clients.removeAll { $0 === client }
        }
        clients.append(client)
        if let tls { client.start(tls, within: Self.patience.nanoseconds) } else { client.start() }
    }

    func stop() {
        for client in clients { client.stop() }
    }
}
