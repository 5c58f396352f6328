/// RFC 9111 section 3: storing responses in caches.
extension ReferenceCache {
    /// RFC 9110 section 15.3.7.3 and RFC 9111 section 3.4.
    func combine(_ stored: Entry, with new: Entry) -> Entry? {
        guard stored.response.hasStrongTag, stored.response.tag == new.response.tag,
            stored.response.complete == new.response.complete, [200, 206].contains(stored.response.status),
            stored.bytes.lowerBound <= new.bytes.upperBound, new.bytes.lowerBound <= stored.bytes.upperBound
        else { return nil }
        var entry = new
        let type = stored.response.type
        let old = stored.response
        entry.response.type = type
        entry.response.control = new.response.control ?? old.control
        entry.response.isPragma = new.response.isPragma || old.isPragma
        entry.response.expires = new.response.expires.isEmpty ? old.expires : new.response.expires
        entry.response.lastModified = new.response.lastModified ?? old.lastModified
        entry.response.vary = new.response.vary ?? old.vary
        entry.bytes =
            min(stored.bytes.lowerBound, new.bytes.lowerBound)..<max(stored.bytes.upperBound, new.bytes.upperBound)
        let isWhole = entry.bytes == 0..<entry.response.complete
        entry.response.status = isWhole ? 200 : 206
        return entry
    }

    static func selecting(_ response: MeantResponse, _ request: MeantRequest) -> [String: String?] {
        guard case .names(let names)? = response.vary else { return [:] }
        return Dictionary(uniqueKeysWithValues: names.map { ($0, value(of: $0, in: request)) })
    }

    /// Section 3.5. Here: for private caches too.
    static func allowsAuthorization(_ response: MeantResponse) -> Bool {
        let says = response.effectiveControl
        return says.has("must-revalidate") || says.has("public") || says.has("s-maxage")
    }

    func mayStore(_ response: MeantResponse, to request: MeantRequest) -> Bool {
        let (asks, says) = (request.effectiveControl, response.effectiveControl)
        guard request.method == "GET", response.status >= 200 else { return false }
        // RFC 6585: never stored. 304 and 416 are about another response.
        if [304, 416, 428, 429, 431, 511].contains(response.status) { return false }
        let understood = [200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501]
        if says.has("must-understand") {
            guard understood.contains(response.status) else { return false }
        } else if says.has("no-store") {
            return false
        }
        if asks.has("no-store") { return false }
        if isShared, says.has("private") || response.setsCookie { return false }
        if request.hasAuthorization, !Self.allowsAuthorization(response) { return false }
        if response.vary == .anything { return false }
        if response.status == 206, response.part == nil || !response.hasStrongTag { return false }
        let isCacheableByDefault = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(
            response.status)
        guard
            says.has("public") || !isShared && says.has("private") || !response.expires.isEmpty
                || says.has("max-age") || isShared && says.has("s-maxage") || isCacheableByDefault
        else { return false }
        // Here: a response that could never be used isn't kept.
        if response.hasValidator { return true }
        if says.has("no-cache") { return false }
        let atOrigin = response.date ?? 0
        let freshness = ReferenceFreshness(
            response: response, isShared: isShared, requestTime: atOrigin, responseTime: atOrigin)
        return freshness.freshnessLifetime > Int128(response.age ?? 0) || says.has("stale-if-error")
            || says.has("stale-while-revalidate")
    }
}
