import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTransport

/// Limits the rate of a request's body (`throttle`), as AFMultipartFormData's `throttleBandwidthWithPacketSize:delay:`.
final class RequestThrottle: BodySource, BodySink {
    private let source: any BodySource
    private let rule: Throttle
    private let pause: Deadline
    /// Bytes until the next pause.
    private var allowance: Int
    /// The body's sink during a pull.
    private var sink: (any BodySink)?

    /// - Parameter proceed: called after a pause with the owner, which holds the throttle.
    init<Owner: AnyObject>(
        _ rule: Throttle, source: any BodySource, loop: EventLoop, owner: Owner,
        proceed: @escaping @Sendable (Owner) -> Void
    ) {
        self.source = source
        self.rule = rule
        allowance = rule.packet
        pause = Deadline(loop: loop, owner: owner, expired: proceed)
    }

    var isPausing: Bool { pause.isSet }
    var moved: UInt64 { source.moved }

    func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        self.sink = sink
        defer { self.sink = nil }
        return source.move(to: self, readable: readable)
    }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        guard !pause.isSet, let sink else { return 0 }
        let taken = try sink.write(piece.extracting(first: min(piece.byteCount, allowance)))
        allowance -= taken
        if allowance == 0 {
            allowance = rule.packet
            pause.set(afterNanoseconds: rule.delay.nanoseconds)
        }
        return taken
    }

    func end(_ trailers: TrailerSection) throws(StreamError) -> Bool { try sink?.end(trailers) ?? false }
    func flush() throws(StreamError) -> Bool { try sink?.flush() ?? true }
    var carried: UInt64 { sink?.carried ?? 0 }
}
