package import PinproxyHTTPWire

/// The effect of responses to other methods than GET on stored ones.
package enum Invalidation {
    /// The URLs of stored responses that an unsafe method invalidates (RFC 9111 section 4.4):
    /// the request's, and those in Location and Content-Location of the same origin. Empty after a safe method, and
    /// after an error.
    package static func urls(
        after method: Method, of url: RequestURL, _ response: borrowing ResponseView
    ) -> [RequestURL] {
        guard !method.isSafe, method != .connect, 200..<400 ~= response.head.status else { return [] }
        var urls = [url]
        for id in [FieldName.location, .contentLocation] {
            guard let value = response.head.first(id),
                let other = try? url.resolving(response.bytes.extracting(value.offsets)), other.origin == url.origin,
                !urls.contains(other)
            else { continue }
            urls.append(other)
        }
        return urls
    }

    /// The effect of a response to HEAD on a stored one to GET (RFC 9111 section 4.3.5).
    package enum HeadEffect: Sendable, Equatable {
        /// They are of the same version: its fields replace those of the stored response.
        case updates
        /// They differ: the stored response is stale.
        case outdates
        case nothing
    }

    /// - Parameter complete: bytes of the whole representation, even if a part of it is stored.
    package static func effect(
        ofHead response: borrowing ResponseView, on stored: CachedTraits, complete: UInt64
    ) -> HeadEffect {
        guard response.head.status == 200, stored.status == 200 || stored.status == 206 else { return .nothing }
        let new = CachedTraits(response)
        if let tag = new.etag, tag != stored.etag { return .outdates }
        if let date = new.lastModified, date != stored.lastModified { return .outdates }
        if let length = contentLength(response), length != complete { return .outdates }
        // Without a validator equal bytes can't be assumed: such a response freshens nothing.
        return new.hasValidator ? .updates : .nothing
    }

    /// HEAD has no body, and so no framing, that would say it. The parser has checked that all values are the same.
    private static func contentLength(_ response: borrowing ResponseView) -> UInt64? {
        guard let value = response.head.first(.contentLength) else { return nil }
        let digits = response.bytes.extracting(value.offsets).array.prefix { 0x30...0x39 ~= $0 }
        return UInt64(String(decoding: digits, as: UTF8.self))
    }
}
