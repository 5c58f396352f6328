import Glibc

/// Writing a file that others may be looking for: whole or not at all, and closed to them from its
/// first byte on.
package enum NewFile {
    /// The end of a temporary name, after the number of the process that writes.
    private static let suffix = ".new"

    /// Writes under a temporary name beside the path, syncs, and moves it into place.
    package static func write(_ bytes: [UInt8], to path: String, mode: UInt32) throws(AuthorityError) {
        let temporary = "\(path).\(getpid())\(suffix)"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw .unwritable(path: path, .system(errno)) }
        let problem = write(bytes, to: descriptor, mode: mode)
        close(descriptor)
        if problem == 0, rename(temporary, path) == 0 {
            try sync(directory: directory(of: path))
            return
        }
        let cause = problem == 0 ? errno : problem
        unlink(temporary)
        throw .unwritable(path: path, .system(cause))
    }

    /// Removes what writers that were killed have left beside these files: regular files under temporary names whose
    /// process is gone. To be called before this process writes any of them.
    /// - Returns: the names of what was removed.
    package static func removeLeftovers(of paths: [String]) -> [String] {
        var removed: [String] = []
        for (directory, paths) in Dictionary(grouping: paths, by: { directory(of: $0) }) {
            let names = Set(paths.map { String($0.split(separator: "/").last ?? "") })
            guard let stream = opendir(directory) else { continue }
            defer { closedir(stream) }
            while let entry = readdir(stream) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
                var status = stat()
                guard isLeftover(name, of: names),
                    fstatat(dirfd(stream), name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG,
                    unlinkat(dirfd(stream), name, 0) == 0
                else { continue }
                removed.append(name)
            }
        }
        return removed.sorted()
    }

    /// Whether it is `NAME.PROCESS.new` of one of the names, and no other process may be writing it.
    private static func isLeftover(_ name: String, of names: Set<String>) -> Bool {
        guard name.hasSuffix(suffix) else { return false }
        let rest = name.dropLast(suffix.count)
        guard let dot = rest.lastIndex(of: "."), names.contains(String(rest[..<dot])) else { return false }
        let digits = rest[rest.index(after: dot)...]
        guard let process = pid_t(digits), process > 0, digits.allSatisfy(\.isNumber) else { return false }
        return process == getpid() || (kill(process, 0) != 0 && errno == ESRCH)
    }

    /// The `errno` of what failed, or 0.
    private static func write(_ bytes: [UInt8], to descriptor: CInt, mode: mode_t) -> CInt {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, Array(rest), rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return errno }
            rest = rest.dropFirst(count)
        }
        // The umask may have taken bits away, never added any.
        guard fchmod(descriptor, mode) == 0, fsync(descriptor) == 0 else { return errno }
        return 0
    }

    /// Makes the file's directory and those above it, 0700, where they are missing.
    static func makeDirectory(of path: String) throws(AuthorityError) {
        let directory = directory(of: path)
        if mkdir(directory, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, directory != path else { throw .unwritable(path: directory, .system(errno)) }
        try makeDirectory(of: directory)
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
            throw .unwritable(path: directory, .system(errno))
        }
    }

    /// Waits for the lock on the file's directory; closing the descriptor gives it back. A file system
    /// that can't lock a directory (NFS) goes without.
    static func lockDirectory(of path: String) throws(AuthorityError) -> CInt {
        let directory = directory(of: path)
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unwritable(path: directory, .system(errno)) }
        while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
        return descriptor
    }

    /// Makes the new name last over a loss of power.
    private static func sync(directory: String) throws(AuthorityError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unwritable(path: directory, .system(errno)) }
        defer { close(descriptor) }
        // Some file systems can't sync a directory; the files themselves are safe.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw .unwritable(path: directory, .system(errno)) }
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
