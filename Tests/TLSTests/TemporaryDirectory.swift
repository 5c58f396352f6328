import Foundation

/// A new directory, deleted with its contents when this object is.
final class TemporaryDirectory {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "pinproxy-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        path = url.path(percentEncoded: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a new file and returns its path.
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = "\(path)/\(name)"
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }

    func file(_ name: String, _ text: String) throws -> String { try file(name, Array(text.utf8)) }
}
