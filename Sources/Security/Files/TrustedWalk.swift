import CPinproxyShims
import Glibc
import PinproxyTLS

/// Opens a directory step by step from the root: no other user can redirect it. Each name is opened within the
/// directory before it (openat(2)) and checked before the next one.
///
/// - A directory belongs to root or this process's user, and nobody else may write in it unless it is sticky (`/tmp`).
/// - A symbolic link is followed if root or this user made it.
/// - Below another user's directory everything belongs to that user, and no link is followed. Commands may read there;
///   new files are given to that user.
struct TrustedWalk {
    private static let linkLimit = 40

    private let user = geteuid()
    /// The other user, once the path enters their directory.
    private var other: uid_t?
    private var linkCount = 0
    /// The path so far, for messages.
    private var shown = ""

    /// - Parameters:
    ///   - folders: below the path, without links.
    ///   - creating: permissions of missing directories, less the umask; nil: make none.
    static func open(
        _ path: String, folders: [String] = [], creating: mode_t? = nil
    ) throws(FileProblem) -> OpenedDirectory {
        var walk = TrustedWalk()
        var place = try walk.enter(try absolute(path), creating: creating)
        for folder in folders { place = try walk.step(to: folder, in: place.raw, creating: creating) }
        return place
    }

    /// The names of a path by its bytes, as the kernel has it: a combining mark is one character with the slash before.
    static func names(of path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }

    private static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

    private static func absolute(_ path: String) throws(FileProblem) -> String {
        if isAbsolute(path) { return path }
        guard let current = getcwd(nil, 0) else { throw .system(errno) }
        defer { free(current) }
        return "\(String(cString: current))/\(path)"
    }

    private mutating func enter(_ path: String, creating: mode_t?) throws(FileProblem) -> OpenedDirectory {
        var names = Array(Self.names(of: path).reversed())
        var place = try root()
        while let name = names.popLast() {
            if name == "." { continue }
            guard let target = try target(ofLink: name, in: place.raw) else {
                place = try step(to: name, in: place.raw, creating: creating)
                continue
            }
            linkCount += 1
            guard linkCount <= Self.linkLimit else { throw .system(ELOOP) }
            if Self.isAbsolute(target) { place = try root() }
            names += Self.names(of: target).reversed()
        }
        return place
    }

    private mutating func root() throws(FileProblem) -> OpenedDirectory {
        shown = ""
        other = nil
        return try examine(Glibc.open("/", shim_O_PATH | O_DIRECTORY | O_CLOEXEC), "/")
    }

    /// A symbolic link's target; nil: not a link.
    private func target(ofLink name: String, in directory: CInt) throws(FileProblem) -> String? {
        var status = stat()
        guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFLNK else {
            return nil
        }
        let link = openat(directory, name, shim_O_PATH | O_NOFOLLOW | O_CLOEXEC)
        guard link >= 0 else { throw .system(errno) }
        defer { close(link) }
        guard fstat(link, &status) == 0 else { throw .system(errno) }
        // It may have been replaced.
        guard status.st_mode & S_IFMT == S_IFLNK else { return nil }
        guard other == nil, isTrusted(status.st_uid) else {
            throw .untrusted(
                "\(shown)/\(name) is a symbolic link that user \(status.st_uid) has made, and isn't followed")
        }
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let count = readlinkat(link, "", &bytes, bytes.count - 1)
        guard count >= 0 else { throw .system(errno) }
        return String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private mutating func step(
        to name: String, in directory: CInt, creating: mode_t?
    ) throws(FileProblem) -> OpenedDirectory {
        let flags = shim_O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC
        var raw = openat(directory, name, flags)
        if raw < 0, errno == ENOENT, let creating, other == nil || user == 0 {
            guard mkdirat(directory, name, creating) == 0 || errno == EEXIST else { throw .system(errno) }
            raw = openat(directory, name, flags)
            if raw >= 0, let other, Self.owner(of: raw) == user { try give(raw, to: other) }
        }
        shown += "/\(name)"
        let code = errno
        // With O_DIRECTORY a link gives ENOTDIR.
        if raw < 0, code == ENOTDIR, isLink(name, in: directory) {
            throw .untrusted("\(shown) is a symbolic link, and isn't followed")
        }
        errno = code
        return try examine(raw, shown)
    }

    private func isLink(_ name: String, in directory: CInt) -> Bool {
        var status = stat()
        return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    private static func owner(of descriptor: CInt) -> uid_t? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.st_uid : nil
    }

    /// Gives a directory that root made in another user's directory to that user.
    private func give(_ raw: CInt, to owner: uid_t) throws(FileProblem) {
        guard fchownat(raw, "", owner, gid_t.max, shim_AT_EMPTY_PATH) == 0 else {
            let code = errno
            close(raw)
            throw .system(code)
        }
    }

    /// - Parameter raw: is taken over; negative: `errno` says why opening failed.
    private mutating func examine(_ raw: CInt, _ path: String) throws(FileProblem) -> OpenedDirectory {
        guard raw >= 0 else { throw .system(errno) }
        var status = stat()
        guard fstat(raw, &status) == 0 else {
            let code = errno
            close(raw)
            throw .system(code)
        }
        let directory = OpenedDirectory(raw: raw, path: path, owner: status.st_uid, group: status.st_gid)
        if let openness = openness(status) {
            throw .untrusted(
                "\(path) can be written by \(openness) (mode \(String(status.st_mode & 0o7777, radix: 8)))")
        }
        if let other {
            guard status.st_uid == other else {
                throw .untrusted("\(path) belongs to user \(status.st_uid), in a directory of user \(other)")
            }
        } else if !isTrusted(status.st_uid) {
            other = status.st_uid
        }
        return directory
    }

    private func isTrusted(_ owner: uid_t) -> Bool {
        owner == 0 || owner == user || (owner == Self.overflow && !Self.knowsRoot)
    }

    /// Users other than its owner who can replace its entries; nil: none.
    private func openness(_ status: stat) -> String? {
        if status.st_mode & S_ISVTX != 0 { return nil }
        if status.st_mode & S_IWOTH != 0 { return "everybody" }
        return status.st_mode & S_IWGRP != 0 && !isTrusted(group: status) ? "group \(status.st_gid)" : nil
    }

    /// Root's group, a user's own group (same ID), and in root's directories a group of this process.
    private func isTrusted(group status: stat) -> Bool {
        if status.st_gid == 0 || status.st_gid == status.st_uid { return true }
        return user != 0 && status.st_uid == 0 && Self.groups.contains(status.st_gid)
    }

    private static var groups: Set<gid_t> {
        var groups = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        let count = getgroups(CInt(groups.count), &groups)
        return Set(groups.prefix(max(0, Int(count)))).union([getegid()])
    }

    /// Appears for users without an ID in this user namespace.
    private static let overflow: uid_t = 65534

    /// False in a user namespace without root, where root's files appear as the overflow user's.
    private static let knowsRoot: Bool = {
        guard let map = try? SmallFile.read("/proc/self/uid_map") else { return true }
        let lines = String(decoding: map.bytes, as: UTF8.self).split(separator: "\n")
        return lines.contains { $0.split(separator: " ").first == "0" }
    }()
}

struct OpenedDirectory: ~Copyable {
    /// Opened with O_PATH.
    let raw: CInt
    let path: String
    let owner: uid_t
    let group: gid_t

    deinit { close(raw) }
}
