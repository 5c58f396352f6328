internal import Glibc

/// A file of the system's settings that a command sees with more at its end.
package struct AddedSettings: Sendable, Equatable {
    private static let limit = 64 << 10

    package let path: String
    package let lines: String

    package init(path: String, lines: String) { (self.path, self.lines) = (path, lines) }

    /// Nothing is done where the file isn't there, or isn't a small one.
    /// - Parameter stage: a directory for the file, seen again afterwards.
    func cover(by stage: String) throws(MountError) {
        guard let path = SystemTrust.real([path]).first, let text = try? PlainFile.read(path, limit: Self.limit)
        else { return }
        try Mount.memory(at: stage)
        // What is mounted elsewhere stays there.
        defer { Mount.remove(at: stage) }
        let copy = "\(stage)/settings"
        try PlainFile.write(text + Array("\n\(lines)".utf8), to: copy)
        try Mount.bind(copy, to: path)
        try Mount.protect(path)
    }
}
