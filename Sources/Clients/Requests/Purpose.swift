import PinproxyHTTPWire

/// The purpose of a client's request.
package enum Purpose {
    /// `CONNECT`, or an `https://` URL: TLS to the origin is the proxy's.
    case secure
    /// An `http://` URL.
    case plain

    var scheme: AbsoluteTarget.Scheme { self == .plain ? .http : .https }
    /// The port that URLs and Host leave out.
    var defaultPort: UInt16 { self == .plain ? 80 : 443 }
}
