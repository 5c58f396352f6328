/// The properties of a request that a serializer needs.
public struct RequestOutline: Sendable, Hashable {
    /// The method as sent.
    public var method: String
    /// The target as sent: path and query, or a URL.
    public var target: [UInt8]
    /// Whether the request has a Content-Type.
    public var hasContentType: Bool
    /// Whether the request has a body. An empty one (`Content-Length: 0`) doesn't count.
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

/// The result of adding parameters to a request.
public enum SerializedRequest: Sendable, Hashable {
    /// The request is unchanged.
    case unchanged(Reason)
    /// The new target, with the parameters in its query.
    case target([UInt8])
    /// The whole body, and its content type; nil if the request's own stays.
    case body([UInt8], contentType: String?)
    /// The body is sent from ``MultipartForm/open()``, with the form's own content type.
    case form(MultipartForm)

    /// Why a request is unchanged.
    public enum Reason: Sendable, Hashable {
        /// No parameters, or the format writes nothing for them.
        case noParameters
        /// The request already has a body. Parameters are never mixed into it and never replace it.
        case hasBody
        /// The method doesn't allow such a body: GET and HEAD take no multipart form, and TRACE no body at all.
        case method
    }
}
