/// A media type (RFC 9110 section 8.3.1), e.g. `application/json` or `text/plain; charset=utf-8`.
public struct MediaType: Sendable, Hashable, CustomStringConvertible {
    /// The type as written.
    public let description: String

    /// - Throws: if it isn't `type/subtype`.
    public init(_ text: String) throws(InvalidValue) {
        let essence = text.prefix { $0 != ";" }
        let parameters = text[essence.endIndex...].split(separator: ";").map(\.trimmed)
        guard let range = try? MediaRange(essence.trimmed), range.type != nil, range.subtype != nil,
            parameters.allSatisfy(Self.isParameter), !text.hasSuffix(";")
        else {
            throw InvalidValue("\(text.debugDescription) is not a media type; write e.g. text/plain; charset=utf-8")
        }
        description = text
    }

    /// `name=value`, where the value is a token, or a quoted string without inner quotes.
    private static func isParameter(_ text: String) -> Bool {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].utf8.allSatisfy(\.isTokenCharacter) else { return false }
        let value = parts[1]
        if value.utf8.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
            return !value.dropFirst().dropLast().utf8.contains { $0.isControl || $0 == UInt8(ascii: "\"") }
        }
        return !value.isEmpty && value.utf8.allSatisfy(\.isTokenCharacter)
    }
}

/// The media types that a response may have: `application/json`, `image/*`, `*/*`, without parameters.
public struct MediaRange: Sendable, Hashable, CustomStringConvertible {
    /// The type in lower case; nil: any.
    public let type: String?
    /// The subtype; nil: any (`image/*`).
    public let subtype: String?

    /// - Throws: if it isn't `type/subtype` or `type/*`.
    public init(_ text: String) throws(InvalidValue) {
        guard !text.contains(";") else {
            throw InvalidValue("\"\(text)\": parameters are not compared; write the type without them")
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        func part(_ index: Int) -> (isValid: Bool, name: String?) {
            if parts[index] == "*" { return (true, nil) }
            let isToken = parts[index].utf8.allSatisfy { $0.isTokenCharacter && $0 != UInt8(ascii: "*") }
            return (isToken && !parts[index].isEmpty, parts[index].lowercased())
        }
        guard parts.count == 2, part(0).isValid, part(1).isValid, part(0).name != nil || part(1).name == nil else {
            throw InvalidValue(
                "\"\(text)\" is not a media type; write e.g. application/json, or image/* for all of a kind")
        }
        (type, subtype) = (part(0).name, part(1).name)
    }

    public var description: String { "\(type ?? "*")/\(subtype ?? "*")" }
}

extension StringProtocol {
    fileprivate var trimmed: String {
        var text = Substring(self)
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }
}
