import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

/// A part of a stored body on disk.
///
/// What the kernel has in memory is read at once. From the first piece that it doesn't have on, another thread reads
/// ahead of the client by a piece.
final class DiskBody: BodySource {
    /// Pieces that one turn reads, 1 MiB: other connections of the loop wait meanwhile.
    private static let piecesInTurn = 16

    private let body: OpenedBody
    private let loop: EventLoop
    /// Called when bytes are ready after a wait.
    private let whenReady: () -> Void
    private var piece = PassingBytes()
    /// The next piece, once it was read.
    private var next: Result<ArraySlice<UInt8>, ReadFailure>?
    private var isInMemory = true
    private var isReading = false
    private var isWaiting = false
    /// The part that wasn't read yet.
    private var unread: Range<UInt64>
    private(set) var moved: UInt64 = 0

    struct ReadFailure: Error {
        let cause: String
    }

    init(
        _ body: OpenedBody, _ range: Range<UInt64>, on loop: EventLoop, whenReady: @escaping () -> Void
    ) {
        self.body = body
        self.loop = loop
        self.whenReady = whenReady
        unread = range
        if range.lowerBound < body.beginning.count { take(body.beginning[Int(range.lowerBound)...]) }
    }

    /// A piece's bytes within the range.
    private func take(_ bytes: ArraySlice<UInt8>) {
        let bytes = bytes.prefix(unread.count)
        unread = unread.lowerBound + UInt64(bytes.count)..<unread.upperBound
        piece = PassingBytes(Array(bytes))
    }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        var allowance = Self.piecesInTurn
        while true {
            do throws(StreamError) {
                let count = try piece.write(to: sink)
                piece.advance(by: count)
                moved += UInt64(count)
                if !piece.isPassed {
                    if !isInMemory { read() }
                    return .blocked
                }
            } catch {
                return .sinkFailed(error)
            }
            guard !unread.isEmpty else { return sink.endBody() }
            switch next.take() {
            case .success(let bytes)? where !bytes.isEmpty:
                take(bytes)
                if !isInMemory { read() }
            case .success?: return .truncated("the stored body is shorter than it was")
            case .failure(let failure)?: return .truncated(failure.cause)
            case nil:
                if allowance > 0, let bytes = cachedPiece() {
                    allowance -= 1
                    take(bytes)
                    continue
                }
                isWaiting = true
                read()
                return .waiting
            }
        }
    }

    private func cachedPiece() -> ArraySlice<UInt8>? {
        guard isInMemory, !isReading else { return nil }
        let bytes = body.cachedPiece(from: unread.lowerBound)
        isInMemory = bytes != nil
        return bytes
    }

    /// Reads the next piece on the cache's thread.
    private func read() {
        guard !isReading, next == nil, !unread.isEmpty else { return }
        isReading = true
        let (source, offset, body) = (LoopBound(self, on: loop), unread.lowerBound, body)
        body.queue.async {
            let piece = body.piece(from: offset).mapError { ReadFailure(cause: "the stored body: \($0)") }
            source.post { $0.arrived(piece) }
        }
    }

    private func arrived(_ piece: Result<ArraySlice<UInt8>, ReadFailure>) {
        isReading = false
        next = piece
        guard isWaiting else { return }
        isWaiting = false
        whenReady()
    }
}
