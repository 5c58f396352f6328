package import PinproxyHTTP2
package import PinproxyHTTPWire
import PinproxyTransport

extension HTTP2Connection: HTTP2Outlet {
    private static let frame = 9 + (16 << 10)

    package var hasRoom: Bool { output.free >= Self.frame }
    package func write(_ bytes: RawSpan) { output.append(copying: bytes) }

    package func available(of stream: HTTP2StreamID, most: Int) -> (count: Int, isLast: Bool) {
        streams[stream]?.available(most: most) ?? (0, true)
    }

    package func writeBody(_ count: Int, of stream: HTTP2StreamID) { streams[stream]?.give(count, to: &output) }
    package func trailers(of stream: HTTP2StreamID) -> FieldBlock? { streams[stream]?.takeTrailers() }
}
