import PinproxyHTTPWire
import PinproxyTransport

/// Passes a response's body to the client, and a copy to a keeper.
final class StoringBody: BodySource, BodySink {
    private let source: any BodySource
    /// The body's sink during a pull.
    private var sink: (any BodySink)?
    private var keeper: (any BodyKeeper)?
    private var isWhole = false

    init(_ source: any BodySource, to keeper: any BodyKeeper) {
        self.source = source
        self.keeper = keeper
    }

    /// Has the complete body; nil: it was interrupted, is too long, or there was no memory for it.
    var whole: (any BodyKeeper)? { isWhole ? keeper : nil }

    var moved: UInt64 { source.moved }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        // Without a copy the body goes straight to the sink.
        guard keeper != nil else { return source.move(to: sink, readable: readable) }
        self.sink = sink
        defer { self.sink = nil }
        return source.move(to: self, readable: readable)
    }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        guard let sink else { return 0 }
        let count = try sink.write(piece)
        if count > 0, keeper?.append(piece.extracting(first: count)) == false { keeper = nil }
        return count
    }

    /// Trailers aren't stored (RFC 9111 section 3).
    func end(_ trailers: TrailerSection) throws(StreamError) -> Bool {
        let isEnded = try sink?.end(trailers) ?? false
        if isEnded { isWhole = true }
        return isEnded
    }

    func flush() throws(StreamError) -> Bool { try sink?.flush() ?? true }
    var carried: UInt64 { sink?.carried ?? 0 }
    var hasBegun: Bool { sink?.hasBegun ?? false }
}
