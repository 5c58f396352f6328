package import PinproxyHTTPWire

/// The destination of a session's bytes, and the source of the bodies that it sends. Called only within
/// ``HTTP2Session/send(through:)``, on the caller's thread. It must not call the session, except `resume(_:)`.
package protocol HTTP2Outlet: AnyObject {
    /// Whether a whole frame fits: 9 bytes and at most 16 KiB. Called before each frame.
    var hasRoom: Bool { get }
    /// Appends frame bytes; of a DATA frame, only its header.
    func write(_ bytes: RawSpan)
    /// The number of body bytes available, at most `most`, and whether they are the last. (0, false) defers the stream
    /// until `resume(_:)`. A count above 0 is followed by `writeBody` at once.
    func available(of stream: HTTP2StreamID, most: Int) -> (count: Int, isLast: Bool)
    /// Appends exactly `count` bytes of a stream's body, after the frame header just written.
    func writeBody(_ count: Int, of stream: HTTP2StreamID)
    /// The trailers of a body; called once, with its last bytes.
    func trailers(of stream: HTTP2StreamID) -> FieldBlock?
}
