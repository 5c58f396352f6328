import Glibc

/// The directory of a store, held open and locked: the index, and a folder with a file for each body.
///
/// The directory itself is locked: there is no lock file that could be deleted. The lock ends with the process.
struct StoreDirectory: ~Copyable {
    static let index = "index.sqlite"
    /// Numbers beyond are mutated ones. The next number can't overflow.
    static let lastID: Int64 = 1 << 53
    static let setAside = "index.damaged"
    private static let bodies = "bodies"

    let path: String
    private let directory: CInt
    private let bodies: CInt

    /// Makes what is missing, for this user alone.
    init(_ path: String) throws(DirectoryRefusal) {
        // The last component alone is made: who names the path decides about those before it.
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw .disk(path: path, .system("mkdir", errno)) }
        let directory = try Self.open(path, in: AT_FDCWD, path)
        do throws(DirectoryRefusal) {
            // Without locks in the file system SQLite's own lock still keeps a second process out.
            if flock(directory, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK { throw .inUse(path: path) }
            if mkdirat(directory, Self.bodies, 0o700) != 0, errno != EEXIST {
                throw .disk(path: path, .system("mkdir", errno))
            }
            bodies = try Self.open(Self.bodies, in: directory, "\(path)/\(Self.bodies)")
        } catch {
            close(directory)
            throw error
        }
        self.path = path
        self.directory = directory
    }

    deinit {
        close(bodies)
        // Closing isn't enough: a child between fork and exec still has the descriptor, and with it the lock.
        flock(directory, LOCK_UN)
        close(directory)
    }

