package import PinproxyHTTP2

/// An action of an HTTP/2 peer that concerns the connection as a whole.
package enum HTTP2Notice: Sendable, Equatable {
    /// It sent too many frames of a kind: the connection ends.
    case flood(HTTP2Flood)
    /// It broke the protocol, with a human-readable reason: the connection ends.
    case broke(HTTP2ErrorCode, String)
    /// It takes no new streams (GOAWAY). `debug` is the peer's text.
    case goAway(HTTP2ErrorCode, debug: String)
}

extension HTTP2ConnectionOwner {
    /// Ignores notices by default.
    package func noticed(_ notice: HTTP2Notice, on connection: HTTP2Connection) {}
}

extension HTTP2Notice {
    /// The notice of a failed session; nil: the peer isn't at fault.
    init?(_ code: HTTP2ErrorCode, _ reason: String, _ flood: HTTP2Flood?) {
        if code == .internalError { return nil }
        self = flood.map(HTTP2Notice.flood) ?? .broke(code, reason)
    }
}
