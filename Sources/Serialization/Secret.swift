/// A password or token. Printing it, by whatever means, shows only that there is one.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The secret itself: for its one message.
    public let text: String

    /// - Parameter text: the secret itself.
    public init(_ text: String) { self.text = text }

    public var description: String { "•••" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
