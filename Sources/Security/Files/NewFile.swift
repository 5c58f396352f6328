import CPinproxyShims
import Glibc
package import PinproxyTLS

// One idea with TrustedDirectory.swift: both write files in checked directories.

/// Writes files whole or not at all, never readable to others in between.
package enum NewFile {
    /// Follows the writer's process number in a temporary name.
    private static let suffix = ".new"

    /// Writes to an administrator's path, following links.
    package static func write(_ bytes: [UInt8], to path: String, mode: UInt32) throws(FileProblem) {
        let directory = open(directory(of: path), shim_O_PATH | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw .system(errno) }
        defer { close(directory) }
        try write(bytes, to: String(path.split(separator: "/").last ?? ""), in: directory, mode: mode)
    }

    /// Creates a file at an administrator's path: `EEXIST` if it exists, or is a link.
    package static func create(_ bytes: [UInt8], at path: String, mode: UInt32) throws(FileProblem) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(errno) }
        let problem = fill(descriptor, bytes, mode, nil)
        close(descriptor)
        guard problem != 0 else { return }
        unlink(path)
        throw .system(problem)
    }

    /// Writes, syncs and renames the file, owned by `owner` (nil: this process's user).
    static func write(
        _ bytes: [UInt8], to name: String, in directory: CInt, mode: UInt32, owner: (user: uid_t, group: gid_t)? = nil
    ) throws(FileProblem) {
        let temporary = "\(name).\(getpid())\(suffix)"
        unlinkat(directory, temporary, 0)
        let descriptor = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(errno) }
        let problem = fill(descriptor, bytes, mode, owner)
        close(descriptor)
        if problem == 0, renameat(directory, temporary, directory, name) == 0 { return try sync(directory) }
        let cause = problem == 0 ? errno : problem
        unlinkat(directory, temporary, 0)
        throw .system(cause)
    }

    /// Removes killed writers' temporary files, and returns their names. Call it before this process writes any.
    package static func removeLeftovers(of names: [String], in directory: TrustedDirectory) -> [String] {
        var removed: [String] = []
        for (folder, names) in Dictionary(grouping: names, by: folder) {
            let wanted = Set(names.map { String($0.split(separator: "/").last ?? "") })
            for name in directory.names(in: folder) where isLeftover(name, of: wanted) {
                let path = folder.isEmpty ? name : "\(folder)/\(name)"
                guard let descriptor = try? directory.openForReading(path) else { continue }
                close(descriptor)
                if directory.remove(path) { removed.append(name) }
            }
        }
        return removed.sorted()
    }

    /// Whether it is `NAME.PROCESS.new` of a known name, without a running writer.
    private static func isLeftover(_ name: String, of names: Set<String>) -> Bool {
        guard name.hasSuffix(suffix) else { return false }
        let rest = name.dropLast(suffix.count)
        guard let dot = rest.lastIndex(of: "."), names.contains(String(rest[..<dot])) else { return false }
        let digits = rest[rest.index(after: dot)...]
        guard let process = pid_t(digits), process > 0, digits.allSatisfy(\.isNumber) else { return false }
        return process == getpid() || (kill(process, 0) != 0 && errno == ESRCH)
    }

    /// The `errno` of a failure, or 0.
    private static func fill(
        _ descriptor: CInt, _ bytes: [UInt8], _ mode: mode_t, _ owner: (user: uid_t, group: gid_t)?
    ) -> CInt {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return errno }
            rest = rest.dropFirst(count)
        }
        if let owner, fchown(descriptor, owner.user, owner.group) != 0 { return errno }
        // The umask may have cleared bits.
        guard fchmod(descriptor, mode) == 0, fsync(descriptor) == 0 else { return errno }
        return 0
    }

    /// Makes missing directories, 0700.
    static func makeDirectory(of path: String) throws(FileProblem) {
        let directory = directory(of: path)
        if mkdir(directory, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, directory != path else { throw .system(errno) }
        try makeDirectory(of: directory)
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw .system(errno) }
    }

    /// Makes the new name survive a power failure.
    private static func sync(_ directory: CInt) throws(FileProblem) {
        let descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(errno) }
        defer { close(descriptor) }
        // Some file systems can't sync a directory; the files themselves are safe.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw .system(errno) }
    }

    package static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func folder(of name: String) -> String {
        name.split(separator: "/").dropLast().joined(separator: "/")
    }
}
