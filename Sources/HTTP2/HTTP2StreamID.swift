/// A stream of a connection (RFC 9113 section 5.1.1): odd numbers are requests. Never used twice.
package struct HTTP2StreamID: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: Int32

    package init(_ rawValue: Int32) { self.rawValue = rawValue }

    package var description: String { String(rawValue) }
}
