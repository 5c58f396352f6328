/// Converts the body of a request, such as a form to JSON. Values keep their kind where both formats have it; a form
/// has texts only. What the other format can't express is an error.
public struct BodyConversion: Sendable, Hashable {
    /// A format that bodies are read from and written in.
    public enum Form: String, Sendable, CaseIterable {
        /// `application/x-www-form-urlencoded`.
        case form
        /// `application/json`.
        case json
        /// `application/x-plist`.
        case propertyList = "property-list"

        /// The media type for a request's Content-Type.
        public var contentType: String {
            switch self {
            case .form: "application/x-www-form-urlencoded"
            case .json: "application/json"
            case .propertyList: "application/x-plist"
            }
        }
    }

    /// The format of the body received.
    public let from: Form
    /// The format of the body sent.
    public let to: Form

    /// Creates a conversion from one format to the other.
    public init(from: Form, to: Form) {
        self.from = from
        self.to = to
    }

    /// Whether a body of the type is of the format to convert from. Others stay as they are.
    public func applies(to contentType: String) -> Bool {
        let essence = ContentType(contentType).essence
        return essence == from.contentType || from == .json && essence == "text/json"
    }

    /// The body in the other format, with the content type of ``to``. An empty body stays empty.
    ///
    /// - Parameters:
    ///   - body: the whole of it, without a content coding.
    ///   - contentType: the value of the request's field.
    ///   - limit: the most bytes of the result: a form repeats a long name for each value under it.
    /// - Throws: a defect with line and column, or the name of what the other format can't express.
    public func convert(
        _ body: [UInt8], contentType: String, limit: Int = 8 << 20
    ) throws(RequestSerializationError) -> [UInt8] {
        guard !body.isEmpty else { return [] }
        let value = try read(body, contentType: contentType)
        let converted =
            switch to {
            case .json: try JSONWriter.write(value, limit: limit)
            case .propertyList: try PropertyListWriter.write(value, limit: limit)
            case .form: try form(of: value, limit: limit)
            }
        guard converted.count <= limit else { throw RequestSerializationError(.tooLong(limit: limit)) }
        return converted
    }

    private func form(of value: ParameterValue, limit: Int) throws(RequestSerializationError) -> [UInt8] {
        guard case .dictionary(let pairs) = value else {
            if case .array = value { throw ValuePath().inexpressible("an array", in: "a form") }
            throw ValuePath().inexpressible("a single value", in: "a form")
        }
        var length = 0
        ParameterLeaves { $1 += $0.utf8 }.forEach(of: pairs) { length += $0.count + ($1?.utf8.count ?? 0) }
        guard length <= limit else { throw RequestSerializationError(.tooLong(limit: limit)) }
        return QueryEncoder.encode(pairs)
    }

    private func read(_ body: [UInt8], contentType: String) throws(RequestSerializationError) -> ParameterValue {
        switch from {
        case .form: try FormReader.read(body, contentType: contentType)
        case .json: try Self.readJSON(body)
        case .propertyList: try PropertyListReader.read(body)
        }
    }

    private static func readJSON(_ body: [UInt8]) throws(RequestSerializationError) -> ParameterValue {
        do throws(BodyDefect) {
            guard !JSONResponseSerializer.isWithoutValue(body) else { throw BodyDefect("there is no value") }
            // Two services would read a repeated key differently.
            return try JSONResponseSerializer.read(body, makesValue: true, refusesRepeatedKeys: true).value
        } catch {
            throw RequestSerializationError(.malformedBody(format: "JSON", error))
        }
    }
}
