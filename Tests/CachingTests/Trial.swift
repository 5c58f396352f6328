import PinproxyHTTPWire

@testable import PinproxyCaching

/// A request and a response as text; `now` counts from the response's arrival at 1,000,000.
enum Trial {
    static let arrival: Int64 = 1_000_000
    /// `arrival` as a date.
    static let date = "Mon, 12 Jan 1970 13:46:40 GMT"

    static func request(_ fields: String..., method: String = "GET") throws -> CacheRequest {
        let owned = try OwnedRequest(Array(head("\(method) / HTTP/1.1", ["Host: a.test"] + fields).utf8))
        return CacheRequest(owned.view)
    }

    static func response(_ fields: [String], status: Int = 200) throws -> OwnedResponse {
        try OwnedResponse(Array(head("HTTP/1.1 \(status) X", fields).utf8))
    }

    static func traits(_ fields: String..., status: Int = 200) throws -> CachedTraits {
        CachedTraits(try response(fields, status: status).view)
    }

    static func choice(_ fields: [String], isShared: Bool = false, delay: Int64 = 0) throws -> CacheChoice {
        let traits = CachedTraits(try response(fields).view)
        let times = ResponseTimes(requested: arrival - delay, received: arrival)
        return CacheChoice(traits, Freshness(traits, times, isShared: isShared), isShared: isShared)
    }

    private static func head(_ start: String, _ fields: [String]) -> String {
        ([start] + fields).map { $0 + "\r\n" }.joined() + "\r\n"
    }
}

extension OwnedResponse {
    var text: String { String(decoding: message, as: UTF8.self) }
}
