/// Why a text can't be a rule's value, in human-readable form. Its reader adds the place.
public struct InvalidValue: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
