package import PinproxyHTTPWire
package import PinproxyTransport

package enum BodyMove {
    /// All available bytes were passed on; more will follow.
    case waiting
    case blocked
    /// The body was passed on, and the sink knows that it is complete.
    case ended
    /// The source ended within the body, with a human-readable reason. Everything it sent was passed on.
    case truncated(String)
    /// The source failed. Everything it sent was passed on.
    case sourceFailed(StreamError)
    case failed(ExchangeFailure)
    case sinkFailed(StreamError)
    /// The body breaks its framing. Its well-formed part was passed on.
    case malformed(WireError)
}

/// A body's origin. Bodies are pulled by ``move(to:readable:)`` alone, so that a full sink stops its source.
package protocol BodySource: AnyObject {
    /// Passes on what the sink has room for. `readable`: more input is known to be available.
    func move(to sink: any BodySink, readable: Bool) -> BodyMove
    /// Bytes of the body passed on, without framing.
    var moved: UInt64 { get }
    var canRewind: Bool { get }
    /// Returns to the first byte. Only if ``canRewind``.
    func rewind()
}

extension BodySource {
    package var canRewind: Bool { false }
    package func rewind() {}
}

package protocol BodySink: AnyObject {
    /// Takes a piece's first bytes and returns their number: fewer if it is full.
    func write(_ piece: RawSpan) throws(StreamError) -> Int
    /// Ends the body. False: it is full; call it again when there is room.
    func end(_ trailers: TrailerSection) throws(StreamError) -> Bool
    /// Sends what waits to be joined with a piece. False: it is full.
    func flush() throws(StreamError) -> Bool
    /// Bytes of the message passed on, with head and framing.
    var carried: UInt64 { get }
    /// No other message can replace this one: some of it was passed on, or is in a write that has begun.
    var hasBegun: Bool { get }
}

extension BodySink {
    package func end(_ trailers: TrailerSection) throws(StreamError) -> Bool { try flush() }
    package func flush() throws(StreamError) -> Bool { true }
    package var hasBegun: Bool { carried > 0 }

    func endBody() -> BodyMove {
        do throws(StreamError) {
            return try end(TrailerSection()) ? .ended : .blocked
        } catch {
            return .sinkFailed(error)
        }
    }
}
