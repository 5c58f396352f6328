package import PinproxyHTTPWire
package import PinproxyTransport

/// Writes to an HTTP/1.1 connection. A head waits for its body's first piece, so that both go out in one write.
package final class HTTP1Outlet: BodySink {
    private let stream: ByteStream
    // The stream's callbacks don't reach the outlet that calls it.
    @exclusivity(unchecked) private var pending: ByteBuffer
    @exclusivity(unchecked) private var inChunks = false
    @exclusivity(unchecked) private var isEnded = false
    @exclusivity(unchecked) private var isBlocked = false
    @exclusivity(unchecked) package private(set) var carried: UInt64 = 0

    /// A TLS record once begun must be finished with the same bytes.
    package var hasBegun: Bool { carried > 0 || isBlocked }

    package init(_ stream: ByteStream, slabs: SlabPool) {
        self.stream = stream
        pending = ByteBuffer(slabs: slabs)
    }

    /// - Parameters:
    ///   - inChunks: write the body in chunks.
    ///   - source: the body's; its chunks are forwarded as they are.
    ///   - write: appends the head with its empty line.
    package func begin(inChunks: Bool, from source: any BodySource, head write: (inout [UInt8]) -> Void) {
        reset()
        let slabs = pending.slabs
        slabs.headScratch.removeAll(keepingCapacity: true)
        write(&slabs.headScratch)
        pending.append(copying: slabs.headScratch.span.bytes)
        self.inChunks = inChunks
        if inChunks, let pipe = source as? MessagePipe, pipe.keepsChunks() { self.inChunks = false }
    }

    /// Forgets the unsent rest of the last message.
    package func reset() {
        carried = 0
        isEnded = false
        isBlocked = false
        pending.consume(pending.count)
        pending.releaseIfEmpty()
    }

    package func write(_ piece: RawSpan) throws(StreamError) -> Int {
        var taken = 0
        while taken < piece.byteCount, try hasRoom() {
            let size = min(piece.byteCount - taken, pending.free - ChunkSize.most)
            append(piece.extracting(taken..<taken + size))
            taken += size
            guard try flush() else { break }
        }
        return taken
    }

    /// Takes the buffer's first bytes as far as there is room, and returns their number.
    func take(_ count: Int, from buffer: inout ByteBuffer) throws(StreamError) -> Int {
        let joins = inChunks || !pending.isEmpty && !isBlocked && count <= pending.free
        if joins {
            let taken = try buffer.withFront(count) { piece throws(StreamError) in try write(piece) }
            buffer.consume(taken)
            return taken
        }
        guard try flush() else { return 0 }
        let before = buffer.count
        let outcome = stream.write(count, from: &buffer)
        let taken = before - buffer.count
        carried += UInt64(taken)
        if case .failed(let error) = outcome { throw error }
        return taken
    }

    private func hasRoom() throws(StreamError) -> Bool {
        if isBlocked || pending.free <= ChunkSize.most { return try flush() }
        return true
    }

    private func append(_ piece: RawSpan) {
        guard inChunks else { return pending.append(copying: piece) }
        ChunkSize(piece.byteCount).withBytes { pending.append(copying: $0) }
        pending.append(copying: piece)
        pending.append("\r\n")
    }

    package func end(_ trailers: TrailerSection) throws(StreamError) -> Bool {
        if !isEnded {
            isEnded = true
            if inChunks {
                pending.append("0\r\n")
                pending.append(copying: trailers.lines.span.bytes)
                pending.append("\r\n")
            }
        }
        return try flush()
    }

    package func flush() throws(StreamError) -> Bool {
        guard !pending.isEmpty else { return true }
        let before = pending.count
        let outcome = stream.write(before, from: &pending)
        carried += UInt64(before - pending.count)
        switch outcome {
        case .done:
            isBlocked = false
            pending.releaseIfEmpty()
            return true
        case .blocked:
            isBlocked = true
            pending.compact()
            return false
        case .failed(let error): throw error
        }
    }
}
