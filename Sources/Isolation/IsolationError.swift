/// Why a command can't get its own network, in human-readable form.
package struct IsolationError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
