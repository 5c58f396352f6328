import Foundation
import Synchronization
import Testing

/// A private network for a test, with nothing in it but a loopback that is down. It lives as long as this object and
/// needs no clean-up, even if the test process is killed.
final class NetworkNamespace: Sendable {
    /// Whether this process may make a namespace.
    static let isAvailable: Bool = (try? NetworkNamespace()) != nil
    static let why: Comment = "needs root (or CAP_SYS_ADMIN) and ip(8) to make network namespaces"

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// One thread is in the namespace, and so is everything that it starts.
    private final class Work: Sendable {
        let pending = Mutex<[@Sendable () -> Void]>([])
        let isOver = Mutex(false)
        let isThere = DispatchSemaphore(value: 0)
    }
    private let work = Work()

    init() throws {
        let work = work
        let thread = Thread {
            while !work.isOver.withLock({ $0 }) {
                work.isThere.wait()
                for one in work.pending.withLock({ pending in
                    let all = pending
                    pending = []
                    return all
                }) { one() }
            }
        }
        thread.start()
        do {
            try perform { try Self.leave() }
            try ip("link show lo")
        } catch {
            end()
            throw error
        }
    }

    deinit { end() }

    private func end() {
        work.isOver.withLock { $0 = true }
        work.isThere.signal()
    }

    /// Runs work on the thread in the namespace, and waits for it. Threads and programs started there are in the
    /// namespace too.
    @discardableResult
    func perform<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
        let result = Mutex<Result<Value, any Error>?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        let box = Box(result)
        work.pending.withLock {
            $0.append {
                let value = Result { try body() }
                box.result.withLock { $0 = value }
                isDone.signal()
            }
        }
        work.isThere.signal()
        isDone.wait()
        return try box.result.withLock { try $0!.get() }
    }

    private final class Box<Value: Sendable>: Sendable {
        let result: Mutex<Value?>
        init(_ result: consuming Mutex<Value?>) { self.result = result }
    }

    /// Runs `ip` with these arguments, separated by spaces.
    func ip(_ arguments: String) throws { try ip(batch: [arguments]) }

    /// Runs `ip` once for many commands, as fast as possible.
    func ip(batch commands: [String]) throws {
        let text = commands.joined(separator: "\n") + "\n"
        let (status, errors) = try perform { try Self.runIP(input: text) }
        guard status == 0 else { throw Failure(description: "ip: \(commands.first ?? "") …: \(errors)") }
    }

    /// Not Foundation's Process, which needs sockets that a namespace without loopback doesn't have.
    private static func runIP(input: String) throws -> (status: CInt, errors: String) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let (inputFile, errorFile) = (try temporaryFile(), try temporaryFile())
        defer { for file in [inputFile, errorFile] { close(file) } }
        _ = Array(input.utf8).withUnsafeBytes { write(inputFile, $0.baseAddress, $0.count) }
        lseek(inputFile, 0, SEEK_SET)
        posix_spawn_file_actions_adddup2(&actions, inputFile, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, errorFile, 2)
        var arguments: [UnsafeMutablePointer<CChar>?] =
            ["ip", "-batch", "-"].map { (text: String) in strdup(text) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        let failure = posix_spawnp(&child, "ip", &actions, nil, &arguments, environ)
        guard failure == 0 else { throw Failure(description: "ip: \(String(cString: strerror(failure)))") }
        var status: CInt = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        var errors = [UInt8](repeating: 0, count: 4096)
        let count = pread(errorFile, &errors, errors.count, 0)
        return (status, String(decoding: errors.prefix(max(count, 0)), as: UTF8.self))
    }

    private static func temporaryFile() throws -> CInt {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("ip-\(UUID().uuidString)").path
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure(description: "\(path): \(String(cString: strerror(errno)))") }
        unlink(path)
        return descriptor
    }

    /// unshare(2), which Swift's Glibc module leaves out: moves the calling thread into a new network.
    private static func leave() throws {
        typealias Unshare = @convention(c) (CInt) -> CInt
        guard let symbol = dlsym(nil, "unshare") else { throw Failure(description: "no unshare(2)") }
        let CLONE_NEWNET: CInt = 0x4000_0000
        guard unsafeBitCast(symbol, to: Unshare.self)(CLONE_NEWNET) == 0 else {
            throw Failure(description: "unshare: \(String(cString: strerror(errno)))")
        }
    }
}
