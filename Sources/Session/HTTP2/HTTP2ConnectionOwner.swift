package import PinproxyHTTP2

/// The side that a connection of HTTP/2 belongs to.
package protocol HTTP2ConnectionOwner: AnyObject {
    /// A client has opened a stream: adopt it (``HTTP2Connection/adopt(_:for:)``) or reset it.
    func received(_ place: HTTP2HeadPlace, on id: HTTP2StreamID, ends: Bool)
    /// The peer's settings came or changed, it takes no new streams, or a stream has ended.
    func connectionChanged(_ connection: HTTP2Connection)
    func answeredPing(_ opaque: UInt64)
    /// No stream has been open for a while: objects kept for the next ones may be released.
    func connectionIsQuiet()
    /// The peer broke the protocol on a stream that was not adopted.
    func received(_ defect: HTTP2Defect, on id: HTTP2StreamID)
    /// The peer broke the protocol or flooded the connection, which ends: called before ``connectionEnded(_:_:)``. Or
    /// it sent a GOAWAY: called for the first, and for the first with an error.
    func noticed(_ notice: HTTP2Notice, on connection: HTTP2Connection)
    /// The connection has ended; its streams know. Called once.
    /// - Parameter cause: human-readable.
    func connectionEnded(_ connection: HTTP2Connection, _ cause: String)
}
