import PinproxyHTTPWire

extension RequestView {
    /// Whether the response may be stored for all users.
    ///
    /// Origins heed fields that Vary doesn't name. So a request with any unusual field isn't for everybody: the field
    /// could identify its user, or let one user choose what the others get.
    var isForEverybody: Bool {
        for field in head.fields {
            switch field.id {
            case .accept, .acceptEncoding, .acceptLanguage, .userAgent, .host, .via, .te,
                .cacheControl, .pragma, .ifNoneMatch, .ifModifiedSince, .ifRange, .range,
                .connection, .keepAlive, .proxyConnection, .proxyAuthorization, .http2Settings:
                continue
            case .other where Self.harmless.contains(field.name.text(in: bytes).lowercased()): continue
            default: return false
            }
        }
        return true
    }

    /// Fields that describe how a browser uses a response.
    private static let harmless: Set = [
        "dnt", "priority", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "sec-fetch-dest", "sec-fetch-mode",
        "sec-fetch-site", "sec-fetch-user", "sec-gpc", "upgrade-insecure-requests",
    ]
}
