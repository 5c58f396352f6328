/// Puts parameters into a request (AFURLRequestSerialization).
///
///     let serializer = JSONRequestSerializer()
///     let request = RequestOutline(method: "POST", target: Array("/v1/users".utf8))
///     try serializer.serialize(["name": "x", "tags": ["a", "b"]], into: request)
///     // .body(#"{"name":"x","tags":["a","b"]}"#, contentType: "application/json")
///
/// Parameters of GET, HEAD and DELETE go into the query, those of other methods into the body. A request with a body
/// keeps it, and gets no parameters: nothing that a client sends is lost or mixed with other data. The content type is
/// set if the request lacks it.
public protocol RequestSerializer: Sendable {
    /// The methods with parameters in the query (HTTPMethodsEncodingParametersInURI).
    var queryMethods: [MethodName] { get set }

    /// - Parameters:
    ///   - parameters: a dictionary; for formats that have it, any value.
    ///   - request: what decides where they go.
    /// - Throws: if the format can't express the parameters. Then nothing may be sent.
    func serialize(
        _ parameters: ParameterValue, into request: RequestOutline
    )
        throws(RequestSerializationError) -> SerializedRequest
}

extension RequestSerializer {
    /// Puts the pairs of a dictionary into a request.
    public func serialize(
        _ parameters: [ParameterValue.Pair], into request: RequestOutline
    )
        throws(RequestSerializationError) -> SerializedRequest
    {
        try serialize(.dictionary(parameters), into: request)
    }

    func serialize(
        _ parameters: ParameterValue, into request: RequestOutline, contentType: String,
        _ body: (ParameterValue) throws(RequestSerializationError) -> [UInt8]
    ) throws(RequestSerializationError) -> SerializedRequest {
        guard !parameters.isNone else { return .unchanged(.noParameters) }
        if putsIntoQuery(request) { return query(try parameters.pairs(in: "a query"), into: request) }
        if let reason = request.objectionToBody { return .unchanged(reason) }
        return .body(try body(parameters), contentType: request.hasContentType ? nil : contentType)
    }

    func putsIntoQuery(_ request: RequestOutline) -> Bool {
        queryMethods.contains { $0.description == request.method }
    }

    func query(_ parameters: [ParameterValue.Pair], into request: RequestOutline) -> SerializedRequest {
        let query = QueryEncoder.encode(parameters)
        return query.isEmpty ? .unchanged(.noParameters) : .target(QueryEncoder.join(query, to: request.target))
    }
}

extension [MethodName] {
    /// GET, HEAD and DELETE.
    public static let withParametersInQuery = ["GET", "HEAD", "DELETE"].compactMap { try? MethodName($0) }
}

/// Sends parameters as a form, or in the query (AFHTTPRequestSerializer): `application/x-www-form-urlencoded`. Without
/// parameters the form is an empty body.
public struct HTTPRequestSerializer: RequestSerializer {
    public var queryMethods = [MethodName].withParametersInQuery

    /// Uses the methods of AFNetworking.
    public init() {}

    public func serialize(
        _ parameters: ParameterValue, into request: RequestOutline
    )
        throws(RequestSerializationError) -> SerializedRequest
    {
        let type = "application/x-www-form-urlencoded"
        if parameters.isNone, !putsIntoQuery(request), request.objectionToBody == nil {
            return .body([], contentType: request.hasContentType ? nil : type)
        }
        return try serialize(parameters, into: request, contentType: type) {
            parameters throws(RequestSerializationError) in
            QueryEncoder.encode(try parameters.pairs(in: "a form"))
        }
    }
}

/// Sends parameters as JSON (AFJSONRequestSerializer): `application/json`. The top is an object, an array, or any other
/// value. Keys keep their order and numbers their digits. Sets and repeated keys are errors.
public struct JSONRequestSerializer: RequestSerializer {
    public var queryMethods = [MethodName].withParametersInQuery

    /// Uses the methods of AFNetworking.
    public init() {}

    public func serialize(
        _ parameters: ParameterValue, into request: RequestOutline
    )
        throws(RequestSerializationError) -> SerializedRequest
    {
        try serialize(parameters, into: request, contentType: "application/json") {
            parameters throws(RequestSerializationError) in
            try JSONWriter.write(parameters)
        }
    }
}

/// Sends parameters as a property list in XML 1.0 (AFPropertyListRequestSerializer): `application/x-plist`. Null
/// and sets are errors, as are numbers and characters that the format can't express.
public struct PropertyListRequestSerializer: RequestSerializer {
    public var queryMethods = [MethodName].withParametersInQuery

    /// Uses the methods of AFNetworking.
    public init() {}

    public func serialize(
        _ parameters: ParameterValue, into request: RequestOutline
    )
        throws(RequestSerializationError) -> SerializedRequest
    {
        try serialize(parameters, into: request, contentType: "application/x-plist") {
            parameters throws(RequestSerializationError) in
            try PropertyListWriter.write(parameters)
        }
    }
}
