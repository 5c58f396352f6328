internal import CPinproxyShims
internal import Glibc

struct MountError: Error {
    let code: CInt
    let path: String

    var reason: String { String(cString: strerror(code)) }

    init(at path: String) { (code, self.path) = (errno, path) }
}

/// Mounts in the namespace of this process: mount(2).
enum Mount {
    // <sys/mount.h>
    private static let (readOnly, noSetUserID, noDevices): (UInt, UInt, UInt) = (1, 2, 4)
    private static let (remount, bindMount, moved, recursive, relativeTimes): (UInt, UInt, UInt, UInt, UInt) =
        (32, 4096, 8192, 16384, 1 << 21)

    /// Shows a file or a directory, with what is mounted in there, at another place as well.
    static func bind(_ source: String, to target: String) throws(MountError) {
        guard mount(source, target, nil, bindMount | recursive, nil) == 0 else { throw MountError(at: target) }
    }

    /// With what is mounted in there.
    static func move(_ source: String, to target: String) throws(MountError) {
        guard mount(source, target, nil, moved, nil) == 0 else { throw MountError(at: target) }
    }

    /// An empty file system in memory.
    static func memory(at target: String) throws(MountError) {
        guard mount("pinproxy", target, "tmpfs", noSetUserID | noDevices, "mode=0755") == 0 else {
            throw MountError(at: target)
        }
    }

    /// Shows the entries of two directories at a place, those of the first where both have one, read-only: an overlay,
    /// which users' namespaces can have since Linux 5.11.
    static func merge(_ first: CInt, _ second: CInt, at target: String) throws(MountError) {
        let options = "lowerdir=/proc/self/fd/\(first):/proc/self/fd/\(second)"
        guard mount("pinproxy", target, "overlay", readOnly | noSetUserID | noDevices, options) == 0 else {
            throw MountError(at: target)
        }
    }

    /// Removes what was mounted there last, with all below.
    static func remove(at target: String) { umount2(target, CInt(MNT_DETACH)) }

    /// Makes the mount read-only, and keeps its other restrictions, as the kernel requires.
    static func protect(_ target: String) throws(MountError) {
        var status = statvfs()
        guard statvfs(target, &status) == 0 else { throw MountError(at: target) }
        // ST_NOSUID, ST_NODEV, ST_NOEXEC, ST_NOATIME, ST_NODIRATIME are the flags of mount(2); ST_RELATIME isn't.
        let kept = status.f_flag & (2 | 4 | 8 | 1024 | 2048) | (status.f_flag & 4096 != 0 ? relativeTimes : 0)
        guard mount(nil, target, nil, remount | bindMount | readOnly | kept, nil) == 0 else {
            throw MountError(at: target)
        }
    }
}
