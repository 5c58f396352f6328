package import PinproxyHTTPWire
package import PinproxyTransport

// One idea with HTTP1Outlet.swift: bodies go from this buffer to the other's socket, chunks included.

/// The messages of an HTTP/1.1 connection: each head, which stays in front of the received bytes while needed, and its
/// body. The buffer is the watermark: it is refilled when all of it has been passed on.
///
/// ```
///      head      ready        not yet looked at
///   |--------|-----------|----------------------|
/// start
/// ```
package final class MessagePipe: BodySource {
    private enum Coding {
        /// By length, by the connection's end, or in chunks for another HTTP/1.1 connection.
        case verbatim(BodyScanner)
        /// Without its chunks.
        case decoding(ChunkedDecoder)
    }

    package let stream: ByteStream
    // Callbacks of streams and sinks don't reach the pipe that calls them.
    @exclusivity(unchecked) private var buffer: ByteBuffer
    @exclusivity(unchecked) private var coding = Coding.verbatim(BodyScanner(.none))
    /// Bytes of the head still held.
    @exclusivity(unchecked) private var headLength = 0
    @exclusivity(unchecked) private var ready = 0
    private var defect: WireError?
    private let kind: Kind
    /// The whole message was received, though perhaps not passed on.
    @exclusivity(unchecked) package private(set) var isComplete = true
    @exclusivity(unchecked) package private(set) var moved: UInt64 = 0

    package enum Kind {
        case requests
        /// A malformed body passes up to its defect. Received bytes are acknowledged at once, for origins that wait.
        case responses
    }

    /// - Parameter received: bytes read from the stream already.
    package init(_ kind: Kind, on stream: ByteStream, received: consuming ByteBuffer) {
        self.kind = kind
        self.stream = stream
        buffer = received
    }

    // MARK: Between messages

    /// Borrows the received bytes not passed on, the head's first.
    @inline(__always) package func withUnread<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        buffer.withUnread(body)
    }
    /// The number of received bytes not passed on.
    package var count: Int { buffer.count }
    package var isEmpty: Bool { buffer.isEmpty }

    /// Receives more of a head; nil when it would pass `limit` bytes.
    package func receive(limit: Int) -> ReadOutcome? {
        guard buffer.makeRoom(limit: limit) else { return nil }
        return stream.read(into: &buffer)
    }

    package func skip(_ count: Int) { buffer.consume(count) }

    /// Releases memory between messages.
    package func releaseBuffer() { buffer.releaseIfEmpty() }

    package func takeReceived() -> [UInt8] {
        let bytes = buffer.withUnread { [UInt8](copying: $0.bytes) }
        buffer.consume(bytes.count)
        buffer.releaseIfEmpty()
        return bytes
    }

    /// Takes all received bytes, for a relay.
    package func takeBuffer() -> ByteBuffer {
        ready = 0
        return buffer.take()
    }

    // MARK: Messages

    package func begin(head length: Int, framing: BodyFraming) {
        headLength = length
        moved = 0
        defect = nil
        ready = 0
        if case .chunked = framing {
            coding = .decoding(ChunkedDecoder())
            isComplete = false
        } else {
            let scanner = BodyScanner(framing)
            isComplete = scanner.isEnded
            coding = .verbatim(scanner)
        }
    }

    package func dropHead() {
        buffer.consume(headLength)
        headLength = 0
        if isComplete { releaseBuffer() }
    }

    /// Forwards chunks unchanged; call it before the body moves. False: it isn't chunked.
    func keepsChunks() -> Bool {
        guard case .decoding = coding, moved == 0 else { return false }
        coding = .verbatim(BodyScanner(.chunked))
        return true
    }

    /// Drops the rest of a message received to its end.
    package func abandon() {
        dropHead()
        buffer.consume(ready)
        ready = 0
    }

    package func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        if !isComplete, headLength > 0 { dropHead() }
        let outlet = sink as? HTTP1Outlet
        var mayRead = readable || stream.holdsBytes
        let before = moved
        while true {
            if !isComplete, defect == nil, buffer.count > ready { absorb() }
            if let defect, kind == .requests || (moved == 0 && ready == 0) { return .malformed(defect) }
            do throws(StreamError) {
                if ready > 0 {
                    try pass(to: sink, outlet)
                    guard ready == 0, try flush(sink, outlet) else { return blocked() }
                }
                if isComplete { return try end(sink) ? .ended : blocked() }
            } catch {
                return .sinkFailed(error)
            }
            if let defect { return .malformed(defect) }
            guard mayRead else {
                releaseBuffer()
                stream.wantsRead = true
                // The kernel confirms every second full segment itself, so a flowing body costs nothing.
                if kind == .responses, moved - before < Self.twoSegments { stream.confirmNow() }
                return .waiting
            }
            buffer.compact()
            switch stream.read(into: &buffer) {
            case .received: mayRead = stream.holdsBytes
            case .blocked: mayRead = false
            case .ended:
                guard streamEnded() else {
                    return .truncated(
                        kind == .requests
                            ? "the client ended in the middle of the request"
                            : "the origin ended in the middle of the response")
                }
            case .failed(let error): return .sourceFailed(error)
            }
        }
    }

    private static let twoSegments: UInt64 = 2 * 1448

    private func blocked() -> BodyMove {
        stream.wantsRead = false
        return .blocked
    }

    /// Between HTTP/1.1 connections the bytes go from the buffer straight to the socket.
    private func pass(to sink: any BodySink, _ outlet: HTTP1Outlet?) throws(StreamError) {
        let taken: Int
        if let outlet {
            taken = try outlet.take(ready, from: &buffer)
        } else {
            taken = try buffer.withFront(ready) { piece throws(StreamError) in try sink.write(piece) }
            buffer.consume(taken)
        }
        ready -= taken
        moved += UInt64(taken)
    }

    private func flush(_ sink: any BodySink, _ outlet: HTTP1Outlet?) throws(StreamError) -> Bool {
        if let outlet { return try outlet.flush() }
        return try sink.flush()
    }

    private func end(_ sink: any BodySink) throws(StreamError) -> Bool {
        if case .decoding(let decoder) = coding { return try sink.end(decoder.trailers) }
        return try sink.end(TrailerSection())
    }

    /// Examines the bytes that arrived, and marks the message's as ready.
    private func absorb() {
        let progress = buffer.edit(from: ready) { arrived in
            switch coding {
            case .verbatim(var scanner):
                defer { coding = .verbatim(scanner) }
                return scanner.scan(inPlace: &arrived)
            case .decoding(var decoder):
                defer { coding = .decoding(decoder) }
                return decoder.decode(inPlace: &arrived)
            }
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

    /// Marks `kept` bytes ready, of `consumed` ones. Later bytes stay, for judging the connection.
    private func take(_ kept: Int, of consumed: Int) {
        buffer.remove(consumed - kept, at: ready + kept)
        ready += kept
    }

    /// The stream ended cleanly; false if the message is incomplete.
    private func streamEnded() -> Bool {
        guard case .verbatim(var scanner) = coding, scanner.peerClosed() else { return false }
        isComplete = true
        return true
    }
}
