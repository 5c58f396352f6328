import PinproxyHTTPWire

/// Why a response isn't stored (RFC 9111 section 3). Shown by `cache show` and in Cache-Status.
package enum StorageRefusal: String, Sendable, CaseIterable {
    case method, status, requestNoStore, noStore, isPrivate, credentials, cookie, vary, unspecified, part, tooLarge
}

package enum Storability {
    /// Statuses that a response with must-understand may have (sections 3 and 5.2.2.3).
    private static let understood: Set = [200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501]
    /// 304 and 416 are about another response; the others may never be stored (RFC 6585).
    private static let never: Set = [304, 416, 428, 429, 431, 511]

    /// Nil: the response may be stored.
    /// - Parameter length: of its body, if it is known.
    package static func refusal(
        of response: CachedTraits, to request: CacheRequest, isShared: Bool, length: UInt64?, mostLength: UInt64
    ) -> StorageRefusal? {
        let says = response.directives
        if request.method != .get || request.hasContent { return .method }
        if response.status < 200 || never.contains(response.status) { return .status }
        if request.directives.flags.contains(.noStore) { return .requestNoStore }
        if says.flags.contains(.mustUnderstand) {
            if !understood.contains(response.status) { return .status }
        } else if says.flags.contains(.noStore) {
            return .noStore
        }
        if isShared, says.flags.contains(.isPrivate) { return .isPrivate }
        if request.hasCredentials, !response.allowsCredentials { return .credentials }
        if isShared, response.setsCookie { return .cookie }
        if response.vary == .anything { return .vary }
        if response.status == 206 {
            guard case .bytes(_, .some)? = response.contentRange, response.strongTag else { return .part }
        }
        guard
            response.expiresExplicitly(isShared: isShared) || response.isCacheableByDefault
                || says.flags.contains(.isPublic)
                || !isShared && says.flags.contains(.isPrivate)
        else { return .unspecified }
        if response.isUseless(isShared: isShared) { return .unspecified }
        if let length, length > mostLength { return .tooLarge }
        return nil
    }
}

extension CachedTraits {
    /// RFC 9111 section 3.5. It is held against a private cache too: credentials may change without the user.
    package var allowsCredentials: Bool {
        !directives.flags.isDisjoint(with: [.isPublic, .mustRevalidate]) || directives.sharedMaxAge != nil
    }

    var strongTag: Bool { etag.map { !$0.isWeak } ?? false }

    /// It could never be served: nothing allows it without the origin, and there is nothing to ask the origin with.
    fileprivate func isUseless(isShared: Bool) -> Bool {
        if hasValidator { return false }
        if directives.flags.contains(.noCache) { return true }
        let life = Freshness(self, ResponseTimes(requested: date ?? 0, received: date ?? 0), isShared: isShared)
            .lifetime
        return life <= age && directives.staleIfError == nil && directives.staleWhileRevalidate == nil
    }
}
