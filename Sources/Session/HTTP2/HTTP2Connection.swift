package import PinproxyEventLoop
package import PinproxyHTTP2
package import PinproxyHTTPWire
package import PinproxyTransport

/// Moves bytes between an ``HTTP2Session`` and its socket, and events to the streams. Streams of one turn share a
/// write.
package final class HTTP2Connection {
    package let stream: ByteStream
    package let session: HTTP2Session
    package let slabs: SlabPool
    /// Kept from ``start(for:)`` to its last call: its streams may have been all that kept it.
    // Unchecked: stored whole.
    @exclusivity(unchecked) private var owner: (any HTTP2ConnectionOwner)?
    // Unchecked below: each is stored whole, or changed by code that calls no other code, as the map is.
    @exclusivity(unchecked) private(set) var streams = StreamMap()
    /// Whether it has no streams, and gets none. Queued bytes may still be written (``part()``).
    @exclusivity(unchecked) package private(set) var isClosed = false
    /// The peer's SETTINGS arrived.
    @exclusivity(unchecked) package private(set) var hasSettings = false
    /// When the peer last sent something.
    @exclusivity(unchecked) package private(set) var lastReceived: MonotonicTime

    let loop: EventLoop
    // Events of the session are handled while its input lies still.
    @exclusivity(unchecked) var input: ByteBuffer
    // The session's outlet appends, and nothing else is called while it does.
    @exclusivity(unchecked) var output: ByteBuffer
    private let round: AfterRound
    let deadline: Deadline
    let lingering: HTTP2Lingering
    let idleNanoseconds: UInt64
    /// The socket's send buffer is full.
    @exclusivity(unchecked) private var isBlocked = false
    /// Doors are asked for more, in their turns.
    @exclusivity(unchecked) private(set) var isPumping = false
    @exclusivity(unchecked) private var isTakingEvents = false
    /// The session and its events refer to the input, which must stay.
    @exclusivity(unchecked) private(set) var isAbsorbing = false
    /// Streams with a door that waits for room.
    @exclusivity(unchecked) private var stuck: [HTTP2Stream] = []
    /// Streams with a door that looks again after this round.
    @exclusivity(unchecked) private var due: [HTTP2Stream] = []
    @exclusivity(unchecked) private var estimator: WindowEstimator
    /// Why it is closed, until its owner knows.
    private var cause: String?
    var parting = HTTP2Parting()
    /// The peer's GOAWAY that the owner knows of: the first, or the first with an error.
    private var goAway: HTTP2ErrorCode?
    /// A buffer for a head before it is submitted.
    @exclusivity(unchecked) package var block = FieldBlock()

    /// - Parameters:
    ///   - idleNanoseconds: for a peer that takes nothing.
    ///   - received: bytes read from the stream already.
    package init(
        _ role: HTTP2Session.Role, over stream: ByteStream, settings: HTTP2Settings, loop: EventLoop, slabs: SlabPool,
        idleNanoseconds: UInt64, limits: HTTP2Limits = HTTP2Limits()
    ) throws(HTTP2Unavailable) {
        self.stream = stream
        self.slabs = slabs
        self.loop = loop
        self.idleNanoseconds = idleNanoseconds
        session = try HTTP2Session(role, settings: settings, limits: limits)
        input = ByteBuffer(slabs: slabs)
        output = ByteBuffer(slabs: slabs)
        estimator = WindowEstimator(window: settings.initialWindow, most: limits.streamWindow)
        lastReceived = loop.now
        round = AfterRound(loop: loop)
        deadline = Deadline(loop: loop)
        lingering = HTTP2Lingering(loop: loop)
        round.bind(to: self) { $0.roundEnded() }
        deadline.bind(to: self) { $0.timedOut() }
        lingering.deadline.bind(to: self) { $0.stopLingering() }
    }

    private static let quietNanoseconds: UInt64 = 1_000_000_000

    private func timedOut() {
        if isClosed { return partingTimedOut() }
        if isBlocked { return end("took nothing for too long") }
        guard streams.isEmpty else { return }
        session.trim()
        block = FieldBlock()
        stream.releaseBuffers()
        owner?.connectionIsQuiet()
    }

    package func start(for owner: any HTTP2ConnectionOwner) {
        self.owner = owner
        stream.owner = self
        stream.expectManyRecords()
        stream.wantsRead = true
        round.schedule()
        if stream.holdsBytes { streamIsReadable(stream) }
    }

    // MARK: Streams

    /// Streams that aren't closed on both sides.
    package var streamCount: Int { streams.count }

    /// Makes a stream of one that the peer has opened, or that was submitted.
    /// - Parameter door: nil: ``HTTP2Stream/hand(to:)`` follows.
    package func adopt(_ id: HTTP2StreamID, for door: (any HTTP2StreamDoor)? = nil) -> HTTP2Stream {
        let stream = HTTP2Stream(id, of: self, door: door)
        streams.insert(stream)
        return stream
    }

    /// Adopts it in `stream`: reuses that object if it is closed and has no other reference.
    package func adopt(_ id: HTTP2StreamID, for door: (any HTTP2StreamDoor)? = nil, in stream: inout HTTP2Stream?) {
        // With one reference no wait, look or exchange of the previous stream refers to the object.
        guard isKnownUniquelyReferenced(&stream), let used = stream, used.isClosed, used.connection === self else {
            stream = adopt(id, for: door)
            return
        }
        used.begin(id, for: door)
        streams.insert(used)
    }

    /// Both sides of a stream have ended, or one has reset it.
    func forget(_ stream: HTTP2Stream) {
        guard streams.remove(stream.id), !isClosed else { return }
        if streams.isEmpty, !isBlocked, !deadline.isSet { deadline.set(afterNanoseconds: Self.quietNanoseconds) }
        owner?.connectionChanged(self)
    }

    /// The stream's door waits for room.
    func wait(_ stream: HTTP2Stream) { stuck.append(stream) }

    /// The stream's door is to look again.
    func lookAgain(_ stream: HTTP2Stream) {
        due.append(stream)
        round.schedule()
    }

    func withInput<Result, Failure>(
        _ range: Range<Int>, _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try input.withFront(range.upperBound) { front throws(Failure) in
            try body(front.extracting(droppingFirst: range.lowerBound))
        }
    }

    // MARK: Receiving

    private func receive() {
        repeat {
            switch stream.read(into: &input) {
            case .received: absorb()
            case .blocked:
                input.releaseIfEmpty()
                return
            case .ended: return end("closed the connection")
            case .failed(let error): return end("broke the connection: \(error)")
            }
        } while !isClosed && !session.isClogged && stream.holdsBytes
        input.releaseIfEmpty()
        if isClosed, stream.holdsBytes { discard() }
    }

    private func absorb() {
        lastReceived = loop.now
        isAbsorbing = true
        while !input.isEmpty, !isClosed {
            let count = input.withUnread { session.receive($0, at: lastReceived.nanoseconds) }
            takeEvents()
            input.consume(count)
        }
        isAbsorbing = false
        input.compact()
    }

    /// In order, also where an event causes another.
    private func takeEvents() {
        guard !isTakingEvents else { return }
        isTakingEvents = true
        while let event = session.nextEvent() { take(event) }
        isTakingEvents = false
    }

    private func take(_ event: HTTP2Event) {
        switch event {
        case .request(let id, let place, let ends):
            if isClosed { session.reset(id, .refusedStream) } else { owner?.received(place, on: id, ends: ends) }
        case .response(let id, let place, let ends): received(place, ends: ends, on: id)
        case .data(let id, let range): received(range, on: id)
        case .trailers(let id, let trailers): streams[id]?.ended(trailers)
        case .ended(let id): streams[id]?.ended(TrailerSection())
        case .reset(let id, let code): streams[id]?.broke(.reset(code))
        case .malformed(let id, let defect):
            if let stream = streams[id] {
                stream.broke(.malformed(defect))
            } else if !isClosed {
                owner?.received(defect, on: id)
            }
        case .windowOpened, .priority: round.schedule()
        case .goAway(_, let code, let debug):
            guard !isClosed else { return }
            if goAway == nil || goAway == .noError && code != .noError {
                goAway = code
                owner?.noticed(.goAway(code, debug: debug), on: self)
            }
            owner?.connectionChanged(self)
        case .settings:
            hasSettings = true
            if !isClosed { owner?.connectionChanged(self) }
        case .pong(WindowEstimator.opaque): growWindows()
        case .pong(let opaque): if !isClosed { owner?.answeredPing(opaque) }
        case .failed(let code, let reason):
            if !isClosed, let notice = HTTP2Notice(code, reason, session.flood) { owner?.noticed(notice, on: self) }
            end("broke the protocol of HTTP/2: \(reason)", parting: true)
        }
    }

    private func received(_ place: HTTP2HeadPlace, ends: Bool, on id: HTTP2StreamID) {
        guard let stream = streams[id] else { return }
        // One step for a whole response.
        let body = ends ? nil : session.takeRest(of: id)
        if let body { count(body) }
        stream.received(place, ends: ends, body: body)
    }

    private func count(_ range: Range<Int>) {
        // A slow stream holds up no other: its own window does that.
        session.consumedOfConnection(range.count)
        if estimator.received(range.count, at: lastReceived.nanoseconds) { session.ping(WindowEstimator.opaque) }
    }

    private func received(_ range: Range<Int>, on id: HTTP2StreamID) {
        count(range)
        // One step for the last bytes and the end.
        let ends = session.takeEnd(of: id)
        // Data without a reader returns no credit.
        streams[id]?.received(range, ends: ends)
    }

    private func growWindows() {
        guard let window = estimator.answered(at: lastReceived.nanoseconds) else { return }
        session.growStreamWindow(to: window)
        session.growConnectionWindow(to: 4 * window)
    }

    // MARK: Sending

    /// Sends at the end of this round of the loop what there is then.
    package func pumpLater() { round.schedule() }

    private func roundEnded() {
        let looking = due
        due.removeAll(keepingCapacity: true)
        for stream in looking { stream.lookAgain() }
        pump()
    }

    /// How often doors are asked for more before other connections have their turn.
    private static let turns = 16

    private func pump() {
        guard !isClosed, !isPumping else { return }
        isPumping = true
        defer { isPumping = false }
        for _ in 0..<Self.turns {
            guard push(), wakeStuck() else { break }
        }
        if isClosed { return }
        if !isBlocked, session.wantsToSend || stuck.contains(where: \.hasRoom) { round.schedule() }
        stream.wantsRead = !session.isClogged
        if !session.wantsToLive, output.isEmpty { end("closed the connection") }
    }

    /// Sends pending bytes until the socket blocks. False: it blocks, or the connection has ended.
    @discardableResult
    func push() -> Bool {
        while !isClosed, !isBlocked {
            session.send(through: self)
            takeEvents()
            let wasFull = !hasRoom
            guard flush() else { return false }
            if !wasFull { return true }
        }
        return false
    }

    private func flush() -> Bool {
        guard !output.isEmpty else { return !isClosed }
        switch stream.write(output.count, from: &output) {
        case .done:
            output.releaseIfEmpty()
            return true
        case .blocked:
            output.compact()
            deadline.set(afterNanoseconds: idleNanoseconds)
            isBlocked = true
            return false
        case .failed(let error):
            end("broke the connection: \(error)")
            return false
        }
    }

    /// Asks doors that wait for room for more, where theirs is the next turn. True: one gave something.
    private func wakeStuck() -> Bool {
        guard !stuck.isEmpty else { return false }
        let waiting = stuck
        stuck.removeAll(keepingCapacity: true)
        var turn = SendingTurn()
        for stream in waiting where stream.hasRoom && !stream.isClosed {
            turn.add(stream.id, session.priority(of: stream.id))
        }
        var isMore = false
        for stream in waiting where !isClosed {
            guard stream.hasRoom, stream.isClosed || turn.includes(stream.id, session.priority(of: stream.id)) else {
                if !stream.isClosed { stuck.append(stream) }
                continue
            }
            stream.wake()
            isMore = true
        }
        return isMore
    }

    // MARK: The end

    /// Refuses new streams. Those in flight continue.
    package func announceGoAway() {
        session.announceGoAway()
        round.schedule()
    }

    /// Ends the connection once queued bytes were written; streams are reset.
    /// - Parameter now: doesn't wait for the peer.
    package func close(_ code: HTTP2ErrorCode = .noError, now: Bool = false) {
        if isClosed {
            if now { finish() }
            return
        }
        for stream in streams.all { session.reset(stream.id, .internalError) }
        session.goAway(code)
        if now {
            push()
            stream.sayGoodbye()
        }
        end("closed the connection here", parting: !now)
    }

    /// The peer doesn't do what it has to.
    package func fail(_ cause: String) { end(cause) }

    /// - Parameter parting: queued frames, such as the GOAWAY, are still sent.
    private func end(_ cause: String, parting: Bool = false) {
        guard !isClosed else { return }
        isClosed = true
        self.cause = cause
        deadline.clear()
        lingering.clear()
        stuck = []
        due = []
        // The owner may let go of this connection.
        withExtendedLifetime(self) {
            let streams = streams.all
            self.streams = StreamMap()
            for stream in streams { stream.broke(session.isUnsent(stream.id) ? .unsent(cause) : .connection(cause)) }
            if parting { part() } else { finish() }
        }
    }

    func finish() {
        guard let cause = cause.take() else { return }
        deadline.clear()
        withExtendedLifetime(self) {
            stream.stop()
            owner.take()?.connectionEnded(self, cause)
        }
    }
}

extension HTTP2Connection: ByteStreamOwner {
    package func streamIsReadable(_ stream: ByteStream) {
        if isClosed { return discard() }
        receive()
        if !isClosed { round.schedule() }
    }

    package func streamIsWritable(_ stream: ByteStream) {
        if isClosed { return part() }
        deadline.clear()
        isBlocked = false
        pump()
    }
}
