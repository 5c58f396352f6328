package import PinproxyHTTP2
package import PinproxyHTTPWire
package import PinproxyTransport

/// The exchange's end of a stream.
package protocol HTTP2StreamDoor: AnyObject {
    /// A head for a request of this side. Read it at once.
    func received(_ place: HTTP2HeadPlace, ends: Bool)
    /// Something arrived: bytes of the body, its end, or a failure.
    func streamIsReadable()
    /// There is room again after a full ``HTTP2Stream/write(_:)``.
    func streamIsWritable()
}

/// Why a stream ended too early.
package enum HTTP2Break: Sendable {
    case reset(HTTP2ErrorCode)
    case malformed(HTTP2Defect)
    case connection(String)
    /// The connection ended before the head was sent.
    case unsent(String)
    /// Reset by this side.
    case abandoned
    case noBudget
    case tooManyHeads

    /// The peer's action, in human-readable form.
    package var cause: String {
        switch self {
        case .reset(let code): "reset the stream (\(code))"
        case .malformed(let defect): "sent \(defect)"
        case .connection(let cause), .unsent(let cause): cause
        case .abandoned: "was told that the stream is no longer needed"
        case .noBudget: "sent more than limits.bodies leaves room for"
        case .tooManyHeads: "sent interim responses without end"
        }
    }
}

