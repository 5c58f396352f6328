/// Sends parameters and files as the parts of a form (AFMultipartFormData): `multipart/form-data` (RFC 7578).
///
/// For GET, HEAD and DELETE the parameters go into the query, without the parts. It always sets the content type.
public struct MultipartRequestSerializer: RequestSerializer {
    public var queryMethods = [MethodName].withParametersInQuery
    /// The parts, sent after the parameters.
    public var parts: [MultipartPart]
    /// The boundary, which must not occur in the parts; nil: a random one for each request.
    public var boundary: String?

    /// - Parameter parts: sent after the parameters.
    public init(parts: [MultipartPart] = []) { self.parts = parts }

    public func serialize(
        _ parameters: ParameterValue, into request: RequestOutline
    )
        throws(RequestSerializationError) -> SerializedRequest
    {
        let parameters = try parameters.pairs(in: "a form")
        if putsIntoQuery(request) { return query(parameters, into: request) }
        guard !["GET", "HEAD", "TRACE"].contains(request.method) else { return .unchanged(.method) }
        let form = MultipartForm(parameters: parameters, parts: parts, boundary: boundary)
        guard !form.isEmpty else { return .unchanged(.noParameters) }
        guard !request.hasBody else { return .unchanged(.hasBody) }
        return .form(form)
    }
}
