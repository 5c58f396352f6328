import Clients
import EventLoop
import Session
import TLS
import Transport

/// The connections of the control socket, or those of the admin port: a bounded number, on the main loop.
final class ControlClients {
    /// Clients at one time. One more of a user or address with a full share displaces the most idle of that share.
    static let limit = 64
    /// For a request's arrival, and for an answer's being taken.
    private static let patience: Duration = .seconds(10)

    private let loop: EventLoop
    private let session: LoopSession
    private let settings = HTTP1ServerSettings()
    private let answer: ControlConnection.Answer
    private let feed: () -> LiveFeed?
    private var clients: FairRoster<Claimant, ControlConnection>

    init(
        loop: EventLoop, session: LoopSession, share: Int, answer: @escaping ControlConnection.Answer, feed: @escaping () -> LiveFeed?
    ) {
        clients = FairRoster(places: Self.limit, share: share)
        self.feed = feed
        self.loop = loop
        self.session = session
        self.answer = answer
        settings.idle = Self.patience
        settings.idleNanoseconds = Self.patience.nanoseconds
        settings.requestNanoseconds = Self.patience.nanoseconds
        settings.requestHead = 16 << 10
    }

    func serve(_ socket: consuming Descriptor, of claimant: Claimant, through door: ControlDoor, tls: TLSServerContext? = nil) {
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
