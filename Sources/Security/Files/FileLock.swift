import Glibc
import PinproxyTLS

/// A file locked while this lives, and then removed. Other users can't open it. Without locks in the file system (NFS)
/// it locks nothing.
package final class FileLock {
    private static let patience: Duration = .seconds(10)

    private let raw: CInt
    private let directory: CInt
    private let name: String

    /// Waits some seconds for the lock, then throws EWOULDBLOCK. `directory` stays the caller's.
    init(_ name: String, in directory: CInt) throws(FileProblem) {
        raw = try Self.take(name, in: directory)
        self.directory = fcntl(directory, F_DUPFD_CLOEXEC, 0)
        self.name = name
    }

    deinit {
        // Without a descriptor the file stays, which is harmless.
        if directory >= 0 {
            unlinkat(directory, name, 0)
            close(directory)
        }
        close(raw)
    }

    private static func take(_ name: String, in directory: CInt) throws(FileProblem) -> CInt {
        let end = ContinuousClock.now + patience
        while true {
            let raw = openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
            guard raw >= 0 else { throw .system(errno) }
            while flock(raw, LOCK_EX | LOCK_NB) != 0, errno == EINTR || errno == EWOULDBLOCK {
                guard ContinuousClock.now < end else {
                    close(raw)
                    throw .system(EWOULDBLOCK)
                }
                usleep(1000)
            }
            var (held, named) = (stat(), stat())
            if fstat(raw, &held) == 0, fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0,
                held.st_ino == named.st_ino,
                held.st_dev == named.st_dev
            {
                return raw
            }
            // The last holder removed the name, and another process may hold the lock now.
            close(raw)
            guard ContinuousClock.now < end else { throw .system(EWOULDBLOCK) }
        }
    }
}
