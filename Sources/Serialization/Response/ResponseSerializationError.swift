/// Why a response is invalid.
///
/// As in AFNetworking, a wrong status has the wrong content type nested in it, if that is wrong too.
public struct ResponseSerializationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The codes of NSURLErrorDomain that AFNetworking uses, and one more of the same domain.
    public enum Code: Int, Sendable {
        /// NSURLErrorBadServerResponse: the status.
        case badServerResponse = -1011
        /// NSURLErrorCannotDecodeContentData: the content type, or a body that isn't of it.
        case cannotDecodeContentData = -1016
        /// NSURLErrorDataLengthExceedsMaximum: the length.
        case dataLengthExceedsMaximum = -1103
    }

    /// What is wrong.
    public enum Reason: Sendable, Hashable {
        /// The status is not accepted.
        case unacceptableStatus(Int)
        /// The content type is not accepted; nil: the response has a body and no content type.
        case unacceptableContentType(ContentType?)
        /// The body doesn't have the format.
        case malformedBody(BodyDefect)
        /// The content coding (gzip, br …) can't be undone.
        case undecodable(ContentDecodingError)
        /// The body is longer than a rule allows.
        case tooLong(limit: Int)
        /// The body is longer than what is held back for a judgement.
        case tooLongToJudge(limit: Int)
    }

    /// The reason, for programs.
    public let reason: Reason
    /// The acceptable values, in human-readable form: `200-299, 304`, `application/json`, `JSON`.
    public let expected: String
    /// Further errors: the content type besides a status, or the reason of each of several serializers.
    public let underlying: [ResponseSerializationError]

    init(_ reason: Reason, expected: String, underlying: [ResponseSerializationError] = []) {
        self.reason = reason
        self.expected = expected
        self.underlying = underlying
    }

    /// A body that turns out longer than `max_body` while it is passed on.
    package static func tooLong(limit: Int) -> ResponseSerializationError {
        ResponseSerializationError(.tooLong(limit: limit), expected: "at most \(limit) bytes")
    }

    /// The description, in AFNetworking's words.
    public var code: Code {
        switch reason {
        case .unacceptableStatus: .badServerResponse
        case .unacceptableContentType, .malformedBody, .undecodable: .cannotDecodeContentData
        case .tooLong, .tooLongToJudge: .dataLengthExceedsMaximum
        }
    }

    /// The received value, in human-readable form.
    public var received: String {
        switch reason {
        case .unacceptableStatus(let status): "\(status)"
        case .unacceptableContentType(let type): type?.description ?? "no content type"
        case .malformedBody(let defect): defect.description
        case .undecodable(let error): error.description
        case .tooLong, .tooLongToJudge: "a longer body"
        }
    }

    /// The place of the first defect in the body, if known.
    public var place: TextPlace? {
        if case .malformedBody(let defect) = reason { defect.place } else { nil }
    }

    /// A line without the host: `Unacceptable status 500`.
    public var description: String { text(source: nil) }

    /// A human-readable line: `Unacceptable status 500 from api.example.com`.
    public func description(host: String) -> String { text(source: host) }

    private func text(source: String?) -> String {
        let from = source.map { " from \($0)" } ?? ""
        let of = source.map { " of \($0)" } ?? ""
        return switch reason {
        case .unacceptableStatus(let status): "Unacceptable status \(status)\(from)"
        case .unacceptableContentType(let type?): "Unacceptable content type \(type)\(from)"
        case .unacceptableContentType(nil): "Missing content type\(from)"
        case .malformedBody(let defect): "Body\(of) is not \(expected): \(defect)"
        case .undecodable(let error): "Body\(of) can't be decoded: \(error)"
        case .tooLong(let limit): "Body\(of) is longer than max_body, \(limit) bytes"
        case .tooLongToJudge(let limit): "Body\(of) is too long to judge: the limit is \(limit) bytes"
        }
    }
}

/// The first thing that is wrong in a body.
public struct BodyDefect: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place in the body; nil: none in particular.
    public let place: TextPlace?
    /// The explanation in human-readable form, without the place.
    public let explanation: String

    init(_ explanation: String, at place: TextPlace? = nil) {
        self.explanation = explanation
        self.place = place
    }

    public var description: String { place.map { "\($0): \(explanation)" } ?? explanation }
}
