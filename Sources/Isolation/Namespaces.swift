internal import CPinproxyShims
internal import Glibc

/// Moves this process, which must have only one thread, into private namespaces (namespaces(7)). If the kernel demands
/// it, one of them is a user namespace (user_namespaces(7)), with the same IDs as outside.
enum Namespaces {
    // <sched.h>, <sys/mount.h>
    private static let (newMounts, newUsers, newNetwork): (CInt, CInt, CInt) = (0x2_0000, 0x1000_0000, 0x4000_0000)
    private static let (recursive, slave): (UInt, UInt) = (16384, 1 << 19)

    /// Sockets of name services outside: nscd, systemd-resolved (nss-resolve(8)), Avahi. Paths leave the namespace.
    static let nameServices = [
        "/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve", "/run/avahi-daemon/socket",
    ]

    /// Has the user's other IDs mapped from outside, once there is a user namespace.
    typealias Mapping = () throws(IsolationError) -> SubordinateIDs.Mapped

    /// - Parameters:
    ///   - mounts: whether mounts will follow.
    ///   - map: nil: only this user's own ID is mapped.
    static func enterNetwork(mounts: Bool, _ map: Mapping?) throws(IsolationError) {
        let hidden = nameServices.filter { access($0, F_OK) == 0 }
        let mounts = mounts || !hidden.isEmpty
        let wanted = newNetwork | (mounts ? newMounts : 0)
        // Root keeps its rights.
        if geteuid() != 0 || unshare(wanted) != 0 { try enterAsUser(wanted, .network, map) }
        if mounts { try detachMounts() }
        for path in hidden { try hide(path) }
    }

    /// Enters a private mount namespace only.
    /// - Parameter keepsRights: root is not moved into a user namespace, where it would be root of nothing else.
    static func enterMounts(keepsRights: Bool, _ map: Mapping?) throws(IsolationError) {
        if geteuid() != 0 {
            try enterAsUser(newMounts, .mount, map)
        } else if unshare(newMounts) != 0 {
            if keepsRights { throw NamespaceRefusal.error(errno, of: .mount, ProcFiles.number) }
            try enterAsUser(newMounts, .mount, map)
        }
        try detachMounts()
    }

    private static func enterAsUser(
        _ wanted: CInt, _ kind: NamespaceRefusal.Kind, _ map: Mapping?
    ) throws(IsolationError) {
        let (user, group) = (geteuid(), getegid())
        guard unshare(newUsers) == 0 else { throw NamespaceRefusal.error(errno, of: .user, ProcFiles.number) }
        let mapped = try map?() ?? []
        if !mapped.contains(.users) { try write("\(user) \(user) 1", to: "/proc/self/uid_map") }
        if !mapped.contains(.groups) {
            // Without it only root outside may map groups.
            try write("deny", to: "/proc/self/setgroups")
            try write("\(group) \(group) 1", to: "/proc/self/gid_map")
        }
        if mapped == [.users, .groups] { try SubordinateIDs.keepCapabilities() }
        guard unshare(wanted) == 0 else { throw NamespaceRefusal.error(errno, of: kind, ProcFiles.number) }
    }

    private static func write(_ text: String, to path: String) throws(IsolationError) {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw NamespaceRefusal.error(errno, of: .user, ProcFiles.number) }
        defer { close(descriptor) }
        guard Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count else {
            throw NamespaceRefusal.error(errno, of: .user, ProcFiles.number)
        }
    }

    /// Later mounts outside are visible here, but not the reverse.
    private static func detachMounts() throws(IsolationError) {
        guard mount("none", "/", nil, recursive | slave, nil) == 0 else {
            throw IsolationError("can't make mounts private to the command: \(String(cString: strerror(errno)))")
        }
    }

    /// Covers a socket with /dev/null, for this process and its children.
    private static func hide(_ path: String) throws(IsolationError) {
        do throws(MountError) {
            try Mount.bind("/dev/null", to: path)
        } catch {
            throw IsolationError("\(path), a socket of a name service outside, can't be hidden: \(error.reason)")
        }
    }
}

enum ProcFiles {
    /// The number in a file below /proc/sys; nil if there is no such file.
    static func number(_ name: String) -> Int? {
        guard let file = fopen("/proc/sys/" + name, "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 32)
        guard fgets(&line, CInt(line.count), file) != nil else { return nil }
        return Int(strtol(line, nil, 10))
    }
}
