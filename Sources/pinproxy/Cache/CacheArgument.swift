internal import ArgumentParser
internal import PinproxyClients
internal import PinproxyHTTPWire
internal import PinproxySession

/// Hosts and URLs on the command line of `pinproxy cache`. No message shows a query: it may be secret.
enum CacheArgument {
    static func url(_ text: String) throws(ValidationError) -> RequestURL {
        guard text.contains("://") else {
            throw ValidationError("\(shown(text)) has no scheme: write https://… in front")
        }
        if let fragment = text.firstIndex(of: "#") {
            throw ValidationError(
                "\(shown(String(text[..<fragment]))) has a fragment (#…), which is never sent: leave it out")
        }
        do throws(LocationDefect) {
            let url = try RequestURL(text)
            return RequestURL(isSecure: url.isSecure, authority: url.authority.canonical, target: url.target)
        } catch {
            throw ValidationError(explanation(of: error, in: shown(text)))
        }
    }

    private static func explanation(of defect: LocationDefect, in text: String) -> String {
        switch defect {
        case .scheme(let scheme): "\(text) has the scheme \"\(scheme)\"; responses are stored of http and https"
        case .userInformation: "\(text) has user information (\"@\"), which isn't part of the stored key; omit it"
        default: defect.explanation(of: text)
        }
    }

    /// The query of `/cache/purge`.
    static func query(_ text: String) throws(ValidationError) -> String {
        if text.contains("://") { return "url=\(encoded("\(try url(text))"))" }
        if text.contains(where: { "/?#".contains($0) }) {
            throw ValidationError("\(shown(text)) is neither a host nor a URL: write https://… in front of a URL")
        }
        if text.contains("*") {
            throw ValidationError("\(shown(text)) is a pattern: name one host, as example.com, or --all")
        }
        let hasPort = text.contains(":") && text.last.map { $0.isNumber } == true && !isBareIPv6(text)
        do throws(Rehearsal.HostError) {
            let host = try Rehearsal.Host(text)
            return "host=\(encoded(hasPort ? host.description : withoutPort(host)))"
        } catch {
            throw ValidationError("\(error)")
        }
    }

    static func target(ofResponsesFor url: RequestURL) -> String { "/cache/responses?url=\(encoded("\(url)"))" }

    private static func isBareIPv6(_ text: String) -> Bool {
        !text.hasPrefix("[") && text.split(separator: ":", omittingEmptySubsequences: false).count > 2
    }

    private static func withoutPort(_ host: Rehearsal.Host) -> String {
        host.authority.isIPv6 ? "[\(host.name)]" : host.name
    }

    private static func shown(_ text: String) -> String { "\"\(ShownText(text))\"" }

    /// All but unreserved characters (RFC 3986 section 2.3).
    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
                String(Character(Unicode.Scalar(byte)))
            default: "%" + byte.hexadecimal
            }
        }.joined()
    }
}
