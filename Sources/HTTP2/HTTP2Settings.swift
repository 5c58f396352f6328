/// The settings to announce (RFC 9113 section 6.5.2). Push and RFC 7540 priorities are always off.
package struct HTTP2Settings: Sendable {
    /// Concurrent streams of the peer; announced by servers only.
    package var maxConcurrentStreams = 100
    /// Receive window of a stream, in bytes.
    package var initialWindow = 256 << 10
    /// Receive window of the connection, in bytes; at least 65,535.
    package var connectionWindow = 1 << 20
    /// Largest frame payload, 16,384 to 16,777,215 bytes.
    package var maxFrameSize = 16 << 10
    /// Largest head: bytes of names and values, and 32 for each field.
    package var maxHeaderListSize = 64 << 10
    /// Size of the HPACK decoding table, in bytes.
    package var headerTableSize = 4096
    /// Servers: accepts extended CONNECT (RFC 8441).
    package var enablesConnectProtocol = false

    package init() {}
}
