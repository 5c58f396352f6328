/// What a serializer has to know of a request.
public struct RequestOutline: Sendable, Hashable {
    /// As it is sent.
    public var method: String
    /// As it is sent: path and query, or a URL.
    public var target: [UInt8]
    /// Whether the request names the type of its body.
    public var hasContentType: Bool
    /// Whether the request brings a body. One of no bytes (`Content-Length: 0`) is none.
    public var hasBody: Bool

    /// See the properties.
    public init(method: String, target: [UInt8], hasContentType: Bool = false, hasBody: Bool = false) {
        self.method = method
        self.target = target
        self.hasContentType = hasContentType
        self.hasBody = hasBody
    }

    /// Why parameters don't become its body.
    var objectionToBody: SerializedRequest.Reason? {
        if method == "TRACE" { return .method }
        return hasBody ? .hasBody : nil
    }
}

/// What becomes of a request in which parameters are put.
public enum SerializedRequest: Sendable, Hashable {
    /// It goes on as it is.
    case unchanged(Reason)
    /// The target, in which the parameters are part of the query.
    case target([UInt8])
    /// The whole body, and its content type, nil where the request's own stays.
    case body([UInt8], contentType: String?)
    /// The body is sent from ``MultipartForm/open()``, with the form's own content type.
    case form(MultipartForm)

    /// Why a request stays as it is.
    public enum Reason: Sendable, Hashable {
        /// There are none, or none that the format writes.
        case noParameters
        /// The request has a body of its own. Parameters are never mixed into it and never replace it.
        case hasBody
        /// The method can have no such body: a form in parts is not for GET and HEAD, TRACE has no body at all.
        case method
    }
}
