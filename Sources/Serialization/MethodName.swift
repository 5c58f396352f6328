/// A request method (RFC 9110 section 9.1): a case-sensitive token.
public struct MethodName: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// - Throws: if it isn't a token in capitals, or is CONNECT.
    public init(_ text: String) throws(InvalidValue) {
        guard !text.isEmpty, text.utf8.count <= 64, text.utf8.allSatisfy(\.isTokenCharacter) else {
            throw InvalidValue("\(text.debugDescription) is not a method; write e.g. GET or POST")
        }
        // Methods are case-sensitive, and no method is in lower case.
        guard text.uppercased() == text else {
            throw InvalidValue("methods are written in capitals: \(text.uppercased())")
        }
        guard text != "CONNECT" else {
            throw InvalidValue("CONNECT can't be used here: it opens a tunnel")
        }
        description = text
    }

    /// Whether it is the method that is written in a request.
    public func equals(_ bytes: Span<UInt8>) -> Bool {
        var index = 0
        for byte in description.utf8 {
            guard index < bytes.count, bytes[index] == byte else { return false }
            index += 1
        }
        return index == bytes.count
    }
}
