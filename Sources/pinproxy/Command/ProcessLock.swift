internal import Glibc
internal import PinproxySecurity
internal import PinproxyTLS

/// The lock that keeps a second proxy out of a state directory. It ends with the process: a stale file means nothing.
///
/// Two files are locked. `pinproxy.lock` is for this user and root alone: others can't block the proxy's start.
/// Everybody may read `pinproxy.pid`, which holds the process id while it is locked.
///
/// A full or unwritable disk doesn't prevent a start: the process id or the lock is then missing (``problem``).
final class ProcessLock {
    private static let name = "pinproxy.lock"
    /// Waits for processes that hold the lock for a moment, to see whether it is held.
    private static let patience: Duration = .seconds(1)

    private let lock: Int32
    private let processID: Int32
    /// Why other commands can't find this process by its file; nil: they can.
    let problem: String?

    /// - Throws: if another process has the lock, also after `patience`.
    init(_ directory: TrustedDirectory, within patience: Duration = .zero) throws {
        let (lock, lockProblem) = Self.open(Self.name, in: directory, mode: 0o600)
        if lock >= 0, !Self.obtain(lock, within: patience) {
            let holder = Self.holder(in: directory).map { " (process \($0))" } ?? ""
            close(lock)
            throw CommandFailure(
                """
                another pinproxy\(holder) is running with this state directory: \(directory.path)/\(Self.name) is \
                locked
                """
            )
        }
        let (processID, problem) = Self.open(StateFiles.processID, in: directory, mode: 0o644)
        self.lock = lock
        self.processID = processID
        let marked = Self.mark(processID, isWritable: problem == nil)
        self.problem = lockProblem ?? problem ?? marked
    }

    deinit {
        for descriptor in [processID, lock] where descriptor >= 0 { close(descriptor) }
    }

    /// - Returns: -1 if it can't be opened at all, and why it can't be written.
    private static func open(
        _ name: String, in directory: TrustedDirectory, mode: UInt32
    ) -> (descriptor: CInt, problem: String?) {
        do throws(FileProblem) {
            return (try directory.openForWriting(name, O_RDWR, mode: mode), nil)
        } catch {
            return ((try? directory.openForReading(name)) ?? -1, "\(error)")
        }
    }

    /// Locks the file and writes this process's number into it. Returns why that failed; nil: it didn't.
    private static func mark(_ descriptor: CInt, isWritable: Bool) -> String? {
        guard descriptor >= 0 else { return nil }
        guard obtain(descriptor, within: patience) else { return "another process holds its lock" }
        guard isWritable else { return nil }
        // Over the old number, and cut afterwards: on a full disk the old one's room is there.
        let text = Array("\(getpid())\n".utf8)
        let isWritten =
            pwrite(descriptor, text, text.count, 0) == text.count && ftruncate(descriptor, off_t(text.count)) == 0
        return isWritten ? nil : systemReason()
    }

    /// - Returns: false if another process has the lock for all that time. A lock that the file system doesn't know
    ///   counts as had.
    private static func obtain(_ descriptor: CInt, within patience: Duration) -> Bool {
        let end = ContinuousClock.now + patience
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK || errno == EINTR {
            guard ContinuousClock.now < end else { return false }
            usleep(10_000)
        }
        return true
    }

    /// The process that holds the lock; nil if none does.
    static func holder(in directory: TrustedDirectory) -> pid_t? {
        guard let descriptor = try? directory.openForReading(StateFiles.processID) else { return nil }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return nil }
        var text = [UInt8](repeating: 0, count: 32)
        let count = read(descriptor, &text, text.count)
        guard count > 0 else { return nil }
        let digits = String(decoding: text[..<count], as: UTF8.self).prefix { $0.isNumber }
        return pid_t(digits).flatMap { $0 > 0 ? $0 : nil }
    }
}
