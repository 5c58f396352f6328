import PinproxyEventLoop
import PinproxyHTTPWire

/// A download that can be resumed after an interruption: its request, validator and progress.
final class Resumption {
    /// Bytes that make a connection worth another without a pause.
    static let progress: UInt64 = 64 << 10

    enum Answer {
        case rest
        /// The human-readable reason. `wait`: nanoseconds before the next try.
        case notNow(String, wait: UInt64)
        case another(String)
    }

    /// The original request.
    private let request: OwnedRequest
    /// The validator for If-Range.
    private let validator: [UInt8]
    let length: UInt64
    /// Bytes passed on before the current connection.
    private(set) var passed: UInt64 = 0
    /// Successive tries without progress.
    private var tries = 0
    /// Nanoseconds that the origin asked to wait.
    private var wanted: UInt64 = 0
    private let pauses: ResumptionPauses
    let pause: Deadline

    /// Nil if the remainder couldn't be requested.
    init?(
        _ response: borrowing ResponseView, to request: borrowing RequestView, pauses: ResumptionPauses,
        on loop: EventLoop
    ) {
        guard case .known(let length) = response.head.bodyLength, Self.givesRanges(response),
            let validator = Self.validator(of: response),
            request.head.first(.range) == nil, request.head.first(.ifRange) == nil
        else { return nil }
        self.length = length
        self.validator = validator
        self.request = OwnedRequest(request)
        self.pauses = pauses
        pause = Deadline(loop: loop)
    }

    static func isPossible(_ response: borrowing ResponseView) -> Bool {
        givesRanges(response) && validator(of: response) != nil
    }

    private static func givesRanges(_ response: borrowing ResponseView) -> Bool {
        for field in response.head.fields
        where field.id == .other && field.name.text(in: response.bytes).lowercased() == "accept-ranges" {
            return field.value.text(in: response.bytes).lowercased() == "bytes"
        }
        return false
    }

    private static func validator(of response: borrowing ResponseView) -> [UInt8]? {
        StrongValidator.of(
            etag: response.value(of: .etag), lastModified: response.value(of: .lastModified),
            date: response.value(of: .date))
    }

    /// The connection was interrupted after `count` bytes. True if the download made progress.
    func broke(after count: UInt64) -> Bool {
        passed += count
        let hasProgressed = count >= Self.progress
        if hasProgressed { tries = 0 }
        return hasProgressed
    }

    /// The origin can't serve the remainder yet.
    func postpone(_ wait: UInt64) { wanted = wait }

    /// Begins another try after the returned nanoseconds.
    func nextTry() -> UInt64 {
        defer { (tries, wanted) = (tries + 1, 0) }
        return max(pauses.nanoseconds(after: tries), wanted)
    }

    func requestForRest() throws(WireError) -> OwnedRequest { try request.asking(from: passed, ifStill: validator) }

    /// - Parameter unixTime: for a Retry-After date.
    func judge(_ response: borrowing ResponseView, at unixTime: Int64) -> Answer {
        let status = response.head.status
        if status == 408 || status == 429 || status >= 500 {
            let seconds = response.value(of: .retryAfter).flatMap { RetryAfter.seconds($0.span, at: unixTime) } ?? 0
            guard seconds <= pauses.longestWanted else {
                return .another("the origin answered \(status) and asks for a retry after \(seconds) seconds")
            }
            return .notNow("the origin answered \(status)", wait: seconds * 1_000_000_000)
        }
        guard status == 206 else {
            return .another("the origin answered \(status) to the request for bytes \(passed) and later")
        }
        guard let range = response.value(of: .contentRange).flatMap({ ContentRange.parse($0.span) }) else {
            return .another("the origin's part has no valid Content-Range")
        }
        guard range == .bytes(passed...(length - 1), complete: length),
            response.head.bodyLength == .known(length - passed)
        else {
            return .another("the origin sent another part than bytes \(passed) to \(length - 1) of \(length)")
        }
        // A part may lack validators (RFC 9110 section 15.3.7): then If-Range vouches for it.
        let isTag = validator.first == UInt8(ascii: "\"")
        guard response.value(of: isTag ? .etag : .lastModified) ?? validator == validator else {
            return .another("the origin's part is of another version")
        }
        return .rest
    }
}

/// Pauses before a download is resumed, for an origin that restarts.
package struct ResumptionPauses: Sendable {
    /// Nanoseconds before the second try; doubled each time.
    package var first: UInt64 = 250_000_000
    package var longest: UInt64 = 8_000_000_000
    /// Seconds that Retry-After may request. More ends the tries.
    package var longestWanted: UInt64 = 60

    package init() {}

    func nanoseconds(after tries: Int) -> UInt64 {
        tries == 0 ? 0 : min(longest, first << UInt64(min(tries - 1, 16)))
    }
}

extension ResponseView {
    fileprivate func value(of field: FieldName) -> [UInt8]? {
        head.first(field).map { bytes.extracting($0.offsets).array }
    }
}
