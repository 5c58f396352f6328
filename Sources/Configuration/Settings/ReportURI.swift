internal import FoundationEssentials
internal import HTTPWire

/// Where reports of pins that don't match are sent (`report_uri`): an http:// or https:// URL.
package struct ReportURI: Sendable, Hashable, CustomStringConvertible {
    package let isSecure: Bool
    /// A name in lower case, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// Path and query, as a request to the host has them; begins with a slash.
    package let target: String
    /// For people: without its query, which may hold the collector's token.
    package let description: String

    static func parse(_ text: String) -> Result<ReportURI, Reason> {
        let example = "write a URL such as https://reports.example.com/pins"
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else {
            return .failure(Reason("\"\(text)\" is not a valid URL; \(example)"))
        }
        guard scheme == "https" || scheme == "http" else {
            return .failure(Reason("reports can't be sent to \(scheme):; \(example)"))
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
            ReportURI(
                isSecure: scheme == "https", host: host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host,
                port: port, target: path + (parts.percentEncodedQuery.map { "?\($0)" } ?? ""),
                description: ShownText(text).description))
    }
}
