package import HTTPWire
package import Transport

/// One direction of an exchange on HTTP/1.1: received bytes, how much of them belongs to the message
/// under way, and their passing on. A body stays where it arrived; only heads are written anew.
///
/// The one buffer is the watermark: it is filled again when all of it has been written.
///
/// ```
///      replay        ready        not yet looked at
///   |----------|---------------|----------------------|
///              start
/// ```
package struct MessagePipe: ~Copyable {
    /// How the body of the message is carried over.
    private enum Coding {
        /// In the framing in which it came: by length, by chunks with their extensions and trailers, or by close.
        case verbatim(BodyScanner)
        /// Chunks taken off, for a peer that speaks HTTP/1.0.
        case dechunking(ChunkedDecoder)
        /// Chunks put around a body that ends with its connection, so that its end can be told from a cut.
        case chunking
    }

    /// What pumping came to.
    package enum Outcome {
        /// Everything that is there was passed on; more of the message is to come.
        case waiting
        /// The sink takes no more for now.
        case blocked
        /// The message has been passed on to its last byte.
        case ended
        /// The source ended in the middle of the message; all that it sent was passed on.
        case truncated
        case sourceFailed(StreamError)
        case sinkFailed(StreamError)
        /// The body breaks its framing. Nothing was passed on if it does so from its beginning, and nothing
        /// that arrived with the defect if the message is not ``begin(head:inPlaceOf:framing:dechunks:chunks:replayLimit:salvages:)``
        /// for salvage.
        case malformed(WireError)
    }

    package private(set) var buffer: ByteBuffer
    private var coding = Coding.verbatim(BodyScanner(.none))
    private var ready = 0
    /// Bytes in front of the buffer's start that were sent and can be sent again.
    private var replay = 0
    /// How many bytes may be kept so, if the budget for bodies has room for them; 0: none are.
    private var replayLimit = 0
    /// What breaks the body's framing, once that has been seen.
    private var defect: WireError?
    /// What is whole of a body that breaks its framing is passed on.
    private var salvages = false
    /// Bytes of the head that is written.
    private var headLength = 0
    /// The whole message has been received (not necessarily written).
    package private(set) var isComplete = true
    /// Bytes written to the sink since the message began, its head counted.
    package private(set) var carried: UInt64 = 0

    package init(slabs: SlabPool) {
        self.init(received: ByteBuffer(slabs: slabs))
    }

    /// - Parameter received: bytes that have been read from the source already.
    init(received: consuming ByteBuffer) {
        buffer = received
    }

    // MARK: Between messages

    /// Received bytes that don't belong to a message yet.
    package var unread: UnsafeRawBufferPointer { buffer.unread }

    /// Receives more of a head; nil when it would pass `limit` bytes.
    package mutating func receive(from stream: ByteStream, limit: Int) -> ReadOutcome? {
        if buffer.free == 0 { forgetReplay() }
        guard buffer.makeRoom(limit: limit) else { return nil }
        return stream.read(into: &buffer)
    }

    /// Adds bytes that were made here.
    package mutating func put(_ bytes: [UInt8]) {
        // Else it would grow by what has been written.
        if replayLimit == 0 { buffer.compact() }
        bytes.withUnsafeBytes { buffer.append(copying: $0) }
    }

    /// Puts `message` in the place of the first `length` received bytes.
    /// - Parameter reservation: of the message, if it has a body.
    package mutating func replaceFront(
        _ length: Int, with message: [UInt8], holding reservation: BodyReservation? = nil
    ) {
        message.withUnsafeBytes { buffer.replaceFront(length, with: $0) }
        if let reservation { buffer.hold(reservation) }
    }

    /// Drops bytes that are of no use, e.g. an interim response that is not passed on.
    package mutating func skip(_ count: Int) { buffer.consume(count) }

    /// Drops bytes after the first `offset`, which stay.
    package mutating func remove(_ count: Int, at offset: Int) { buffer.remove(count, at: offset) }

    /// Gives the memory back while nothing is on its way.
    package mutating func rest() {
        if replayLimit == 0 { buffer.releaseIfEmpty() }
    }

    /// Takes all that was received out, as bytes.
    package mutating func takeReceived() -> [UInt8] {
        let bytes = Array(buffer.unread)
        buffer.consume(bytes.count)
        buffer.releaseIfEmpty()
        return bytes
    }

    /// Takes all that was received out, for a relay.
    package mutating func takeBuffer() -> ByteBuffer {
        ready = 0
        return buffer.take()
    }

    // MARK: A message

    /// Begins to pass on a message: `head` goes in the place of the `length` bytes of the received head.
    /// - Parameters:
    ///   - head: the head as it shall be written; scratch space of the caller's.
    ///   - dechunks: the receiver doesn't know chunks.
    ///   - chunks: the body ends with the connection, and the receiver shall see it in chunks.
    ///   - replayLimit: keep what is sent for ``rewind()`` as long as it is no longer than that, its head not counted.
    ///   - salvages: pass on what is whole of a body that breaks its framing, before the defect is told.
    package mutating func begin(
        head: inout [UInt8], inPlaceOf length: Int, framing: BodyFraming,
        dechunks: Bool = false, chunks: Bool = false, replayLimit: Int = 0, salvages: Bool = false
    ) {
        carried = 0
        replay = 0
        self.replayLimit = replayLimit > 0 ? replayLimit + head.count : 0
        defect = nil
        self.salvages = salvages
        headLength = head.count
        if chunks {
            let body = buffer.count - length
            if body > 0 {
                ChunkSize(body).withBytes { head.append(contentsOf: $0) }
                buffer.append(copying: ChunkSize.lineEnd)
            }
            head.withUnsafeBytes { buffer.replaceFront(length, with: $0) }
            ready = buffer.count
            coding = .chunking
            isComplete = false
            return
        }
        head.withUnsafeBytes { buffer.replaceFront(length, with: $0) }
        ready = head.count
        if dechunks {
            coding = .dechunking(ChunkedDecoder())
            isComplete = false
        } else {
            let scanner = BodyScanner(framing)
            isComplete = scanner.isEnded
            coding = .verbatim(scanner)
        }
    }

    /// Goes back to the first byte of the message, to send it to another sink. Only if ``canRewind``.
    package mutating func rewind() {
        buffer.rewind(replay)
        ready += replay
        replay = 0
        carried = 0
    }

    /// Goes back to the first byte of the message, to send it with another head.
    /// - Parameter keepsBody: the body goes after it, what is yet to come of it too: only if ``canRewind``. Else the
    ///   message, which was received to its end, has no body any more.
    package mutating func beginAgain(head: inout [UInt8], keepsBody: Bool) {
        if keepsBody {
            rewind()
            head.withUnsafeBytes { buffer.replaceFront(headLength, with: $0) }
            ready += head.count - headLength
        } else {
            abandon()
            head.withUnsafeBytes { buffer.replaceFront(0, with: $0) }
            ready = head.count
            coding = .verbatim(BodyScanner(.none))
            isComplete = true
            defect = nil
            replay = 0
            carried = 0
        }
        headLength = head.count
    }

    /// Whether every byte of the message that was written is still here.
    package var canRewind: Bool { replayLimit > 0 }

    /// Lends the head that was written, if it is still here.
    package func withSentHead(_ body: (Span<UInt8>) -> Void) {
        guard canRewind, replay >= headLength else { return }
        let sent = UnsafeRawBufferPointer(rebasing: buffer.consumed(last: replay)[..<headLength])
        unsafe body(Span(_unsafeBytes: sent))
    }

    /// The receiver has begun to answer: what was written needn't be kept.
    package mutating func forgetReplay() {
        replayLimit = 0
        replay = 0
    }

    /// Drops what is left of a message that has been received to its end: the sink takes no more of it.
    package mutating func abandon() {
        buffer.consume(ready)
        ready = 0
    }

    /// Whether all that was received of the message has been written.
    package var isDrained: Bool { ready == 0 }

    /// Passes on what is there, and reads more as long as the sink takes it.
    /// - Parameter readable: the source is known to have something.
    package mutating func pump(from source: ByteStream, to sink: any ByteSink, readable: Bool) -> Outcome {
        var mayRead = readable || source.holdsBytes
        while true {
            if !isComplete, defect == nil, buffer.count > ready { absorb() }
            if let defect, !salvages || (carried == 0 && ready == headLength) { return .malformed(defect) }
            switch write(to: sink) {
            case .done: break
            case .blocked:
                source.wantsRead = false
                return .blocked
            case .failed(let error): return .sinkFailed(error)
            }
            if isComplete { return .ended }
            if let defect { return .malformed(defect) }
            guard mayRead else {
                rest()
                source.wantsRead = true
                return .waiting
            }
            makeRoom()
            switch source.read(into: &buffer) {
            case .received: mayRead = source.holdsBytes
            case .blocked: mayRead = false
            case .ended:
                guard sourceEnded() else { return .truncated }
            case .failed(let error): return .sourceFailed(error)
            }
        }
    }

    /// Passes on what is there of a message that has no source: it was put here.
    package mutating func passOn(to sink: any ByteSink) -> Outcome {
        if !isComplete, buffer.count > ready { absorb() }
        return switch write(to: sink) {
        case .done: isComplete ? .ended : .waiting
        case .blocked: .blocked
        case .failed(let error): .sinkFailed(error)
        }
    }

    /// No more will be put here.
    /// - Returns: false if the message wanted more.
    package mutating func endPut() -> Bool { isComplete || sourceEnded() }

    /// Writes what is ready.
    private mutating func write(to sink: any ByteSink) -> WriteOutcome {
        guard ready > 0 else { return .done }
        let before = buffer.count
        let outcome = sink.write(ready, from: &buffer)
        let taken = before - buffer.count
        ready -= taken
        carried += UInt64(taken)
        if replayLimit > 0 {
            replay += taken
            if replay > replayLimit { forgetReplay() }
        }
        return outcome
    }

    /// All that was received has been written, unless it is kept to be sent again.
    private mutating func makeRoom() {
        if replayLimit > 0 {
            if buffer.makeRoomKeepingConsumed(limit: replayLimit) { return }
            forgetReplay()
        }
        buffer.compact()
    }

    /// Looks at the bytes that arrived and adds those of the message to the ready ones.
    private mutating func absorb() {
        let progress: BodyProgress
        switch coding {
        case .chunking:
            ChunkSize(buffer.count).withBytes { buffer.prepend(copying: $0) }
            buffer.append(copying: ChunkSize.lineEnd)
            ready = buffer.count
            return
        case .verbatim(var scanner):
            let arrived = buffer.unreadMutable(from: ready)
            var span = unsafe MutableSpan(_unsafeElements: arrived.assumingMemoryBound(to: UInt8.self))
            progress = scanner.scan(inPlace: &span)
            coding = .verbatim(scanner)
        case .dechunking(var decoder):
            let arrived = buffer.unreadMutable(from: ready)
            var span = unsafe MutableSpan(_unsafeElements: arrived.assumingMemoryBound(to: UInt8.self))
            progress = decoder.decode(inPlace: &span)
            coding = .dechunking(decoder)
        }
        switch progress {
        case .passed(let kept, let consumed, let ended):
            take(kept, of: consumed)
            isComplete = ended
        case .malformed(let error, let kept, let consumed):
            take(kept, of: consumed)
            defect = error
        }
    }

    /// The first `kept` bytes that are not ready yet are now, in the place of `consumed`. What is after the
    /// message stays: the one who judges the connection has to see it.
    private mutating func take(_ kept: Int, of consumed: Int) {
        buffer.remove(consumed - kept, at: ready + kept)
        ready += kept
    }

    /// The source has ended cleanly; false if the message wanted more.
    private mutating func sourceEnded() -> Bool {
        switch coding {
        case .verbatim(var scanner):
            guard scanner.peerClosed() else { return false }
        case .dechunking:
            return false
        case .chunking:
            buffer.append(copying: ChunkSize.lastChunk)
            ready = buffer.count
        }
        isComplete = true
        return true
    }
}
