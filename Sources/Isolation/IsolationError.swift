/// Why a command can't get its own network, for people.
package struct IsolationError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
