// Serialization: how requests are shaped and responses judged, after AFURL{Request,Response}Serialization. Pure.

/// The request serializer rules of an exchange (`request` in pins.yaml), with the defaults.
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

    /// The treatment of the Cookie field.
    public enum Cookies: String, Sendable, CaseIterable {
        /// The request is passed on unchanged.
        case pass
        /// The request is sent without them.
        case strip
    }

    /// The format of the parameters.
    public enum Serializer: String, Sendable, CaseIterable {
        /// Parameters as a form, or in the query.
        case http
        /// A JSON object.
        case json
        /// A property list.
        case propertyList = "property-list"
        /// Parameters and parts as multipart/form-data.
        case multipart
    }

    /// Fields that are set if the request lacks them.
    public var headers: [HeaderField] = []
    /// Fields that are always set.
    public var setHeaders: [HeaderField] = []
    /// Fields that are removed from every request.
    public var removeHeaders: [HeaderName] = []
    /// The languages in order of preference; empty: the request's own.
    public var acceptLanguage: [LanguageRange] = []
    /// Credentials sent as Basic, in place of the request's own Authorization.
    public var authorization: Credentials?
    /// The treatment of the Cookie field.
    public var cookies = Cookies.pass
    /// The format of ``parameters``.
    public var serializer = Serializer.http
    /// Parameters that are sent with every request.
    public var parameters: [ParameterValue.Pair] = []
    /// Methods with parameters in the query and not in the body.
    public var queryMethods = [MethodName].withParametersInQuery
    /// The conversion of bodies; nil: none.
    public var convertBody: BodyConversion?
    /// The parts of a form; sent with the parameters.
    public var parts: [MultipartPart] = []
    /// The throttle of bodies; nil: unlimited speed.
    public var throttle: Throttle?
    /// `http://` becomes `https://`.
    public var upgradeInsecure = false

    /// Creates rules that change nothing.
    public init() {}

    package var withoutSecrets: RequestRules {
        func isOpen(_ field: HeaderField) -> Bool {
            !field.value.isSecret && field.name != .cookie && field.name != .authorization
        }
        var rules = self
        rules.authorization = nil
        rules.headers = headers.filter(isOpen)
        rules.setHeaders = setHeaders.filter(isOpen)
        return rules
    }

    /// A contradiction, and its key, for requests of those methods (nil: all).
    package func contradiction(for methods: [MethodName]? = nil) -> (key: Key, reason: String)? {
        if !parts.isEmpty, serializer != .multipart {
            return (.parts, "only serializer: multipart sends parts, and here it is \(serializer.rawValue)")
        }
        // In a query all can be said. With `all methods` some request has a body.
        if let methods, methods.allSatisfy(queryMethods.contains) { return nil }
        var ofBodies = self
        ofBodies.queryMethods = []
        do throws(RequestSerializationError) {
            _ = try ofBodies.serialize(into: RequestOutline(method: "POST", target: Array("/".utf8)))
            return nil
        } catch {
            return (.parameters, "\(error) (serializer: \(serializer.rawValue))")
        }
    }
}

/// Limits the speed of a request's body.
public struct Throttle: Sendable, Hashable {
    /// The bytes of a packet.
    public let packet: Int
    /// The pause between two packets.
    public let delay: Duration

    /// - Parameters:
    ///   - packet: in bytes.
    ///   - delay: between two packets.
    public init(packet: Int, delay: Duration) {
        self.packet = packet
        self.delay = delay
    }
}
