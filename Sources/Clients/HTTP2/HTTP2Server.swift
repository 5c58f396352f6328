import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// The owner of an HTTP/2 server.
protocol HTTP2ServerOwner: AnyObject {
    /// Makes the handler of a request, which the server keeps as long as the door.
    func handler(of door: HTTP2ServerStream) -> ClientRequest
    /// Fills in the client.
    func note(_ record: inout TaskRecord)
    func noticed(_ notice: HTTP2Notice, on server: HTTP2Server)
    /// A stream that is not a request was refused.
    /// - Parameter cause: human-readable.
    func refusedStream(_ cause: String)
    /// The connection has ended. Called once.
    func ended(_ server: HTTP2Server, _ cause: String)
}

/// The near end of a client's HTTP/2 connection: a door and a handler for each request.
final class HTTP2Server: HTTP2ConnectionOwner {
    private struct Serving {
        let door: HTTP2ServerStream
        let request: ClientRequest
    }

    let connection: HTTP2Connection
    private let session: LoopSession
    private let settings: ServerSettings
    /// Kept until its last call, ``HTTP2ServerOwner/ended(_:_:)``.
    // Unchecked: stored whole.
    @exclusivity(unchecked) private var owner: (any HTTP2ServerOwner)?
    // Unchecked: changed by code that calls no other code.
    @exclusivity(unchecked) private var serving: [Serving] = []
    /// Doors of requests that ended well, for the next ones.
    @exclusivity(unchecked) private var spare: [Serving] = []
    private static let mostSpare = 32
    private let deadline: Deadline
    @exclusivity(unchecked) private var isLeaving = false
    /// Why the connection ended, while complete streams are still carried to their origins.
    @exclusivity(unchecked) private var cause: String?
    /// When the last request ended.
    @exclusivity(unchecked) private(set) var lastUsed: MonotonicTime

    init(
        over stream: ByteStream, session: LoopSession, settings: ServerSettings, owner: any HTTP2ServerOwner
    ) throws(HTTP2Unavailable) {
        var offered = HTTP2Settings()
        offered.maxHeaderListSize = settings.requestHead
        offered.enablesConnectProtocol = true
        connection = try HTTP2Connection(
            .server, over: stream, settings: offered, loop: session.loop, slabs: session.slabs,
            idleNanoseconds: settings.idleNanoseconds)
        self.session = session
        self.settings = settings
        self.owner = owner
        lastUsed = session.now
        deadline = Deadline(loop: session.loop)
        deadline.bind(to: self) { $0.timedOut() }
    }

    func start() {
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        connection.start(for: self)
    }

    var requests: some Collection<ClientRequest> { serving.lazy.map(\.request) }
    var isIdle: Bool { serving.isEmpty && connection.streamCount == 0 }
    /// Buffered answers may still be in transit to the client, for as long as a client may be idle.
    private var isDone: Bool { serving.isEmpty }

    // MARK: Requests

    func received(_ place: HTTP2HeadPlace, on id: HTTP2StreamID, ends: Bool) {
        if !isLeaving { deadline.clear() }
        let door: HTTP2ServerStream
        if let used = spare.popLast() {
            door = used.door
            door.place = serving.count
            serving.append(used)
            door.beginAnew(id)
        } else {
            guard let owner else { return connection.session.reset(id, .refusedStream) }
            door = HTTP2ServerStream(connection.adopt(id), of: self, session: session, settings: settings)
            let request = owner.handler(of: door)
            door.handler = request
            door.place = serving.count
            serving.append(Serving(door: door, request: request))
        }
        door.receive(place, ends: ends, isSecure: connection.stream.isSecure)
    }

    /// Another protocol follows the door's request.
    func carry(_ upstream: HTTP1Upstream, to socket: ByteStream, for door: HTTP2ServerStream) {
        // unowned: the server keeps the door until left(_:reusable:), which relayEnded() calls.
        serving[door.place].request.carry(upstream, to: socket) { [unowned door] in door.relayEnded() }
    }

    /// - Parameter reusable: the door was left by everybody.
    func left(_ door: HTTP2ServerStream, reusable: Bool) {
        // The last one takes its place.
        var served = serving.removeLast()
        if served.door !== door {
            served.door.place = door.place
            swap(&served, &serving[door.place])
        }
        if reusable, !served.request.hasWaited, spare.count < Self.mostSpare {
            spare.append(served)
        } else {
            served.request.giveUp()
            // It may be the caller: release it after this turn.
            session.loop.afterThisTurn { _ = served }
        }
        if cause != nil { endIfDone() } else { updateIdleness() }
    }

    func note(_ record: inout TaskRecord) { owner?.note(&record) }

    /// The client's process was found.
    func note(_ traits: ClientTraits?) {
        for served in serving + spare { served.request.record.traits = traits }
    }

    private func updateIdleness() {
        lastUsed = session.now
        guard isDone, !connection.isClosed else { return }
        guard isIdle else {
            if !deadline.isSet { deadline.set(afterNanoseconds: settings.idleNanoseconds) }
            return
        }
        if isLeaving, connection.session.isGoingAway { return connection.close() }
        if !isLeaving { deadline.set(afterNanoseconds: settings.requestNanoseconds) }
    }

    // MARK: The end

    private func timedOut() {
        if isDone, isIdle || !isLeaving || connection.session.isGoingAway { connection.close() } else { leave() }
    }

    /// Requests that have arrived are served, and no others.
    func leave() {
        if isIdle { return connection.close() }
        isLeaving = true
        if isDone { deadline.set(afterNanoseconds: settings.idleNanoseconds) } else { deadline.clear() }
        connection.session.goAway(.noError)
        connection.pumpLater()
    }

    /// The proxy stops: requests in flight and in transit are still served.
    /// - Parameter nanoseconds: the time for requests in transit.
    func drain(lastChance nanoseconds: UInt64) {
        guard !isLeaving else { return }
        isLeaving = true
        connection.announceGoAway()
        deadline.set(afterNanoseconds: nanoseconds)
    }

    /// Ends all requests.
    func stop(_ cause: String) {
        for served in serving {
            if served.door.exchange.isInFlight {
                served.door.exchange.cancel(cause)
            } else {
                served.request.endRelay(cause)
            }
        }
        connection.close(now: true)
    }

    // MARK: The connection

    func connectionChanged(_ connection: HTTP2Connection) { updateIdleness() }
    func answeredPing(_ opaque: UInt64) {}
    func connectionIsQuiet() { spare = [] }
    func noticed(_ notice: HTTP2Notice, on connection: HTTP2Connection) { owner?.noticed(notice, on: self) }

    func received(_ defect: HTTP2Defect, on id: HTTP2StreamID) {
        var record = TaskRecord()
        record.began(number: session.takeNumber(), at: session.now, on: id.rawValue)
        owner?.note(&record)
        let cause = "the client sent \(defect)"
        record.failed(cause)
        session.complete(&record)
        owner?.refusedStream(cause)
    }

    func connectionEnded(_ connection: HTTP2Connection, _ cause: String) {
        deadline.clear()
        for served in serving where !served.door.isRelayComplete {
            served.request.endRelay("the client \(cause)")
            served.door.connectionEnded(cause)
        }
        self.cause = cause
        endIfDone()
    }

    /// The server ends with its last door: none may outlive it.
    private func endIfDone() {
        guard serving.isEmpty, let cause = cause.take() else { return }
        owner.take()?.ended(self, cause)
    }
}
