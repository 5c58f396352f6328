package import HTTPWire

/// What the peer did, in the order in which it did it.
///
/// After `ended`, `trailers` or a head that `ends`, nothing more of the stream's message follows, though the peer may
/// still reset it. After `reset` and `malformed` nothing follows at all.
package enum HTTP2Event: Sendable {
    /// A client has opened a stream. `ends`: without a body.
    case request(HTTP2StreamID, HTTP2HeadPlace, ends: Bool)
    /// A head for a request of this side; interim ones (1xx) too.
    case response(HTTP2StreamID, HTTP2HeadPlace, ends: Bool)
    /// Bytes of a body: offsets in those that were given to `receive`. Each byte is owed to the connection's window and to
    /// the stream's (`consumed`).
    case data(HTTP2StreamID, Range<Int>)
    /// They end the body.
    case trailers(HTTP2StreamID, TrailerSection)
    case ended(HTTP2StreamID)
    /// The peer has reset the stream, or its GOAWAY has left the request unprocessed (REFUSED_STREAM).
    case reset(HTTP2StreamID, HTTP2ErrorCode)
    /// The stream is reset from here, since the peer broke the protocol. A head that is malformed was never an event.
    case malformed(HTTP2StreamID, HTTP2Defect)
    /// More may be sent: on a stream, or nil: on all.
    case windowOpened(HTTP2StreamID?)
    /// The peer takes no new streams. Requests after `lastStream` weren't processed; their resets follow.
    case goAway(lastStream: HTTP2StreamID, HTTP2ErrorCode, debug: String)
    /// The peer's settings are known, or have changed.
    case settings
    case pong(UInt64)
    /// A client has changed a priority (RFC 9218 section 7.1), perhaps before its request arrives.
    case priority(HTTP2StreamID, HTTP2Priority)
    /// The connection is unusable; a GOAWAY with the code is queued. The text says why, for the log.
    case failed(HTTP2ErrorCode, String)

    /// The stream that it ends with, or belongs to.
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

/// A received head: where its text is until the next `receive`, and what isn't in it.
package struct HTTP2HeadPlace: Sendable, Equatable {
    package enum Scheme: UInt8, Sendable { case http, https, other, none }

    /// Of the session's text.
    let range: Range<UInt32>
    /// The call of `receive` that it belongs to.
    let round: UInt32
    /// Field lines of the text.
    let lines: UInt32
    let ends: Bool
    /// It is longer than was announced: fields are missing in the text.
    let isTooLarge: Bool

    /// Of `:scheme`; `none` for CONNECT and responses.
    package let scheme: Scheme
    /// `:protocol` of an extended CONNECT (RFC 8441 section 4). Its text is the handshake of HTTP/1.1 that it stands for:
    /// a GET with Upgrade, without Sec-WebSocket-Key.
    package let protocolName: String?
    /// Of the Priority field; nil if there is none.
    package let priority: HTTP2Priority?
    /// A field with a name that isn't known for secrets came as one that may not be indexed: whoever passes the head on
    /// in HTTP/2 owes the same (RFC 7541 section 6.2.3).
    package let neverIndexed: Bool
}

/// What is wrong with what a peer sent on a stream (RFC 9113 section 8.1.1).
package enum HTTP2Defect: Error, Sendable, Hashable, CustomStringConvertible {
    /// A field that HTTP/2 forbids, or a malformed one.
    case field
    /// Pseudo-header fields are missing, or the body isn't as long as Content-Length says.
    case message
    /// Host names another authority than `:authority`.
    case hostDiffers
    case trailersTooLong
    /// The stream breaks the rules of framing or flow control.
    case frame(HTTP2ErrorCode)
    /// A head from here can't be sent: it is longer than ``HTTP2Limits/sentHead``, or the stream is in no state for it.
    case unsent

    package var description: String {
        switch self {
        case .field: "a field that is malformed or that HTTP/2 forbids"
        case .message: "pseudo-header fields that are missing, or a body that differs from Content-Length"
        case .hostDiffers: "a Host field that differs from :authority"
        case .trailersTooLong: "a trailer section that is too long"
        case .frame(let code): "a frame that breaks the protocol (\(code))"
        case .unsent: "a head that could not be sent"
        }
    }
}
