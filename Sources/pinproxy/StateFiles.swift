internal import FoundationEssentials
internal import Glibc
internal import Proxy
internal import Security

/// The files that the running proxy leaves in the state directory for the other commands.
struct StateFiles {
    let directory: String

    var processID: String { directory + "/pinproxy.pid" }
    var controlSocket: String { ControlSocket.path(in: directory) }
    var runSocket: String { RunSocket.path(in: directory) }
    /// The log of the proxy that `pinproxy exec --start` has started last.
    var execLog: String { directory + "/exec.log" }
    /// Those of ``TrustFiles``, of every authority. Stores are named by what is in them: those that are there, whole or in part.
    private var trustFiles: [String] {
        let keys = (try? FileManager.default.contentsOfDirectory(atPath: directory + "/trust")) ?? []
        return keys.map(trustFolder).flatMap { folder in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            let stores = names.compactMap { $0.prefixMatch(of: /java-[0-9a-f]{12}\.p12/).map { String($0.output) } }
            return (TrustFiles.names + ProgramFiles.names + stores).map { "\(folder)/\($0)" }
        }
    }

    /// Those that are written beside their place and moved there.
    var files: [String] {
        [
            ChainRecorder.file(in: directory).path,
            StateFile<PinHistory>(PinHistory.fileName, in: directory).path,
        ] + trustFiles
    }

    /// Makes the directory if it isn't there. Others may read in it (the authority's certificate
    /// is for everybody); its key has permissions of its own.
    func create() throws {
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        } catch {
            throw CommandFailure("the state directory \(directory) can't be created: \(systemReason())")
        }
    }
}

/// The lock that keeps a second proxy out of a state directory. The system releases it when the
/// process ends, however it ends, so that a stale file is never taken for a running proxy.
///
/// A disk that is full or can't be written is no reason to leave a machine without its proxy: then there is a lock without
/// the process id, or none, and ``problem`` says why.
final class ProcessLock {
    private let descriptor: Int32
    /// Why other commands can't find this process by its file; nil: they can.
    let problem: String?

    /// - Parameter path: made if it isn't there; holds the process id.
    /// - Throws: if another process has the lock.
    init(_ path: String) throws {
        var problem: String?
        var descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        if descriptor < 0 {
            problem = systemReason()
            descriptor = open(path, O_RDONLY | O_CLOEXEC)
        }
        if descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
            let holder = Self.holder(path).map { " (process \($0))" } ?? ""
            close(descriptor)
            throw CommandFailure("another pinproxy\(holder) is running with this state directory: \(path) is locked")
        }
        // Over the old number, and cut afterwards: on a full disk the old one's room is there.
        let text = Array("\(getpid())\n".utf8)
        if problem == nil, pwrite(descriptor, text, text.count, 0) != text.count || ftruncate(descriptor, off_t(text.count)) != 0 {
            problem = systemReason()
        }
        self.descriptor = descriptor
        self.problem = problem
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The process that holds the lock; nil if none does.
    static func holder(_ path: String) -> pid_t? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return nil }
        var text = [UInt8](repeating: 0, count: 32)
        let count = read(descriptor, &text, text.count)
        guard count > 0 else { return nil }
        let digits = String(decoding: text[..<count], as: UTF8.self).prefix { $0.isNumber }
        return pid_t(digits).flatMap { $0 > 0 ? $0 : nil }
    }
}
