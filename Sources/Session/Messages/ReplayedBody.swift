import PinproxyHTTPWire
import PinproxyTransport

/// A request's body, kept for another sending within its limit and the budget for bodies.
final class ReplayedBody: BodySource, BodySink {
    private let source: any BodySource
    private let limit: Int
    private let reservation: BodyReservation
    private var kept = PassingBytes()
    /// The source has ended, with these trailers.
    private var ending: TrailerSection?
    /// The body's sink during a pull.
    private var sink: (any BodySink)?
    /// All bytes passed on are still kept.
    private(set) var canRewind = true

    init(_ source: any BodySource, limit: Int, from budget: BodyBudget) {
        self.source = source
        self.limit = limit
        reservation = BodyReservation(of: budget, for: .replay)
    }

    var moved: UInt64 { source.moved - min(source.moved, UInt64(kept.left)) }

    func rewind() { kept.rewind() }

    func forget() {
        canRewind = false
        guard kept.isPassed else { return }
        kept = PassingBytes()
        _ = reservation.resize(to: 0)
    }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        do throws(StreamError) {
            if !kept.isPassed {
                let count = try kept.write(to: sink)
                kept.advance(by: count)
                guard kept.isPassed else { return .blocked }
                if !canRewind { forget() }
            }
            if let ending { return try sink.end(ending) ? .ended : .blocked }
        } catch {
            return .sinkFailed(error)
        }
        // Without a copy the body goes straight to the sink.
        guard canRewind else { return source.move(to: sink, readable: readable) }
        self.sink = sink
        defer { self.sink = nil }
        return source.move(to: self, readable: readable)
    }

    // MARK: Input

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        guard let sink else { return 0 }
        let count = try sink.write(piece)
        if canRewind { keep(piece.extracting(first: count)) }
        return count
    }

    private func keep(_ piece: RawSpan) {
        let length = kept.all.count + piece.byteCount
        guard length <= limit, reservation.grow(to: length) else { return forget() }
        kept.append(passed: piece)
    }

    func end(_ trailers: TrailerSection) throws(StreamError) -> Bool {
        ending = trailers
        return try sink?.end(trailers) ?? false
    }

    func flush() throws(StreamError) -> Bool { try sink?.flush() ?? true }
    var carried: UInt64 { sink?.carried ?? 0 }
}
