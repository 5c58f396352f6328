/// A file of the system's settings that a command sees with more at its end. Where there is none, nothing is added.
package struct AddedSettings: Sendable, Equatable {
    package let path: String
    package let lines: String

    package init(path: String, lines: String) { (self.path, self.lines) = (path, lines) }
}
