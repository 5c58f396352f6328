package import PinproxyCaching
import PinproxyDiskStore
import PinproxyHTTPWire

/// A stored response's details, in human-readable form.
extension StoredResponse {
    package var isForEverybody: Bool { isShared }
    /// Bytes.
    package var bodyLength: Int { Int(clamping: record?.length ?? body.count) }

    /// The bytes of a part, and the length of the whole; nil: it is whole.
    package var part: (bytes: Range<UInt64>, complete: UInt64)? {
        guard let part = traits.status == 206 ? StoredPart(traits, bodyLength: UInt64(bodyLength)) : nil else {
            return nil
        }
        return (part.bytes, part.complete)
    }

    /// The fields that Vary names, with the values that the request had. Values may be secrets. Empty as well on disk,
    /// where only their digest is.
    package var chosenBy: [(name: String, value: [UInt8]?)] {
        record == nil ? zip(traits.vary.list, selected.values).map { ($0, $1) } : []
    }

    /// Whether it is found under one of these policies.
    package func isStored(under policies: Set<CachePolicy>) -> Bool { policies.contains(policy) }

    /// The answer to a request that selects it.
    /// - Parameter now: Unix seconds.
    package func answer(to request: CacheRequest, at now: Int64) -> CacheAnswer {
        let answer = choice.answer(to: request, at: now)
        switch answer {
        case .fresh, .stale: return ServedResponse(self, to: request) == nil ? .ask(.partial) : answer
        default: return answer
        }
    }
}
