/// Why a request can't be made. Nothing of it may be sent.
public struct RequestSerializationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// AFURLRequestSerializationErrorDomain.
    public static let domain = "com.alamofire.error.serialization.request"

    /// The codes of NSURLErrorDomain, as AFNetworking uses them.
    public enum Code: Int, Sendable {
        /// NSURLErrorBadURL: a file that can't be sent.
        case badURL = -1000
        /// NSURLErrorCannotDecodeContentData: the other format can't express a value.
        case cannotDecodeContentData = -1016
        /// NSURLErrorRequestBodyStreamExhausted: a file that changed while it was sent.
        case requestBodyStreamExhausted = -1021
        /// NSURLErrorDataLengthExceedsMaximum: a body that became too long.
        case dataLengthExceedsMaximum = -1103
    }

    /// What is wrong.
    public enum Reason: Sendable, Hashable {
        /// A value that the format can't express.
        case inexpressible(InexpressibleValue)
        /// A body that isn't valid in its format: `JSON`, `a property list`, `a form`.
        case malformedBody(format: String, BodyDefect)
        /// A body that would be too long after conversion.
        case tooLong(limit: Int)
        /// A file of a multipart form, before anything is sent.
        case unusableFile(path: String, explanation: String)
        /// A file of a multipart form has changed since Content-Length was computed.
        case changedFile(path: String, explanation: String)
    }

    /// The error code, for programs.
    public let reason: Reason

    init(_ reason: Reason) { self.reason = reason }

    /// The description, in AFNetworking's words.
    public var code: Code {
        switch reason {
        case .inexpressible, .malformedBody: .cannotDecodeContentData
        case .tooLong: .dataLengthExceedsMaximum
        case .unusableFile: .badURL
        case .changedFile: .requestBodyStreamExhausted
        }
    }

    public var description: String {
        switch reason {
        case .inexpressible(let value): value.description
        case .malformedBody(let format, let defect): "The body is not \(format): \(defect)"
        case .tooLong(let limit): "The body is longer than \(limit) bytes when it is converted"
        case .unusableFile(let path, let explanation): "The file \(path) can't be sent: \(explanation)"
        case .changedFile(let path, let explanation): "The file \(path) changed while it was sent: \(explanation)"
        }
    }
}

/// A value that a format can't express. Only its name is shown: it may be a secret.
public struct InexpressibleValue: Sendable, Hashable, CustomStringConvertible {
    /// Its place, in the notation of forms: `user[tags][]`.
    public let name: String
    /// `JSON`, `a property list`, `a form`.
    public let format: String
    /// Its kind: `null`, `a date`.
    public let kind: String

    public var description: String { "\(name.isEmpty ? "The top" : name) is \(kind), which \(format) can't express" }
}
