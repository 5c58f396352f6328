import Foundation
import Synchronization

/// A program that a test starts: its output is collected by lines, and it cannot outlive the tests.
///
/// The thread that starts the program also waits for it, and `setpriv --pdeathsig` ties the two, so
/// that a crash of the test process leaves no peer behind.
final class ChildProcess: Sendable {
    enum Ending: Sendable, Equatable, CustomStringConvertible {
        case exited(Int32)
        case signalled(Int32)

        var description: String {
            switch self {
            case .exited(let code): "exit code \(code)"
            case .signalled(let signal): "signal \(signal)"
            }
        }
    }

    let identifier: pid_t
    /// Standard output and standard error, with one log each.
    let output = LineLog()
    let errors = LineLog()
    private let arguments: [String]
    private let end: Once<Ending>
    private let wasToldToEnd = Atomic(false)

    /// - Parameters:
    ///   - arguments: the program, looked up in the environment's PATH, and its arguments.
    ///   - environment: the whole environment; nothing is inherited.
    ///   - input: the program's standard input.
    ///   - inherited: descriptors that the program gets as 3, 4, …
    ///   - mergingErrors: standard error goes to `output` too.
    init(
        _ arguments: [String], environment: [String: String], directory: String,
        input: [UInt8] = [], inherited: [CInt] = [],
        mergingErrors: Bool = false
    ) async throws {
        self.arguments = arguments
        let end = Once<Ending>()
        self.end = end
        let standardOutput = try Pipe()
        let standardError = try Pipe()
        let standardInput = try Self.inputFile(input, in: directory)
        defer {
            close(standardInput)
            close(standardOutput.writing)
            close(standardError.writing)
        }
        let started = Once<Result<pid_t, TestBedError>>()
        let descriptors =
            [
                standardInput, standardOutput.writing,
                mergingErrors ? standardOutput.writing : standardError.writing,
            ] + inherited
        Thread.detachNewThread {
            let result = Self.spawn(
                ["/usr/bin/setpriv", "--pdeathsig", "TERM", "--", "/usr/bin/env", "-C", directory]
                    + arguments,
                environment: environment, descriptors: descriptors)
            started.settle(result)
            guard case .success(let identifier) = result else { return }
            var status: CInt = 0
            while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
            end.settle(
                status & 0x7f == 0 ? .exited((status >> 8) & 0xff) : .signalled(status & 0x7f))
        }
        do {
            identifier = try await started.value.get()
        } catch {
            close(standardOutput.reading)
            close(standardError.reading)
            throw error
        }
        output.collect(from: standardOutput.reading)
        errors.collect(from: standardError.reading)
    }

    /// How it ended; waits for it, within the bound of every wait.
    func ending(within bound: DispatchTimeInterval = .seconds(120)) async throws -> Ending {
        try await end.value(within: bound, awaiting: "the end of \(arguments.joined(separator: " "))")
    }

    func send(signal: CInt) {
        if signal != SIGHUP { wasToldToEnd.store(true, ordering: .relaxed) }
        if end.settled == nil { kill(identifier, signal) }
    }

    /// How it ended, unless it was asked to.
    var unaskedEnding: Ending? { wasToldToEnd.load(ordering: .relaxed) ? nil : end.settled }

    /// Kills the program and all that it started, and waits until it has exited.
    func stop() async {
        wasToldToEnd.store(true, ordering: .relaxed)
        if end.settled == nil { kill(-identifier, SIGKILL) }
        _ = await end.value
    }

    private static func spawn(
        _ arguments: [String], environment: [String: String], descriptors: [CInt]
    ) -> Result<pid_t, TestBedError> {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // First moves them past the low numbers, and past each other, then to their places.
        let unused = max(descriptors.max() ?? 0, CInt(descriptors.count)) + 1
        let parked = descriptors.indices.map { unused + CInt($0) }
        for (descriptor, place) in zip(descriptors, parked) {
            posix_spawn_file_actions_adddup2(&actions, descriptor, place)
        }
        for (index, place) in parked.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, place, CInt(index))
        }
        // Closes all other descriptors. Foundation detects the exit of its processes by a pipe, and a program that runs
        // as long as the tests would keep the other end open.
        let open =
            (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.compactMap { CInt($0) }.max() ?? 0
        for place in CInt(descriptors.count)...max(open + 64, parked.last ?? 0, 1024) {
            posix_spawn_file_actions_addclose(&actions, place)
        }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

        var argumentPointers = arguments.map { strdup($0) } + [nil]
        var environmentPointers = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for pointer in argumentPointers + environmentPointers { free(pointer) } }
        var identifier: pid_t = 0
        let code = forking.withLock { _ in
            posix_spawn(
                &identifier, arguments[0], &actions, &attributes, &argumentPointers,
                &environmentPointers)
        }
        return code == 0
            ? .success(identifier)
            : .failure(TestBedError("cannot start \(arguments): \(String(cString: strerror(code)))"))
    }

    /// An unnamed file with the program's input.
    private static func inputFile(_ input: [UInt8], in directory: String) throws -> CInt {
        let name = "\(directory)/input-\(UUID())"
        let file = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        unlink(name)
        guard file >= 0, write(file, input, input.count) == input.count else {
            throw TestBedError("cannot hold \(input.count) bytes of standard input")
        }
        lseek(file, 0, SEEK_SET)
        return file
    }

    /// No program may start between creating a pipe and marking it not to be inherited. It would hold the pipe open,
    /// and its end would never be seen.
    private static let forking = Mutex(())

    private struct Pipe {
        let reading: CInt
        let writing: CInt

        init() throws {
            var ends: [CInt] = [-1, -1]
            let made = forking.withLock { _ in
                pipe(&ends) == 0 && ends.allSatisfy { fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }
            }
            guard made else { throw TestBedError("pipe: \(String(cString: strerror(errno)))") }
            reading = ends[0]
            writing = ends[1]
        }
    }
}
