import PinproxyAddresses

/// The hosts that an entry of the pin file covers.
///
/// ```yaml
/// - match: api.example.com        # this name and no other
/// - match: "*.example.com"        # exactly one label more
/// - match: "**.example.com"       # any number of labels more, none included
/// - match: 192.0.2.7              # an address; IPv6 as 2001:db8::1 or [2001:db8::1]
/// - match: api.example.com:8443   # any of them on one port only; "[2001:db8::1]:8443"
/// ```
///
/// | pattern           | example.com | api.example.com | eu.api.example.com | badexample.com |
/// |-------------------|-------------|-----------------|--------------------|----------------|
/// | `example.com`     | yes         | no              | no                 | no             |
/// | `*.example.com`   | no          | yes             | no                 | no             |
/// | `**.example.com`  | yes         | yes             | yes                | no             |
///
/// **Which of several wins.** The most specific: an exact pattern before `*.`, that before `**.`,
/// and among `**.` the one with the most labels. Between two patterns equal in that, the one with
/// the port before the one without. Entries are never merged. Of these five
///
/// ```yaml
/// - match: "**.example.com"
/// - match: "**.example.com:8443"
/// - match: "**.eu.example.com"
/// - match: "*.example.com"
/// - match: api.example.com
/// ```
///
/// | host                     | decided by            | because                                     |
/// |--------------------------|-----------------------|---------------------------------------------|
/// | `API.example.com.:8443`  | `api.example.com`     | it is exact; the port only breaks ties      |
/// | `www.example.com:8443`   | `*.example.com`       | `*.` goes before `**.`, with a port or not  |
/// | `eu.example.com:443`     | `*.example.com`       | the same, though the other has more labels  |
/// | `a.eu.example.com:8443`  | `**.eu.example.com`   | of all `**.` it has the most labels         |
/// | `a.us.example.com:8443`  | `**.example.com:8443` | the one with the port                       |
/// | `example.com:443`        | `**.example.com`      | the other is for port 8443                  |
/// | `example.org:443`        | none                  | the `defaults` of the pin file decide       |
///
/// **Names of all languages.** `bücher.example`, `BÜCHER.example.` and `xn--bcher-kva.example` are one name, shown in
/// the last form (IDNA 2008); two entries for it are an error.
///
/// **Addresses** have one spelling here: `2001:DB8:0::1` is `2001:db8::1`, and IPv4 is four decimal numbers. Equivalent
/// addresses are one: `::ffff:192.0.2.7` is `192.0.2.7`, `0.0.0.0` is `127.0.0.1`, and an entry for `192.0.2.7` covers
/// `64:ff9b::192.0.2.7` (NAT64) unless that has its own. A name never matches by its addresses.
///
/// **What is refused**, with the reason: a `*` that isn't a whole label on the left (`api.*.com`, `a*.example.com`,
/// `*.*.example.com`), `*` alone (the `defaults` cover all other hosts), and a wildcard over an address. A wildcard
/// over a public suffix (`**.co.uk`, `*.github.io`) gets a warning.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    /// The labels in front of ``name`` in matching hosts.
    package enum Scope: UInt8, Sendable, Hashable {
        /// No label.
        case exact = 0
        /// `*.`: exactly one.
        case oneLabel = 1
        /// `**.`: any number, none included.
        case subtree = 2
    }

    package let scope: Scope
    /// Lower case, no trailing dot, no wildcard; an address in its canonical form without brackets.
    package let name: String
    /// `nil` for every port.
    package let port: UInt16?
    /// True when ``name`` is an IP address; ``scope`` is then exact.
    package let isAddress: Bool

    package init(_ scope: Scope, canonical name: String, port: UInt16?) {
        self.scope = scope
        self.name = name
        self.port = port
        isAddress = scope == .exact && IPAddress.isMeant(by: name.utf8.span)
    }

    /// Reads a pattern of the pin file; the error says what to write instead.
    public init(_ text: String) throws(HostPatternError) {
        let (host, port) = try Self.splitPort(text)
        self.port = port
        if host.isEmpty { throw HostPatternError(.empty, text) }
        if IPAddress.isMeant(by: host.utf8.span), let address = IPAddress(host) {
            (scope, name, isAddress) = (.exact, address.canonical.description, true)
            return
        }
        isAddress = false
        if host.hasPrefix("**.") {
            scope = .subtree
            name = try Self.canonicalName(host.dropFirst(3), of: text)
        } else if host.hasPrefix("*.") {
            scope = .oneLabel
            name = try Self.canonicalName(host.dropFirst(2), of: text)
        } else {
            scope = .exact
            name = try Self.canonicalName(host, of: text)
        }
    }

    /// The pattern in its one spelling, with its port; parsing it gives the same pattern.
    public var description: String { text(with: name) }

    /// The pattern for people, with U-labels: `*.xn--bcher-kva.example (*.bücher.example)`.
    package var inBothForms: String {
        let readable = InternationalName.toUnicode(name)
        return readable == name ? description : "\(description) (\(text(with: readable)))"
    }

    private func text(with name: String) -> String {
        let host: String
        switch scope {
        case .exact: host = isAddress && name.contains(":") && port != nil ? "[\(name)]" : name
        case .oneLabel: host = "*." + name
        case .subtree: host = "**." + name
        }
        return port.map { "\(host):\($0)" } ?? host
    }

    package var labelCount: Int {
        isAddress ? 1 : name.utf8.reduce(1) { $1 == UInt8(ascii: ".") ? $0 + 1 : $0 }
    }

    /// Whether this pattern alone matches the host.
    package func matches(host: String, port: UInt16) -> Bool {
        guard self.port == nil || self.port == port else { return false }
        var host = host.lowercased()
        if host.hasSuffix(".") { host.removeLast() }
        if let address = IPAddress(host)?.canonical {
            return isAddress && (address.description == name || address.translated?.description == name)
        }
        guard !isAddress else { return false }
        switch scope {
        case .exact: return host == name
        case .oneLabel:
            guard let dot = host.firstIndex(of: "."), dot != host.startIndex else { return false }
            return host[host.index(after: dot)...] == name
        case .subtree: return host == name || host.hasSuffix("." + name)
        }
    }

    /// Whether `self` wins over `other` for a host that both match.
    package func isMoreSpecific(than other: HostPattern) -> Bool {
        if scope != other.scope { return scope.rawValue < other.scope.rawValue }
        if scope == .subtree, labelCount != other.labelCount { return labelCount > other.labelCount }
        return port != nil && other.port == nil
    }
}

