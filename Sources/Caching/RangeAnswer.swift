import PinproxyHTTPWire

/// The answer to a request's Range from a usable stored response (RFC 9110 section 14.2, RFC 9111 section
/// 3.3). ``ClientCondition/isMet(_:by:)`` comes first.
package enum RangeAnswer: Sendable, Equatable {
    /// All that is stored, with its own status. Several parts get the whole too, as a server may answer.
    case whole
    /// 206.
    case part(ServedPart)
    /// 416.
    case unsatisfied(of: UInt64)
    /// Not all of it is stored.
    case ask

    /// - Parameter bodyLength: bytes of the stored body.
    package init(_ request: CacheRequest, of response: CachedTraits, bodyLength: UInt64) {
        self = Self.answer(request, response, bodyLength)
    }

    private static func answer(
        _ request: CacheRequest, _ response: CachedTraits, _ bodyLength: UInt64
    ) -> RangeAnswer {
        let stored: Range<UInt64>
        let complete: UInt64
        switch response.status {
        case 200: (stored, complete) = (0..<bodyLength, bodyLength)
        case 206:
            guard let part = StoredPart(response, bodyLength: bodyLength) else { return .ask }
            (stored, complete) = (part.bytes, part.complete)
        default: return .whole
        }
        let all: RangeAnswer = response.status == 206 ? .ask : .whole
        // Range is defined for GET alone.
        guard request.method == .get, ClientCondition.allowsPart(request, of: response) else { return all }
        let wanted: Range<UInt64>
        switch request.part {
        case .whole, .other: return all
        case .bytes(let first, let last):
            guard first < complete else { return .unsatisfied(of: complete) }
            wanted = first..<min(last ?? .max, complete - 1) + 1
        case .end(let length):
            guard length > 0 else { return .unsatisfied(of: complete) }
            // No Content-Range can say "the last bytes of nothing".
            guard complete > 0 else { return all }
            wanted = complete - min(length, complete)..<complete
        }
        guard stored.lowerBound <= wanted.lowerBound, wanted.upperBound <= stored.upperBound else { return .ask }
        return .part(ServedPart(bytes: wanted, complete: complete, offset: wanted.lowerBound - stored.lowerBound))
    }
}

/// Bytes of a stored representation that are served as 206; ``OwnedResponse/part(_:of:)`` makes the head.
package struct ServedPart: Sendable, Equatable {
    /// Never empty.
    package let bytes: Range<UInt64>
    package let complete: UInt64
    /// Their offset in the stored body.
    package let offset: UInt64
}
