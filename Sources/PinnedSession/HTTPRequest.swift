import PinproxyHTTPWire
public import PinproxySerialization
import PinproxySession

/// A request that a program makes: NSURLRequest, as a value.
///
/// ```swift
/// var request = try HTTPRequest("https://api.example.com/v1/users")
/// try request.set("Accept", "application/json")
/// ```
/// The session writes fields of framing and connection (Host, Content-Length, Connection and so on) itself.
public struct HTTPRequest: Sendable {
    /// GET by default.
    public var method: MethodName
    /// A whole URL, or one relative to ``SessionConfiguration/baseURL``. A fragment isn't sent; user information
    /// (`https://user:password@host/`) is refused: see ``HostRule/credentials``.
    public var url: String
    /// Sent in this order. The description hides secret values.
    public var fields: [HeaderField]
    /// Empty by default.
    public var body: RequestBody

    /// - Parameter url: see ``url``; it is read when the request is made.
    public init(method: MethodName, url: String, fields: [HeaderField] = [], body: RequestBody = .none) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }

    /// - Parameters:
    ///   - url: see ``url``; it is read when the request is made.
    /// - method: in capitals; not CONNECT.
    /// - Throws: if the method isn't one.
    public init(_ url: String, method: String = "GET", body: RequestBody = .none) throws(InvalidValue) {
        self.init(method: try MethodName(method), url: url, body: body)
    }

    /// Replaces the field's values.
    /// - Parameter isSecret: a token or password, hidden in the description.
    /// - Throws: if the field can't be set, or the value has a line break.
    public mutating func set(_ name: String, _ value: String, isSecret: Bool = false) throws(InvalidValue) {
        let field = HeaderField(name: try HeaderName(name), value: try HeaderValue(value, isSecret: isSecret))
        fields.removeAll { $0.name == field.name }
        fields.append(field)
    }

    /// Puts parameters into the query or the body, as AFURLRequestSerialization does.
    /// - Throws: if the serializer can't express them. The request is unchanged.
    public mutating func set(
        _ parameters: [ParameterValue.Pair], by serializer: some RequestSerializer
    ) throws(RequestSerializationError) {
        let hasContentType = fields.contains { $0.name.description.lowercased() == "content-type" }
        let outline = RequestOutline(
            method: method.description, target: Array(url.utf8), hasContentType: hasContentType, hasBody: !body.isEmpty)
        switch try serializer.serialize(parameters, into: outline) {
        case .unchanged: break
        case .target(let target): url = String(decoding: target, as: UTF8.self)
        case .body(let bytes, let contentType):
            body = .bytes(bytes)
            if let contentType { try? set("Content-Type", contentType) }
        case .form(let form):
            body = .form(form)
            try? set("Content-Type", form.contentType)
        }
    }
}

extension HTTPRequest: CustomStringConvertible {
    /// Method and URL, without the query, which may be secret.
    public var description: String { "\(method) \(ShownText(url))" }
}
