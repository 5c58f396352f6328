public import FoundationEssentials
import PinproxyHTTPWire
public import PinproxySerialization
import PinproxySession

/// A request that a program makes: NSURLRequest, as a value.
///
/// ```swift
/// var request = try HTTPRequest("https://api.example.com/v1/users", method: "POST")
/// try request.set("Accept", "application/json")
/// try request.set(["name": "x", "score": 0.5], by: JSONRequestSerializer())
/// ```
/// The session writes fields of framing and connection (Host, Content-Length, Connection and so on) itself.
public struct HTTPRequest: Sendable {
    /// The request method; GET by default.
    public var method: MethodName
    /// A whole URL, or one relative to ``SessionConfiguration/baseURL``; an empty one is the base. A fragment isn't
    /// sent; user information (`https://user:password@host/`) is refused: see ``HostRule/credentials``.
    public var url: String
    /// The header fields, sent in this order. The description hides secret values.
    public var fields: [HeaderField]
    /// The body; empty by default.
    public var body: RequestBody
    /// Whether ``SessionConfiguration/cookies`` applies to the request.
    public var handlesCookies = true
    /// How long no byte may arrive or be sent, once the request is on its way (`timeoutInterval`); nil: the session's
    /// ``SessionConfiguration/responseTimeout`` and ``SessionConfiguration/idleTimeout``.
    public var timeout: Duration?

    /// - Parameters:
    ///   - method: not CONNECT.
    ///   - url: see ``url``; it is read when the request is made.
    ///   - fields: see ``fields``.
    ///   - body: empty by default.
    public init(method: MethodName, url: String, fields: [HeaderField] = [], body: RequestBody = .none) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }

    /// - Parameters:
    ///   - url: see ``url``; it is read when the request is made.
    ///   - method: in capitals; not CONNECT.
    ///   - body: empty by default.
    /// - Throws: ``SessionError/invalidRequest(_:)`` if the method isn't one.
    public init(_ url: String, method: String = "GET", body: RequestBody = .none) throws(SessionError) {
        do throws(InvalidValue) {
            self.init(method: try MethodName(method), url: url, body: body)
        } catch {
            throw SessionError(error)
        }
    }

    /// Creates a request for a `URL`.
    public init(_ url: URL, method: String = "GET", body: RequestBody = .none) throws(SessionError) {
        try self.init(url.absoluteString, method: method, body: body)
    }

    /// Replaces the field's values.
    /// - Parameters:
    ///   - name: in any case.
    ///   - value: without the white space around it.
    ///   - isSecret: a token or password, hidden in the description, as Authorization and Cookie always are.
    /// - Throws: ``SessionError/invalidRequest(_:)`` if the field can't be set, or the value has a line break.
    public mutating func set(_ name: String, _ value: String, isSecret: Bool = false) throws(SessionError) {
        do throws(InvalidValue) {
            let hidden = isSecret || ["authorization", "cookie"].contains(name.lowercased())
            let field = HeaderField(name: try HeaderName(name), value: try HeaderValue(value, isSecret: hidden))
            fields.removeAll { $0.name == field.name }
            fields.append(field)
        } catch {
            throw SessionError(error)
        }
    }

    /// Puts parameters into the query or the body, as AFURLRequestSerialization does.
    /// - Parameters:
    ///   - parameters: a dictionary; for JSON and property lists, also an array.
    ///   - serializer: decides whether they go into the query or the body, and how.
    /// - Throws: ``SessionError/unserializable(_:)`` if the serializer can't express them. The request is unchanged.
    public mutating func set(
        _ parameters: ParameterValue, by serializer: some RequestSerializer
    ) throws(SessionError) {
        let outline = RequestOutline(
            method: method.description, target: Array(url.utf8), hasContentType: has("content-type"),
            hasBody: !body.isEmpty)
        let made: SerializedRequest
        do throws(RequestSerializationError) {
            made = try serializer.serialize(parameters, into: outline)
        } catch {
            throw .unserializable(error)
        }
        switch made {
        case .unchanged: break
        case .target(let target): url = String(decoding: target, as: UTF8.self)
        case .body(let bytes, let contentType): body = RequestBody(content: .bytes(bytes), contentType: contentType)
        case .form(let form): body = .form(form)
        }
    }

    /// - Parameter name: in lower case.
    func has(_ name: String) -> Bool { fields.contains { $0.name.description.lowercased() == name } }
}

extension HTTPRequest: CustomStringConvertible {
    /// The method and the URL without its query, which may be secret.
    public var description: String { "\(method) \(ShownText(url))" }
}
