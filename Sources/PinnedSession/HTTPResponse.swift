import PinproxyHTTPWire
import PinproxySession

/// A response, without its body: NSHTTPURLResponse, with what the security policy found.
public struct HTTPResponse: Sendable {
    /// One field line of the response.
    public struct Field: Sendable, Hashable {
        /// The name as the server wrote it.
        public let name: String
        /// The value without surrounding white space.
        public let value: String
    }

    /// The status code, usually 200 to 599. Only ``SessionManager/value(for:by:)`` validates it.
    public let status: Int
    /// The URL of the response, after followed redirects.
    public let url: String
    /// The header fields, in the server's order.
    public let fields: [Field]
    /// The security policy's result for the connection.
    public let pinning: PinningResult
    /// True for a stored response that the server wasn't asked about, or that it confirmed.
    public internal(set) var isFromCache = false
    /// The body's content codings were undone. Content-Encoding and Content-Length still describe what was sent.
    public internal(set) var isDecoded = false
    /// The task's metrics; empty until it has completed.
    public internal(set) var metrics = TaskMetrics()

    /// The field's values, joined by `, `; its name in any case. Nil: there is no such field.
    public subscript(name: String) -> String? {
        let wanted = name.lowercased()
        let values = fields.filter { $0.name.lowercased() == wanted }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

extension HTTPResponse.Field: CustomStringConvertible {
    /// The line, without the value of Set-Cookie.
    public var description: String { "\(name): \(name.lowercased().hasPrefix("set-cookie") ? "•••" : value)" }
}

extension HTTPResponse: CustomStringConvertible {
    /// The status and the URL, without query and fields, which may be secret.
    public var description: String { "\(status) \(ShownText(url))" }
}

/// The security policy's result for an accepted connection.
public enum PinningResult: Sendable, Hashable {
    /// Plain HTTP: nothing was verified.
    case insecure
    /// A stored response: the same policy accepted the connection that it came over.
    case stored
    /// The chain and the name were verified; the host has no pins.
    case unpinned
    /// This pin matched, as its owner wrote it.
    case matched(pin: String)
    /// No pin matched under `enforcement: report`.
    case reported(PinMismatch)
}

/// A host's pins, and the chain that none of them matches.
public struct PinMismatch: Sendable, Hashable, CustomStringConvertible {
    /// The host that was asked.
    public let host: String
    /// One line that says what failed.
    public let title: String
    /// The verified chain as pins, leaf first; empty if no chain verified. They may be an attacker's: compare them with
    /// a second source before you configure any.
    public let presentedPins: [String]
    /// The host's pins.
    public let configuredPins: [String]

    /// The title and the pins, each on a line.
    public var description: String {
        var lines = [title]
        lines += presentedPins.map { "  presented: \($0)" }
        lines += configuredPins.map { "  configured: \($0)" }
        return lines.joined(separator: "\n")
    }
}
