/// Tries several serializers in order; the first that accepts a response decides: AFCompoundResponseSerializer.
///
/// If no serializer accepts, the error has each one's reason. (AFNetworking then returns the raw body.)
public struct CompoundResponseSerializer: Sendable {
    /// The serializers, tried in this order.
    public let serializers: [any ResponseSerializer]

    /// - Parameter serializers: the first that accepts a response makes its value.
    public init(_ serializers: [any ResponseSerializer]) { self.serializers = serializers }

    /// - Returns: the value of the first serializer that accepts; nil if it makes no value.
    public func value(of body: [UInt8], head: ResponseHead) throws(ResponseSerializationError) -> Any? {
        var errors: [ResponseSerializationError] = []
        for serializer in serializers {
            do throws(ResponseSerializationError) {
                return try serializer.value(of: body, head: head)
            } catch {
                errors.append(error)
            }
        }
        throw ResponseSerializationError(none: errors)
    }
}

extension ResponseSerializationError {
    /// No serializer accepts. The reason that got furthest is first: malformed JSON before a type that isn't XML's.
    init(none errors: [ResponseSerializationError]) {
        func isOfBody(_ error: ResponseSerializationError) -> Bool {
            if case .malformedBody = error.reason { true } else { false }
        }
        guard let first = errors.first(where: isOfBody) ?? errors.first else {
            self.init(.malformedBody(BodyDefect("no serializer accepts it")), expected: "anything")
            return
        }
        let alike = errors.filter { isOfBody($0) == isOfBody(first) }
        var expected: [String] = []
        for error in alike where !expected.contains(error.expected) { expected.append(error.expected) }
        self.init(
            first.reason, expected: expected.joined(separator: " or "),
            underlying: errors.count == 1 ? first.underlying : errors)
    }
}
