import HTTPWire
import Session

/// A response, without its body: NSHTTPURLResponse, with what the security policy found.
public struct HTTPResponse: Sendable {
    /// One field line of the response.
    public struct Field: Sendable, Hashable {
        /// As the server wrote it.
        public let name: String
        /// Without the white space around it.
        public let value: String
    }

    /// 200 to 599, mostly. The session judges none: see ``SessionManager/value(for:by:)`` for what does.
    public let status: Int
    /// Where it comes from, after the redirects that were followed.
    public let url: String
    /// In the order of the server.
    public let fields: [Field]
    /// What the security policy found of the connection that it came over.
    public let pinning: PinningResult
    /// How long it took, and over which connections; empty until the task is over.
    public internal(set) var metrics = TaskMetrics()

    /// The values of a field, whatever the case of its name, joined by `, `; nil: there is no such field.
    public subscript(name: String) -> String? {
        let wanted = name.lowercased()
        let values = fields.filter { $0.name.lowercased() == wanted }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

extension HTTPResponse: CustomStringConvertible {
    /// Status and URL, without the query and the fields, which may be secret.
    public var description: String { "\(status) \(ShownText(url))" }
}

/// What the security policy of a host found of a connection that it let through.
public enum PinningResult: Sendable, Hashable {
    /// HTTP in the clear: nothing was verified.
    case insecure
    /// The chain and the name are right; the host has no pins.
    case unpinned
    /// This pin matched, as its owner wrote it.
    case matched(pin: String)
    /// None matched, and `enforcement` is `report`.
    case reported(PinMismatch)
}

/// A host's pins, and the chain that none of them matches.
public struct PinMismatch: Sendable, Hashable, CustomStringConvertible {
    /// The host that was asked.
    public let host: String
    /// One line that says what failed.
    public let title: String
    /// The keys (or certificates) of the verified chain, leaf first, as pins; empty if no chain verified. They may be
    /// an attacker's: compare them with a second source before any of them is configured.
    public let presentedPins: [String]
    /// The host's pins.
    public let configuredPins: [String]

    /// Title and pins, each on a line.
    public var description: String {
        var lines = [title]
        lines += presentedPins.map { "  presented: \($0)" }
        lines += configuredPins.map { "  configured: \($0)" }
        return lines.joined(separator: "\n")
    }
}
