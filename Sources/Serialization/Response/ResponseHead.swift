/// The head of a response, which a response serializer validates before the body.
public struct ResponseHead: Sendable, Hashable {
    /// The expected body, known from the head.
    public enum Body: Sendable, Hashable {
        /// No body is possible: an answer to HEAD, 1xx, 204, 205, 304 (RFC 9110 section 6.4.1).
        case none
        /// A length in bytes, as transferred.
        case length(Int)
        /// A length that isn't announced: chunked, until close, or on an HTTP/2 stream without Content-Length.
        case unknownLength
    }

    /// The status code, from 100 to 999.
    public let status: Int
    /// The content type; nil: the field is missing or empty.
    public let contentType: ContentType?
    /// The value of Content-Encoding: codings in the order of application. Nil: missing.
    public let contentEncoding: String?
    /// The expected body.
    public let body: Body

    /// - Parameters:
    ///   - status: 100 to 999.
    ///   - contentType: nil: the field is missing or empty.
    ///   - contentEncoding: the value of the field; nil: missing.
    ///   - body: what the framing of the message says of it.
    public init(status: Int, contentType: ContentType?, contentEncoding: String? = nil, body: Body) {
        self.status = status
        self.contentType = contentType.flatMap { $0.isEmpty ? nil : $0 }
        self.contentEncoding = contentEncoding
        self.body = body
    }
}