/// The bodies of a stream, both ways: the source of the peer's bytes, and the sink of bytes for the peer.
///
/// Received bytes wait here if their sink is full, at most a window, within the budget for bodies. Bytes to send wait
/// here for their turn among the streams, at most a slab.
package final class HTTP2Stream: BodySource, BodySink {
    // unchecked: stored whole.
    @exclusivity(unchecked) package private(set) var id: HTTP2StreamID
    package let connection: HTTP2Connection
    /// Cleared when the exchange leaves, or the stream is closed: until then it keeps the door, and the door the
    /// stream.
    // unchecked: stored whole.
    @exclusivity(unchecked) private var door: (any HTTP2StreamDoor)?

    // Unchecked below: each is stored whole, or changed by code that calls no other code. A sink reads a buffer, but
    // doesn't reach this stream.
    // What arrives.
    @exclusivity(unchecked) private var held: ByteBuffer
    @exclusivity(unchecked) private var reservation: BodyReservation?
    /// The range of the connection's input, while an event is handled.
    @exclusivity(unchecked) private var arriving: Range<Int>?
    @exclusivity(unchecked) private var trailers: TrailerSection?
    @exclusivity(unchecked) package private(set) var failure: HTTP2Break?
    @exclusivity(unchecked) package private(set) var moved: UInt64 = 0
    @exclusivity(unchecked) private var hasNews = false
    @exclusivity(unchecked) package var wantsRead = true {
        didSet { if wantsRead, !oldValue, hasNews { connection.lookAgain(self) } }
    }

    // Bytes to send.
    @exclusivity(unchecked) private var pending: ByteBuffer
    @exclusivity(unchecked) private var ending: TrailerSection?
    @exclusivity(unchecked) private var hasSentAll = false
    @exclusivity(unchecked) package private(set) var hasBegun = false
    @exclusivity(unchecked) package private(set) var carried: UInt64 = 0
    @exclusivity(unchecked) private var isWaiting = false
    /// Resets the stream after the waiting bytes.
    @exclusivity(unchecked) private var lastWord: HTTP2ErrorCode?
    /// A whole response was given: the remaining request is no longer needed.
    @exclusivity(unchecked) private var isAnswered = false

    /// Bytes that wait for their turn.
    private static let most = SlabPool.slabSize
    private static let frame = 16 << 10

    init(_ id: HTTP2StreamID, of connection: HTTP2Connection, door: (any HTTP2StreamDoor)?) {
        self.id = id
        self.connection = connection
        self.door = door
        held = ByteBuffer(slabs: connection.slabs)
        pending = ByteBuffer(slabs: connection.slabs)
    }

    /// Reuses this object for another stream. The previous one is closed, and only the caller refers to the object.
    func begin(_ id: HTTP2StreamID, for door: (any HTTP2StreamDoor)?) {
        precondition(isClosed)
        self.id = id
        self.door = door
        dropHeld()
        dropPending()
        arriving = nil
        trailers = nil
        failure = nil
        moved = 0
        hasNews = false
        wantsRead = true
        ending = nil
        hasSentAll = false
        hasBegun = false
        carried = 0
        isWaiting = false
        lastWord = nil
        isAnswered = false
    }

    /// Hands the stream over to another door.
    package func hand(to door: any HTTP2StreamDoor) {
        self.door = door
        wantsRead = true
    }

    /// Whether bytes of the peer's message wait, or its end.
    package var hasArrived: Bool { !held.isEmpty || trailers != nil || failure != nil }

    package var isClosed: Bool { failure != nil || hasSentAll && hasReceivedAll }
    /// The peer's message is complete, though perhaps not yet passed on.
    package var hasReceivedAll: Bool { trailers != nil || isAnswered }

    /// The exchange has ended.
    /// - Parameters:
    ///   - code: resets the stream unless both messages are complete. A client with a whole response is asked to stop
    ///     sending (RFC 9113 section 8.1), once the response was sent.
    ///   - delivering: sends waiting bytes first.
    package func leave(_ code: HTTP2ErrorCode, delivering: Bool) {
        door = nil
        guard !isClosed else { return }
        if delivering, code == .noError, ending != nil, connection.session.role == .server {
            isAnswered = true
            if trailers == nil { connection.linger(id) }
            return closeIfDone()
        }
        guard delivering, !hasSentAll, ending != nil || !pending.isEmpty else {
            if hasSentAll, hasReceivedAll { return }
            return abandon(code)
        }
        lastWord = code
    }

    private func abandon(_ code: HTTP2ErrorCode) {
        connection.session.reset(id, code)
        connection.pumpLater()
        close(.abandoned)
    }

    private func close(_ failure: HTTP2Break) {
        self.failure = failure
        dropHeld()
        dropPending()
        connection.forget(self)
    }

    private func dropPending() {
        pending.consume(pending.count)
        pending.releaseIfEmpty()
    }

    private func dropHeld() {
        held.consume(held.count)
        held.releaseIfEmpty()
        reservation = nil
    }

    private func closeIfDone() {
        if hasSentAll, hasReceivedAll { connection.forget(self) }
    }

    // MARK: Events

    /// - Parameter body: the whole body, if it arrived with the head.
    func received(_ place: HTTP2HeadPlace, ends: Bool, body: Range<Int>? = nil) {
        if ends || body != nil { trailers = TrailerSection() }
        door?.received(place, ends: ends)
        arriving = body
        tell()
        keepArriving()
        closeIfDone()
    }

    /// - Parameter ends: the peer's message is complete with it.
    func received(_ range: Range<Int>, ends: Bool) {
        guard failure == nil else { return connection.session.consumed(range.count, of: id) }
        if ends { trailers = TrailerSection() }
        if let door {
            arriving = range
            if wantsRead { door.streamIsReadable() }
            keepArriving()
        } else if !ends {
            connection.session.consumed(range.count, of: id)
        }
        if ends { closeIfDone() }
    }

    /// The peer's message is complete.
    package func ended(_ trailers: TrailerSection) {
        guard failure == nil else { return }
        self.trailers = trailers
        tell()
        closeIfDone()
    }

    func broke(_ failure: HTTP2Break) {
        guard self.failure == nil else { return }
        // A whole message stays whole.
        if !hasReceivedAll || !hasSentAll { self.failure = failure }
        connection.forget(self)
        hasNews = hasNews || !wantsRead
        door?.streamIsReadable()
        if isWaiting { wake() }
    }

    /// Resets the stream for what the peer sent.
    package func refuse(_ failure: HTTP2Break) {
        connection.session.reset(id, .enhanceYourCalm)
        connection.pumpLater()
        broke(failure)
    }

    private func tell() {
        if wantsRead { door?.streamIsReadable() } else { hasNews = true }
    }

    func lookAgain() {
        if failure == nil, pending.isEmpty, let lastWord, ending == nil || hasSentAll {
            if !(hasSentAll && hasReceivedAll) { return abandon(lastWord) }
        }
        closeIfDone()
        guard wantsRead, hasNews else { return }
        hasNews = false
        door?.streamIsReadable()
    }

    /// Bytes that the sink didn't take.
    private func keepArriving() {
        guard let range = arriving.take(), !range.isEmpty, failure == nil, door != nil else { return }
        hasNews = hasNews || !wantsRead
        let purpose: BodyBudget.Purpose = connection.session.role == .client ? .response : .request
        let reservation = reservation ?? BodyReservation(of: connection.slabs.budget, for: purpose)
        self.reservation = reservation
        guard reservation.grow(to: held.count + range.count) else {
            dropHeld()
            return refuse(.noBudget)
        }
        connection.withInput(range) { held.append(copying: $0) }
    }

    // MARK: Source

    package func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        do throws(StreamError) {
            if !held.isEmpty {
                let taken = try held.withFront(held.count) { piece throws(StreamError) in try sink.write(piece) }
                held.consume(taken)
                passed(taken)
                guard held.isEmpty else { return .blocked }
                held.releaseIfEmpty()
                reservation = nil
            }
            if let range = arriving, !range.isEmpty {
                let taken = try connection.withInput(range) { piece throws(StreamError) in try sink.write(piece) }
                arriving = range.lowerBound + taken..<range.upperBound
                passed(taken)
                if taken < range.count { return .blocked }
            }
            if let trailers { return try sink.end(trailers) ? .ended : .blocked }
        } catch {
            return .sinkFailed(error)
        }
        if let failure { return .truncated("the peer \(failure.cause)") }
        return .waiting
    }

    private func passed(_ count: Int) {
        guard count > 0 else { return }
        moved += UInt64(count)
        guard failure == nil, !hasReceivedAll else { return }
        connection.session.consumed(count, of: id)
        connection.pumpLater()
    }

    // MARK: Sink

    /// A head was submitted.
    package func begin(hasBody: Bool, bytes: Int) {
        hasBegun = true
        carried += UInt64(bytes)
        // The head doesn't wait for the body's first byte.
        connection.pumpLater()
        guard !hasBody else { return }
        ending = TrailerSection()
        hasSentAll = true
        closeIfDone()
    }

    /// Waiting bytes are within the peer's windows: a stream that may not send doesn't hold up others.
    private var room: Int { min(Self.most, connection.session.remoteWindow(of: id)) - pending.count }
    /// Whether its door can give more.
    var hasRoom: Bool { failure != nil || pending.count < Self.frame && room > 0 }

    package func write(_ piece: RawSpan) throws(StreamError) -> Int {
        if let failure { throw .stream("the peer \(failure.cause)") }
        var taken = 0
        while taken < piece.byteCount, ending == nil {
            let count = min(room, piece.byteCount - taken)
            guard count > 0 else { break }
            pending.append(copying: piece.extracting(taken..<taken + count))
            taken += count
            connection.session.resume(id)
            if pending.count >= Self.frame, connection.isPumping || !connection.push() { break }
        }
        carried += UInt64(taken)
        connection.pumpLater()
        if taken < piece.byteCount { wait() }
        return taken
    }

    private func wait() {
        guard !isWaiting, failure == nil else { return }
        isWaiting = true
        connection.wait(self)
    }

    func wake() {
        isWaiting = false
        door?.streamIsWritable()
    }

    package func end(_ trailers: TrailerSection) throws(StreamError) -> Bool {
        if let failure, !hasSentAll { throw .stream("the peer \(failure.cause)") }
        guard ending == nil else { return true }
        ending = trailers
        connection.session.resume(id)
        connection.pumpLater()
        return true
    }

    // MARK: Its turn

    func available(most: Int) -> (count: Int, isLast: Bool) {
        let count = min(pending.count, most)
        return (count, ending != nil && count == pending.count)
    }

    func give(_ count: Int, to output: inout ByteBuffer) {
        pending.withFront(count) { output.append(copying: $0) }
        pending.consume(count)
        guard pending.isEmpty else { return }
        pending.releaseIfEmpty()
        if ending != nil { sentAll() } else if lastWord != nil { connection.lookAgain(self) }
    }

    func takeTrailers() -> FieldBlock? {
        if pending.isEmpty { sentAll() }
        guard let ending, !ending.isEmpty else { return nil }
        var block = FieldBlock()
        HeadWriter.write(trailers: ending, into: &block)
        return block
    }

    private func sentAll() {
        guard !hasSentAll else { return }
        hasSentAll = true
        connection.lookAgain(self)
    }
}
