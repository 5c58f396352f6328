package import PinproxyHTTPWire

/// An event of a session, in the order of the peer's frames.
///
/// `ended`, `trailers` or a head with `ends` completes the peer's message; the peer may still reset the stream. `reset`
/// and `malformed` are the last events of a stream.
package enum HTTP2Event: Sendable {
    /// A client opened a stream. `ends`: there is no body.
    case request(HTTP2StreamID, HTTP2HeadPlace, ends: Bool)
    /// A response's head, interim (1xx) or final.
    case response(HTTP2StreamID, HTTP2HeadPlace, ends: Bool)
    /// Body bytes, as offsets into the bytes passed to `receive`. Return them with `consumed(_:of:)` and
    /// `consumedOfConnection(_:)`.
    case data(HTTP2StreamID, Range<Int>)
    /// Trailers, which end the body.
    case trailers(HTTP2StreamID, TrailerSection)
    case ended(HTTP2StreamID)
    /// The peer reset the stream, or its GOAWAY left the request unprocessed (REFUSED_STREAM).
    case reset(HTTP2StreamID, HTTP2ErrorCode)
    /// The session resets the stream because the peer broke the protocol. The stream may have had no event before.
    case malformed(HTTP2StreamID, HTTP2Defect)
    /// A send window grew: a stream's, or nil: the connection's or all streams'.
    case windowOpened(HTTP2StreamID?)
    /// The peer accepts no new streams. `reset` events follow for requests above `lastStream`.
    case goAway(lastStream: HTTP2StreamID, HTTP2ErrorCode, debug: String)
    /// The peer's settings arrived.
    case settings
    case pong(UInt64)
    /// A client sent PRIORITY_UPDATE (RFC 9218 section 7.1), perhaps before the request.
    case priority(HTTP2StreamID, HTTP2Priority)
    /// The connection failed; a GOAWAY with the code is queued. The text is the reason, for the log.
    case failed(HTTP2ErrorCode, String)

    /// The event's stream; nil if it belongs to the connection.
    package var stream: HTTP2StreamID? {
        switch self {
        case .request(let stream, _, _), .response(let stream, _, _), .data(let stream, _), .trailers(let stream, _),
            .ended(let stream), .reset(let stream, _), .malformed(let stream, _), .priority(let stream, _):
            stream
        case .windowOpened(let stream): stream
        case .goAway, .settings, .pong, .failed: nil
        }
    }
}

/// A received head: the location of its text, valid until the next `receive`, and facts beside the text.
package struct HTTP2HeadPlace: Sendable, Equatable {
    package enum Scheme: UInt8, Sendable { case http, https, other, none }

    /// In the session's text.
    let range: Range<UInt32>
    /// Number of the `receive` call.
    let round: UInt32
    /// Field lines in the text.
    let lines: UInt32
    let ends: Bool
    /// The head exceeds SETTINGS_MAX_HEADER_LIST_SIZE; the text lacks fields.
    let isTooLarge: Bool

    /// `:scheme`; `none` for CONNECT and responses.
    package let scheme: Scheme
    /// An extended CONNECT (RFC 8441 section 4). Its text is the equivalent HTTP/1.1 handshake: a GET with Upgrade,
    /// which has the value of `:protocol`, without Sec-WebSocket-Key.
    package let isExtendedConnect: Bool
    /// The Priority field; nil if absent or malformed.
    package let priority: HTTP2Priority?
    /// A field other than the usual secrets was never-indexed. It has to stay so at the next hop (RFC 7541 section
    /// 6.2.3).
    package let neverIndexed: Bool
}

/// Why a stream is malformed (RFC 9113 section 8.1.1).
package enum HTTP2Defect: Error, Sendable, Hashable, CustomStringConvertible {
    /// A malformed or connection-specific field.
    case field
    /// Missing pseudo-header fields, or a body that differs from Content-Length.
    case message
    /// Host differs from `:authority`.
    case hostDiffers
    case trailersTooLong
    /// A head of more than four times SETTINGS_MAX_HEADER_LIST_SIZE, such as an HPACK bomb.
    case headTooLong
    /// A frame violates framing or flow control.
    case frame(HTTP2ErrorCode)
    /// A head could not be sent: it exceeds ``HTTP2Limits/sentHead``, or the stream's state forbids it.
    case unsent

    /// The code of the RST_STREAM.
    package var code: HTTP2ErrorCode {
        switch self {
        case .field, .message, .hostDiffers: .protocolError
        case .trailersTooLong, .headTooLong: .enhanceYourCalm
        case .frame(let code): code
        case .unsent: .internalError
        }
    }

    package var description: String {
        switch self {
        case .field: "a field that is malformed or that HTTP/2 forbids"
        case .message: "pseudo-header fields that are missing, or a body that differs from Content-Length"
        case .hostDiffers: "a Host field that differs from :authority"
        case .trailersTooLong: "a trailer section that is too long"
        case .headTooLong: "a head of more than four times the announced size"
        case .frame(let code): "a frame that breaks the protocol (\(code))"
        case .unsent: "a head that could not be sent"
        }
    }
}
