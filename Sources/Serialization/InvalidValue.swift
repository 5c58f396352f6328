/// Why a text can't be a value of a rule, for people; the place is added by who read it.
public struct InvalidValue: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
