/// What this side announces (RFC 9113 section 6.5.2). Push is off, and so are the priorities of RFC 7540.
package struct HTTP2Settings: Sendable {
    /// Streams that the peer may have open at one time. Only a server announces it, since nothing is pushed.
    package var maxConcurrentStreams = 100
    /// Bytes that a stream may have in flight toward this side.
    package var initialWindow = 256 << 10
    /// Bytes that all streams together may have in flight toward this side; at least 65,535.
    package var connectionWindow = 1 << 20
    /// Bytes of a frame's payload, 16,384 to 16,777,215.
    package var maxFrameSize = 16 << 10
    /// Bytes of a head: names, values and 32 for each field.
    package var maxHeaderListSize = 64 << 10
    /// Bytes of the table of HPACK with which the peer compresses.
    package var headerTableSize = 4096
    /// Servers: a client may send extended CONNECTs (RFC 8441).
    package var enablesConnectProtocol = false

    package init() {}
}