extension HostPattern {
    /// Splits `host:port`, `[v6]:port`, `[v6]` and bare IPv6 (more than one colon).
    private static func splitPort(_ text: String) throws(HostPatternError) -> (Substring, UInt16?) {
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { throw HostPatternError(.notAName, text) }
            let host = text[text.index(after: text.startIndex)..<close]
            guard IPAddress(host)?.isIPv6 == true else { throw HostPatternError(.notAnAddress, text) }
            let rest = text[text.index(after: close)...]
            if rest.isEmpty { return (host, nil) }
            guard rest.first == ":" else { throw HostPatternError(.notAName, text) }
            return (host, try parsePort(rest.dropFirst(), of: text))
        }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return (text[...], nil) }
        if text[text.index(after: colon)...].contains(":") {
            guard IPAddress(text) != nil else {
                throw HostPatternError(text.contains("://") ? .isURL : .notAnAddress, text)
            }
            return (text[...], nil)
        }
        if text[colon...].hasPrefix("://") { throw HostPatternError(.isURL, text) }
        return (text[..<colon], try parsePort(text[text.index(after: colon)...], of: text))
    }

    private static func parsePort(_ digits: Substring, of text: String) throws(HostPatternError) -> UInt16 {
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }),
            let port = UInt16(digits), port > 0
        else { throw HostPatternError(.port, text) }
        return port
    }

    /// The name in lower case and A-labels, without its trailing dot, by RFC 1034 section 3.5 with the underscore.
    private static func canonicalName(
        _ name: Substring, of text: String
    ) throws(HostPatternError) -> String {
        var name = try ascii(name, of: text)
        if name.hasSuffix(".") { name.removeLast() }
        if name.isEmpty { throw HostPatternError(text.contains("*") ? .everything : .empty, text) }
        if name == "*" || name == "**" { throw HostPatternError(.everything, text) }
        if name.utf8.count > 253 { throw HostPatternError(.tooLong, text) }
        try checkLabels(name.utf8.span, of: text)
        if IPAddress.isMeant(by: name.utf8.span) { throw HostPatternError(.notAnAddress, text) }
        return name
    }

    private static func checkLabels(_ name: Span<UInt8>, of text: String) throws(HostPatternError) {
        var start = 0
        for end in 0...name.count {
            let byte = end < name.count ? name[end] : UInt8(ascii: ".")
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"):
                continue
            case UInt8(ascii: "."):
                if start == end { throw HostPatternError(.emptyLabel, text) }
                if end - start > 63 { throw HostPatternError(.labelTooLong, text) }
                if name[start] == UInt8(ascii: "-") || name[end - 1] == UInt8(ascii: "-") {
                    throw HostPatternError(.hyphen, text)
                }
                start = end + 1
            case UInt8(ascii: "*"): throw HostPatternError(.wildcardPlace, text)
            case UInt8(ascii: "/"): throw HostPatternError(.isURL, text)
            default: throw HostPatternError(.notAName, text)
            }
        }
    }

    private static func ascii(_ name: Substring, of text: String) throws(HostPatternError) -> String {
        do {
            return try InternationalName.toASCII(String(name))
        } catch {
            throw HostPatternError(.international(error), text)
        }
    }
}

/// Why a text is not a valid host pattern, for its author.
public struct HostPatternError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Reason: Sendable, Hashable {
        case empty, isURL, port, notAnAddress, notAName, emptyLabel, hyphen
        case international(InternationalNameError)
        case labelTooLong, tooLong, wildcardPlace, everything
    }

    package let reason: Reason
    /// The pattern as written.
    public let pattern: String

    init(_ reason: Reason, _ pattern: String) {
        self.reason = reason
        self.pattern = pattern
    }

    /// The pattern, what is wrong with it, and what to write instead.
    public var description: String {
        switch reason {
        case .empty: "a host pattern is missing its name"
        case .isURL: "“\(pattern)” is a URL or a path; write the host alone, as in api.example.com"
        case .port: "“\(pattern)” has no valid port after the colon (1 to 65535)"
        case .notAnAddress: "“\(pattern)” is not a complete IP address (and no name ends in a number)"
        case .notAName: "“\(pattern)” contains a character that host names can't have"
        case .international(let error): "“\(pattern)” can't be a host name: the label \(error)"
        case .emptyLabel: "“\(pattern)” has an empty label (two dots in a row, or a dot in front)"
        case .hyphen: "“\(pattern)” has a label that begins or ends with a hyphen"
        case .labelTooLong: "“\(pattern)” has a label of more than 63 bytes"
        case .tooLong: "“\(pattern)” is longer than the 253 bytes of a host name"
        case .wildcardPlace:
            "“\(pattern)” has a wildcard where none is possible; write “*.name” for exactly one "
                + "label more, “**.name” for any number"
        case .everything:
            "“\(pattern)” would be every host; use the defaults of the pin file for that, or name "
                + "the domain, as in *.example.com"
        }
    }
}
