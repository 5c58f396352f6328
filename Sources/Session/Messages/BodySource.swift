package import HTTPWire
package import Transport

package enum BodyMove {
    /// Every available byte was passed on, and more will follow.
    case waiting
    case blocked
    /// The body was passed on to its last byte, and the sink knows that it is whole.
    case ended
    /// The source ended in the middle of the body. All that it sent was passed on. Why, for people.
    case truncated(String)
    /// The source failed. All that it sent was passed on.
    case sourceFailed(StreamError)
    case failed(ExchangeFailure)
    case sinkFailed(StreamError)
    /// The body breaks its framing. What was whole of it was passed on.
    case malformed(WireError)
}

/// Where a body comes from. Bodies are pulled by ``move(to:readable:)`` alone, so that a full sink stops its source.
package protocol BodySource: AnyObject {
    /// Passes on what the sink has room for. `readable`: there is known to be more to read.
    func move(to sink: any BodySink, readable: Bool) -> BodyMove
    /// Bytes of the body that were passed on, without those of its framing.
    var moved: UInt64 { get }
    var canRewind: Bool { get }
    /// Begins at the first byte again. Only if ``canRewind``.
    func rewind()
}

extension BodySource {
    package var canRewind: Bool { false }
    package func rewind() {}
}

package protocol BodySink: AnyObject {
    /// Takes bytes from the front of a piece, and returns their number: fewer if it is full for now.
    func write(_ piece: RawSpan) throws(StreamError) -> Int
    /// Takes the end of the body. False: no room for the rest; call it again when there is.
    func end(_ trailers: TrailerSection) throws(StreamError) -> Bool
    /// Sends what waits to be joined with a piece. False: there is no room for it.
    func flush() throws(StreamError) -> Bool
    /// Bytes of the message that were passed on, with its head and its framing.
    var carried: UInt64 { get }
    /// No other message can take this one's place: a byte of it was passed on, or lies in a write that has begun.
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
