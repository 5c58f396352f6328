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
        /// As it came: by length, by chunks with their extensions and trailers, or by close.
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
        /// The source ended in the middle of the message.
        case truncated
        case sourceFailed(StreamError)
        case sinkFailed(StreamError)
        /// The body breaks its framing.
        case malformed(WireError)
    }

    package private(set) var buffer: ByteBuffer
    private var coding = Coding.verbatim(BodyScanner(.none))
    private var ready = 0
    /// Bytes in front of the buffer's start that were sent and can be sent again.
    private var replay = 0
    private var keepsReplay = false
    /// The whole message has been received (not necessarily written).
    package private(set) var isComplete = true
    /// Bytes written to the sink since the message began, its head counted.
    package private(set) var carried: UInt64 = 0

    package init(slabs: SlabPool) {
        buffer = ByteBuffer(slabs: slabs)
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

    /// Drops bytes that are of no use, e.g. an interim response that is not passed on.
    package mutating func skip(_ count: Int) { buffer.consume(count) }

    /// Gives the memory back while nothing is on its way.
    package mutating func rest() {
        if !keepsReplay { buffer.releaseIfEmpty() }
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
    ///   - replayable: keep what is sent for ``rewind()`` as long as it fits.
    package mutating func begin(
        head: inout [UInt8], inPlaceOf length: Int, framing: BodyFraming,
        dechunks: Bool = false, chunks: Bool = false, replayable: Bool = false
    ) {
        carried = 0
        replay = 0
        keepsReplay = replayable
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

    /// Whether every byte of the message that was written is still here.
    package var canRewind: Bool { keepsReplay }

    /// The receiver has begun to answer: what was written needn't be kept.
    package mutating func forgetReplay() {
        keepsReplay = false
        replay = 0
    }

    /// Passes on what is there, and reads more as long as the sink takes it.
    /// - Parameter readable: the source is known to have something.
    package mutating func pump(from source: ByteStream, to sink: ByteStream, readable: Bool) -> Outcome {
        var mayRead = readable || source.holdsBytes
        while true {
            if !isComplete, buffer.count > ready, let error = absorb() { return .malformed(error) }
            if ready > 0 {
                let before = buffer.count
                let outcome = sink.write(ready, from: &buffer)
                let taken = before - buffer.count
                ready -= taken
                carried += UInt64(taken)
                if keepsReplay { replay += taken }
                switch outcome {
                case .done: break
                case .blocked:
                    source.wantsRead = false
                    return .blocked
                case .failed(let error): return .sinkFailed(error)
                }
            }
            if isComplete { return .ended }
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

    /// All that was received has been written, unless it is kept to be sent again.
    private mutating func makeRoom() {
        if keepsReplay {
            if buffer.free > 0 { return }
            forgetReplay()
        }
        buffer.compact()
    }

    /// Looks at the bytes that arrived and adds those of the message to the ready ones.
    private mutating func absorb() -> WireError? {
        switch coding {
        case .verbatim(var scanner):
            let arrived = UnsafeRawBufferPointer(rebasing: buffer.unread[ready...])
            let progress = unsafe scanner.scan(Span(_unsafeBytes: arrived))
            coding = .verbatim(scanner)
            switch progress {
            case .passed(let count): ready += count
            case .ended(let count):
                ready += count
                isComplete = true
            case .malformed(let error): return error
            }
        case .dechunking(var decoder):
            let arrived = buffer.unreadMutable(from: ready)
            var span = unsafe MutableSpan(_unsafeElements: arrived.assumingMemoryBound(to: UInt8.self))
            let progress = decoder.decode(inPlace: &span)
            coding = .dechunking(decoder)
            switch progress {
            case .decoded(let payload, let consumed, let ended):
                // Not what is behind the message: the one who judges the connection has to see it.
                buffer.remove(consumed - payload, at: ready + payload)
                ready += payload
                isComplete = ended
            case .malformed(let error): return error
            }
        case .chunking:
            ChunkSize(buffer.count).withBytes { buffer.prepend(copying: $0) }
            buffer.append(copying: ChunkSize.lineEnd)
            ready = buffer.count
        }
        return nil
    }

    /// The source has ended in the proper way; false if the message wanted more.
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
