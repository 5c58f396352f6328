import PinproxyHTTPWire
import PinproxyTLS

/// The bytes that a reader has of a response, to find its place in another one.
struct BodyPrefix: ~Copyable {
    private let response: OwnedResponse
    private var length: UInt64 = 0
    private var digest = RunningSHA256()

    init(of response: OwnedResponse) { self.response = response }

    mutating func append(_ bytes: [UInt8]) {
        length += UInt64(bytes.count)
        digest.append(bytes.span)
    }

    consuming func search() -> PrefixSearch {
        PrefixSearch(response: response, length: length, digest: digest.digest())
    }
}

/// Finds the place in a response that begins with the same bytes.
struct PrefixSearch: ~Copyable {
    private let response: OwnedResponse
    private var missing: UInt64
    private let expected: SHA256Digest
    private var digest: RunningSHA256? = RunningSHA256()

    fileprivate init(response: OwnedResponse, length: UInt64, digest: SHA256Digest) {
        self.response = response
        missing = length
        expected = digest
    }

    /// Whether the head may be of the same representation.
    func agrees(with other: OwnedResponse) -> Bool {
        let (mine, others) = (response.view.head, other.view.head)
        guard mine.status == others.status, mine.bodyLength == others.bodyLength else { return false }
        return ["etag", "last-modified", "content-type", "content-encoding", "content-range"].allSatisfy {
            response.values(of: $0) == other.values(of: $0)
        }
    }

    /// Takes the next piece. Returns what follows the place, perhaps nothing; nil: the bytes before it differ.
    mutating func rest(of bytes: [UInt8]) -> [UInt8]? {
        guard digest != nil else { return bytes }
        let count = Int(min(missing, UInt64(bytes.count)))
        digest?.append(bytes.span.extracting(first: count))
        missing -= UInt64(count)
        guard missing == 0 else { return [] }
        guard digest.take()?.digest() == expected else { return nil }
        return count == 0 ? bytes : Array(bytes[count...])
    }

    var isOver: Bool { digest == nil }
}
