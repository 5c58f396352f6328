internal import FoundationEssentials
internal import PinproxyAddresses
internal import PinproxyHTTPWire

/// A service that the proxy itself asks, by an http:// or https:// URL: a collector of reports (`report_uri`), of
/// metrics and logs (`telemetry.otlp`), or the server of a policy bundle.
package struct ServiceURL: Sendable, Hashable, CustomStringConvertible {
    package let isSecure: Bool
    /// A name in lower case, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// Path and query, as a request to the host has them; begins with a slash.
    package let target: String
    /// For display: without its query, which may hold a token.
    package let description: String

    /// The whole URL.
    package var address: String {
        "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)\(target)"
    }

    /// It is an address of the loopback, or its name.
    var isOnThisMachine: Bool { host == "localhost" || IPAddress(host)?.isLoopback == true }

    /// - Parameter path: begins with a slash. The URL has no query.
    func appending(_ path: String) -> ServiceURL {
        func appended(_ text: String) -> String { (text.hasSuffix("/") ? String(text.dropLast()) : text) + path }
        return ServiceURL(
            isSecure: isSecure, host: host, port: port, target: appended(target), description: appended(description))
    }

    /// - Parameters:
    ///   - example: a valid URL.
    ///   - purpose: the start of the message about a wrong scheme, e.g. `reports can't be sent to`.
    static func parse(_ text: String, example: String, purpose: String) -> Result<ServiceURL, Reason> {
        let example = "write a URL such as \(example)"
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else {
            return .failure(Reason("\"\(text)\" is not a valid URL; \(example)"))
        }
        guard scheme == "https" || scheme == "http" else {
            return .failure(Reason("\(purpose) \(scheme):; \(example)"))
        }
        guard let host = parts.encodedHost?.lowercased(), !host.isEmpty else {
            return .failure(Reason("\"\(text)\" names no host; \(example)"))
        }
        guard parts.user == nil, parts.password == nil else {
            return .failure(Reason("credentials in the URL are not sent; leave them out"))
        }
        guard parts.fragment == nil else { return .failure(Reason("a fragment (#…) is never sent; leave it out")) }
        guard let port = UInt16(exactly: parts.port ?? (scheme == "https" ? 443 : 80)), port > 0 else {
            return .failure(Reason("\(parts.port ?? 0) is not a port; \(example)"))
        }
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        return .success(
            ServiceURL(
                isSecure: scheme == "https", host: host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host,
                port: port, target: path + (parts.percentEncodedQuery.map { "?\($0)" } ?? ""),
                description: ShownText(text).description))
    }
}

extension Form where Value == ServiceURL {
    static var collector: Form {
        Form { ServiceURL.parse($0, example: "https://reports.example.com/pins", purpose: "reports can't be sent to") }
    }

    /// Bundles are signed, but an eavesdropper would learn the policy.
    static var bundle: Form {
        Form { text in
            ServiceURL.parse(
                text, example: "https://policy.example.com/policy.bundle", purpose: "a bundle can't be fetched by"
            ).flatMap { url in
                url.isSecure ? .success(url) : .failure(Reason("a bundle is fetched by https://, not http://"))
            }
        }
    }
}
