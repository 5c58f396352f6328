package import HTTPWire

/// Where a session's bytes go, and where the bodies come from that it sends. Called only within
/// ``HTTP2Session/send(through:)``, on the caller's thread; it must not call the session, except `resume(_:)`.
package protocol HTTP2Outlet: AnyObject {
    /// Whether a whole frame fits in: 9 bytes and at most 16 KiB. Asked before each.
    var hasRoom: Bool { get }
    /// Appends bytes of frames; of DATA frames the header alone.
    func write(_ bytes: RawSpan)
    /// How much of a stream's body is at hand, `most` bytes at most, and whether that is all of it. (0, false): nothing
    /// now; the stream isn't asked again before `resume(_:)`. What is told is written at once, unless it is (0, true).
    func available(of stream: HTTP2StreamID, most: Int) -> (count: Int, isLast: Bool)
    /// Appends so many bytes of a stream's body, after the header that was just written.
    func writeBody(_ count: Int, of stream: HTTP2StreamID)
    /// The trailers that follow a body's last bytes; asked once, at these.
    func trailers(of stream: HTTP2StreamID) -> FieldBlock?
}
