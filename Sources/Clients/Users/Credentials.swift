import FoundationEssentials
package import PinproxyHTTPWire

/// A client's name and password. Printed or mirrored it shows neither: it must not get into a log.
package struct Credentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package let user: [UInt8]
    let password: [UInt8]

    /// Nil: there isn't exactly one `Proxy-Authorization`, or it isn't valid `Basic` (RFC 7617).
    package init?(in request: RequestHead, _ bytes: Span<UInt8>) {
        var value: ByteRange?
        for field in request.fields where field.id == .proxyAuthorization {
            guard value == nil else { return nil }
            value = field.value
        }
        guard let value else { return nil }
        let parts = value.text(in: bytes).split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "basic",
            let decoded = Data(base64Encoded: String(parts[1].drop { $0 == " " })),
            let colon = decoded.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        user = Array(decoded[..<colon])
        password = Array(decoded[decoded.index(after: colon)...])
    }

    package var description: String { "credentials" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
