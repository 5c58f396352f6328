extension RequestRules {
    /// Puts the parameters and parts of these rules into a request.
    /// - Throws: if the serializer can't express the parameters. Then nothing may be sent.
    public func serialize(into request: RequestOutline) throws(RequestSerializationError) -> SerializedRequest {
        // A client's request without a body stays as it is.
        if parameters.isEmpty, parts.isEmpty { return .unchanged(.noParameters) }
        var serializer: any RequestSerializer =
            switch serializer {
            case .http: HTTPRequestSerializer()
            case .json: JSONRequestSerializer()
            case .propertyList: PropertyListRequestSerializer()
            case .multipart: MultipartRequestSerializer(parts: parts)
            }
        serializer.queryMethods = queryMethods
        return try serializer.serialize(parameters, into: request)
    }
}
