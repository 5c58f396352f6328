// Serialization: how requests are shaped and responses judged, after AFURLRequestSerialization and
// AFURLResponseSerialization. Pure: values in, values out.

/// The request serializer rules that hold for an exchange (`request` in pins.yaml). A value of the type is
/// what holds where nothing is written, until keys are taken from what is.
public struct RequestRules: Sendable, Hashable {
    package enum Key: String, Sendable, CaseIterable {
        case headers
        case setHeaders = "set_headers"
        case removeHeaders = "remove_headers"
        case acceptLanguage = "accept_language"
        case authorization, cookies, serializer, parameters
        case queryMethods = "query_methods"
        case convertBody = "convert_body"
        case parts, throttle
        case upgradeInsecure = "upgrade_insecure"
    }

    public enum Cookies: String, Sendable, CaseIterable {
        case pass
        /// The request goes on without them.
        case strip
    }

    public enum Serializer: String, Sendable, CaseIterable {
        /// Parameters as a form, or in the query.
        case http
        case json
        case propertyList = "property-list"
        /// Parameters and parts as multipart/form-data.
        case multipart
    }

    /// Set where the request has none.
    public var headers: [HeaderField] = []
    /// Set in any case.
    public var setHeaders: [HeaderField] = []
    public var removeHeaders: [HeaderName] = []
    /// In order of preference; none leaves the request's own.
    public var acceptLanguage: [LanguageRange] = []
    public var authorization: Credentials?
    public var cookies = Cookies.pass
    public var serializer = Serializer.http
    public var parameters: [ParameterValue.Pair] = []
    /// Where parameters go into the query and not into the body.
    public var queryMethods = [MethodName].withParametersInQuery
    public var convertBody: BodyConversion?
    public var parts: [MultipartPart] = []
    public var throttle: Throttle?
    /// `http://` becomes `https://`.
    public var upgradeInsecure = false

    public init() {}

    /// Takes over one key.
    package mutating func take(_ key: Key, from other: RequestRules) {
        switch key {
        case .headers: headers = other.headers
        case .setHeaders: setHeaders = other.setHeaders
        case .removeHeaders: removeHeaders = other.removeHeaders
        case .acceptLanguage: acceptLanguage = other.acceptLanguage
        case .authorization: authorization = other.authorization
        case .cookies: cookies = other.cookies
        case .serializer: serializer = other.serializer
        case .parameters: parameters = other.parameters
        case .queryMethods: queryMethods = other.queryMethods
        case .convertBody: convertBody = other.convertBody
        case .parts: parts = other.parts
        case .throttle: throttle = other.throttle
        case .upgradeInsecure: upgradeInsecure = other.upgradeInsecure
        }
    }

    /// What doesn't go together, and the key to blame.
    package var contradiction: (key: Key, reason: String)? {
        guard !parts.isEmpty, serializer != .multipart else { return nil }
        return (.parts, "only serializer: multipart sends parts, and here it is \(serializer.rawValue)")
    }
}

/// How fast the body of a request is sent.
public struct Throttle: Sendable, Hashable {
    /// Bytes sent at one time.
    public let packet: Int
    /// Between two packets.
    public let delay: Duration

    public init(packet: Int, delay: Duration) {
        self.packet = packet
        self.delay = delay
    }
}