    private static func open(_ name: String, in parent: CInt, _ path: String) throws(DirectoryRefusal) -> CInt {
        let raw = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard raw >= 0 else {
            let code = errno
            var status = stat()
            if code == ENOTDIR, fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
                let isLink = status.st_mode & S_IFMT == S_IFLNK
                throw .untrusted(path: path, isLink ? "a symbolic link, which isn't followed" : "not a directory")
            }
            throw .disk(path: path, .system("open", code))
        }
        var status = stat()
        let problem: DirectoryRefusal? =
            if fstat(raw, &status) != 0 {
                .disk(path: path, .system("fstat", errno))
            } else if status.st_uid != geteuid() {
                .untrusted(path: path, "it belongs to user \(status.st_uid), and this runs as user \(geteuid())")
            } else if status.st_mode & (S_IWGRP | S_IWOTH) != 0 {
                .untrusted(path: path, "others can write to it (mode \(String(status.st_mode & 0o7777, radix: 8)))")
            } else if status.st_mode & 0o077 != 0, fchmod(raw, 0o700) != 0 {
                .disk(path: path, .system("chmod", errno))
            } else {
                nil
            }
        if let problem {
            close(raw)
            throw problem
        }
        return raw
    }

    // MARK: The index

    /// Makes the index's file if it is missing, for this user alone: SQLite gives its log the same permissions.
    /// - Returns: the path for SQLite, without links, and whether the file is new.
    func prepareIndex() throws(DiskProblem) -> (path: String, isNew: Bool) {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        guard readlink("/proc/self/fd/\(directory)", &target, Int(PATH_MAX)) > 0 else {
            throw .system("readlink", errno)
        }
        let path = target.withUnsafeBufferPointer { String(cString: $0.baseAddress!) } + "/" + Self.index
        var status = stat()
        let isSuitable =
            fstatat(directory, Self.index, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mode & S_IFMT == S_IFREG
            && status.st_uid == geteuid() && status.st_nlink == 1 && status.st_mode & 0o077 == 0 && status.st_size > 0
        if isSuitable { return (path, false) }
        // An old log must not be taken for the new file's.
        try removeIndex()
        let raw = openat(directory, Self.index, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard raw >= 0 else { throw .system("open", errno) }
        close(raw)
        return (path, true)
    }

    /// - Returns: the index's new path; nil: there was none.
    func setIndexAside() throws(DiskProblem) -> String? {
        try remove(Self.setAside, in: directory)
        guard renameat(directory, Self.index, directory, Self.setAside) == 0 || errno == ENOENT else {
            throw .system("rename", errno)
        }
        try removeIndex()
        return has(Self.setAside, in: directory) ? "\(path)/\(Self.setAside)" : nil
    }

    func removeIndex() throws(DiskProblem) {
        for name in ["", "-wal", "-shm", "-journal"] { try remove(Self.index + name, in: directory) }
    }

    func removeSetAside() throws(DiskProblem) { try remove(Self.setAside, in: directory) }

    private func has(_ name: String, in parent: CInt) -> Bool {
        var status = stat()
        return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// The inode of a file of ``names``, to notice its replacement; 0: it is missing.
    private func number(_ name: String) -> ino_t {
        var status = stat()
        return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0
    }

    /// The files that SQLite holds open now.
    var indexFiles: [UInt64] { [Self.index, Self.index + "-wal"].map { UInt64(number($0)) } }

    /// The file that was deleted or replaced since it was opened; nil: none.
    func missing(_ files: [UInt64]) -> String? {
        if !isSame(path, in: AT_FDCWD, directory) { return path }
        if !isSame(Self.bodies, in: directory, bodies) { return "\(path)/\(Self.bodies)" }
        return indexFiles == files ? nil : "\(path)/\(Self.index)"
    }

    private func isSame(_ name: String, in parent: CInt, _ raw: CInt) -> Bool {
        var (named, held) = (stat(), stat())
        return fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(raw, &held) == 0
            && named.st_ino == held.st_ino && named.st_dev == held.st_dev
    }

    // MARK: Bodies

    func createBody(_ id: Int64) throws(DiskProblem) -> BodyFile {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        var raw = openat(bodies, Self.name(id), flags, 0o600)
        if raw < 0, errno == EEXIST {
            // A leftover that couldn't be removed so far.
            unlinkat(bodies, Self.name(id), 0)
            raw = openat(bodies, Self.name(id), flags, 0o600)
        }
        guard raw >= 0 else { throw .system("open", errno) }
        return BodyFile(raw: raw)
    }

    /// - Returns: nil if it is missing or not a regular file.
    func openBody(_ id: Int64) throws(DiskProblem) -> BodyFile? {
        // Non-blocking: a pipe without a writer would wait for one.
        let raw = openat(bodies, Self.name(id), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard raw >= 0 else {
            if errno == ENOENT || errno == ELOOP || errno == ENXIO { return nil }
            throw .system("open", errno)
        }
        let file = BodyFile(raw: raw)
        guard file.isRegular else { return nil }
        return file
    }

    func hasBody(_ id: Int64) -> Bool { has(Self.name(id), in: bodies) }

    func removeBody(_ id: Int64) { unlinkat(bodies, Self.name(id), 0) }

    /// Calls `visit` for each body's file. Others are removed, if they aren't folders with something in them.
    /// - Returns: how many were.
    func visitBodies(_ visit: (_ id: Int64) -> Void) throws(DiskProblem) -> Int {
        let raw = openat(bodies, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0, let stream = fdopendir(raw) else {
            let code = errno
            if raw >= 0 { close(raw) }
            throw .system("open", code)
        }
        defer { closedir(stream) }
        var strangers = 0
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name == "." || name == ".." { continue }
            if let id = Int64(name, radix: 16), Self.name(id) == name, (1...Self.lastID).contains(id) {
                visit(id)
            } else if (try? remove(name, in: bodies)) != nil {
                strangers += 1
            }
        }
        return strangers
    }

    private static func name(_ id: Int64) -> String { String(id, radix: 16) }

    /// Whole, if it is a directory.
    private func remove(_ name: String, in parent: CInt) throws(DiskProblem) {
        if unlinkat(parent, name, 0) == 0 || errno == ENOENT { return }
        let code = errno
        guard code == EISDIR || code == EPERM, unlinkat(parent, name, AT_REMOVEDIR) == 0 else {
            throw .system("unlink", code)
        }
    }
}
