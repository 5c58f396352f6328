internal import Glibc
internal import PinproxySecurity

/// The files that a pattern named when it was read. It is no longer current once a file was added or removed.
package struct FileListing: Sendable, Equatable, Codable {
    /// A directory's absolute path.
    package let directory: String
    /// A pattern of names in it, by fnmatch(3).
    private let pattern: String
    /// In the order of their bytes.
    package let names: [String]

    /// - Parameter pattern: wildcards (`*`, `?`, `[…]`) are in its last component only.
    /// - Throws: the directory can't be read. One that doesn't exist has no files.
    init(_ pattern: String) throws(Reason) {
        let (directory, name) = Self.split(pattern)
        (self.directory, self.pattern) = (FileStamp.absolute(directory), name)
        names = try Self.names(in: directory, like: name)
    }

    package var isCurrent: Bool {
        do { return try Self.names(in: directory, like: pattern) == names } catch { return false }
    }

    static func hasWildcard(_ path: String) -> Bool { split(path).name.contains { "*?[".contains($0) } }

    static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        return (slash == path.startIndex ? "/" : String(path[..<slash]), String(path[path.index(after: slash)...]))
    }

    /// A name that begins with a dot fits no wildcard: editors and package managers keep their own files so.
    static func fits(_ name: String, _ pattern: String) -> Bool { fnmatch(pattern, name, FNM_PERIOD) == 0 }

    private static func names(in directory: String, like pattern: String) throws(Reason) -> [String] {
        guard let stream = opendir(directory) else {
            let code = errno
            if code == ENOENT { return [] }
            throw Reason("the directory can't be read: \(String(cString: strerror(code)))")
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
            }
            if fits(name, pattern) { names.append(name) }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
