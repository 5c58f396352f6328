/// A file of the system's settings, and lines that a command sees at its end. A missing file stays missing.
package struct AddedSettings: Sendable, Equatable {
    package let path: String
    package let lines: String

    package init(path: String, lines: String) { (self.path, self.lines) = (path, lines) }
}
