import CPinproxyShims
import Glibc
package import PinproxyTLS

/// A directory of the proxy's own, such as the state directory. Each call walks there by a ``TrustedWalk``, and follows
/// no link below it. Files must be regular, owned by root, this process's user or the directory's owner, and not
/// writable by others. Names may have folders.
package struct TrustedDirectory: Sendable, Hashable {
    package let path: String

    package init(_ path: String) { self.path = path }

    /// Makes missing directories.
    package func create() throws(FileProblem) { _ = try TrustedWalk.open(path, creating: 0o755) }

    /// Its owner; nil if it doesn't exist, or other users can change the path.
    package var owner: UInt32? {
        guard let directory = try? TrustedWalk.open(path) else { return nil }
        return directory.owner
    }

    package func requireOwn() throws(FileProblem) {
        let directory = try TrustedWalk.open(path)
        let user = geteuid()
        guard directory.owner == user || directory.owner == 0 else {
            throw .untrusted("\(path) belongs to user \(directory.owner), and this runs as user \(user)")
        }
    }

    // MARK: Files

    package func read(_ name: String, limit: Int = SmallFile.limit) throws(FileProblem) -> SmallFile {
        try inside(name) { (folder, name) throws(FileProblem) in
            let raw = try open(name, in: folder, O_RDONLY)
            defer { close(raw) }
            return try SmallFile.read(raw, limit: limit)
        }
    }

    /// Writes a file whole or not at all. Root's files in another user's directory belong to that user.
    package func write(_ bytes: [UInt8], to name: String, mode: UInt32) throws(FileProblem) {
        try inside(name) { (folder, name) throws(FileProblem) in
            let isAnothers = folder.owner != geteuid() && geteuid() == 0
            try NewFile.write(
                bytes, to: name, in: folder.raw, mode: mode, owner: isAnothers ? (folder.owner, folder.group) : nil)
        }
    }

    /// Opens a file for change in place. The caller closes it.
    package func openForWriting(_ name: String, _ flags: CInt, mode: UInt32) throws(FileProblem) -> CInt {
        try requireOwn()
        return try inside(name) { (folder, name) throws(FileProblem) in
            let raw = try open(name, in: folder, flags | O_CREAT, mode: mode)
            var status = stat()
            guard fstat(raw, &status) == 0, status.st_nlink == 1 else {
                close(raw)
                throw .untrusted("\(folder.path)/\(name) has other names (hard links), and isn't written")
            }
            return raw
        }
    }

    /// Opens a file for reading; never a link or a pipe.
    package func openForReading(_ name: String) throws(FileProblem) -> CInt {
        try inside(name) { (folder, name) throws(FileProblem) in try open(name, in: folder, O_RDONLY) }
    }

    /// Whether the name exists, dangling links included.
    package func has(_ name: String) throws(FileProblem) -> Bool {
        do {
            return try inside(name) { (folder, name) throws(FileProblem) in
                var status = stat()
                return fstatat(folder.raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0
            }
        } catch .system(ENOENT) {
            return false
        }
    }

    /// - Returns: whether it succeeded.
    package func rename(_ name: String, to other: String) -> Bool {
        (try? inside(name) { (folder, name) throws(FileProblem) in
            renameat(folder.raw, name, folder.raw, other) == 0
        }) ?? false
    }

    /// - Returns: whether it succeeded.
    @discardableResult
    package func remove(_ name: String) -> Bool {
        (try? inside(name) { (folder, name) throws(FileProblem) in unlinkat(folder.raw, name, 0) == 0 }) ?? false
    }

    /// A folder's names, sorted; empty if it can't be read.
    package func names(in folder: String = "") -> [String] {
        guard let directory = try? TrustedWalk.open(path, folders: TrustedWalk.names(of: folder)) else { return [] }
        let raw = openat(directory.raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { return [] }
        guard let stream = fdopendir(raw) else {
            close(raw)
            return []
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    package func createFolder(_ folder: String, mode: UInt32) throws(FileProblem) {
        try create()
        _ = try TrustedWalk.open(path, folders: TrustedWalk.names(of: folder), creating: mode_t(mode))
    }

    /// Takes a lock that only this user and root can hold.
    package func lock(_ name: String) throws(FileProblem) -> FileLock {
        try inside(name) { (folder, name) throws(FileProblem) in try FileLock(name, in: folder.raw) }
    }

    /// A socket, held so that it can't be replaced before it is connected to.
    package func socket(_ name: String) throws(FileProblem) -> HeldSocket {
        try inside(name) { (folder, name) throws(FileProblem) in
            let raw = openat(folder.raw, name, shim_O_PATH | O_NOFOLLOW | O_CLOEXEC)
            guard raw >= 0 else { throw .system(errno) }
            let socket = HeldSocket(raw: raw)
            try check(raw, "\(folder.path)/\(name)", of: folder.owner, is: S_IFSOCK)
            return socket
        }
    }

    // MARK: Opening

    private func inside<Result: ~Copyable>(
        _ name: String, _ body: (borrowing OpenedDirectory, _ name: String) throws(FileProblem) -> Result
    ) throws(FileProblem) -> Result {
        var parts = TrustedWalk.names(of: name)
        guard let last = parts.popLast(), !parts.contains(".."), last != ".." else { throw .system(EINVAL) }
        return try body(try TrustedWalk.open(path, folders: parts), last)
    }

    private func open(
        _ name: String, in folder: borrowing OpenedDirectory, _ flags: CInt, mode: UInt32 = 0
    ) throws(FileProblem) -> CInt {
        // Non-blocking, for pipes without a writer.
        let raw = openat(folder.raw, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode)
        guard raw >= 0 else {
            let code = errno
            // A pipe without a reader is no file either.
            if code == ENXIO { throw .notAFile }
            throw code == ELOOP
                ? .untrusted("\(folder.path)/\(name) is a symbolic link, and isn't followed") : .system(code)
        }
        do throws(FileProblem) {
            try check(raw, "\(folder.path)/\(name)", of: folder.owner, is: S_IFREG)
            return raw
        } catch {
            close(raw)
            throw error
        }
    }

    private func check(_ raw: CInt, _ path: String, of owner: uid_t, is kind: mode_t) throws(FileProblem) {
        var status = stat()
        guard fstat(raw, &status) == 0 else { throw .system(errno) }
        if status.st_mode & S_IFMT == S_IFLNK { throw .untrusted("\(path) is a symbolic link, and isn't followed") }
        guard status.st_mode & S_IFMT == kind else {
            throw kind == S_IFREG ? .notAFile : .untrusted("\(path) is not a socket")
        }
        guard [0, geteuid(), owner].contains(status.st_uid) else {
            throw .untrusted("\(path) belongs to user \(status.st_uid)")
        }
        // A socket's permissions decide who may connect.
        guard kind != S_IFREG || status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw .untrusted("\(path) can be written by others (mode \(String(status.st_mode & 0o7777, radix: 8)))")
        }
    }
}

/// A Unix socket to connect to by ``path``.
package struct HeldSocket: ~Copyable {
    private let raw: CInt

    init(raw: CInt) { self.raw = raw }

    deinit { close(raw) }

    /// Valid while this lives.
    package var path: String { "/proc/self/fd/\(raw)" }
}
