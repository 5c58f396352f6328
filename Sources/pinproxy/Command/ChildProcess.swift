internal import Glibc
internal import PinproxyEventLoop

enum ChildProcess {
    /// - Parameter input: at most what a pipe takes, 64 KiB; none: it has this process's standard input.
    /// - Returns: whether it exited with 0, and what it wrote to standard output and standard error.
    static func run(_ command: [String], input: [UInt8] = []) throws(SystemError) -> (isSuccess: Bool, output: [UInt8])
    {
        let ends = try makePipe()
        defer { close(ends[0]) }
        let given = input.isEmpty ? nil : try pipe(holding: input)
        defer { if let given { close(given) } }
        var program = ProgramStart(command[0], command)
        if let given { program.descriptors.append((STDIN_FILENO, .descriptor(given))) }
        program.descriptors += [(STDOUT_FILENO, .descriptor(ends[1])), (STDERR_FILENO, .descriptor(ends[1]))]
        let started = Result { () throws(SystemError) in try program.start() }
        close(ends[1])
        let process = try started.get()
        let output = everything(from: ends[0])
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return (status == 0, output)
    }

    /// Both ends are close-on-exec, and the caller's.
    static func makePipe() throws(SystemError) -> [CInt] {
        var ends: [CInt] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw SystemError(code: errno, call: "pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return ends
    }

    private static func pipe(holding bytes: [UInt8]) throws(SystemError) -> CInt {
        let ends = try makePipe()
        defer { close(ends[1]) }
        // It would wait for ever for a reader of more.
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        guard write(ends[1], bytes, bytes.count) == bytes.count else {
            close(ends[0])
            throw SystemError(code: EFBIG, call: "write")
        }
        return ends[0]
    }

    private static func everything(from descriptor: CInt) -> [UInt8] {
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count > 0 {
                all += chunk[..<count]
            } else if count == 0 || errno != EINTR {
                return all
            }
        }
    }
}

/// A program of another package, run to its end.
struct OtherProgram {
    /// A path, or a name that PATH has.
    let name: String
    /// To be installed if it isn't there.
    let package: String

    /// - Parameter input: what it reads; less than a pipe takes.
    @discardableResult
    func run(_ arguments: [String], input: [UInt8] = []) throws -> String {
        guard let path else { throw CommandFailure("there is no \(name): install \(package)") }
        let command = [path] + arguments
        let output: String
        let isSuccess: Bool
        do {
            let run = try ChildProcess.run(command, input: input)
            (isSuccess, output) = (run.isSuccess, String(decoding: run.output, as: UTF8.self))
        } catch {
            throw CommandFailure("\(path) can't be run: \(error)")
        }
        guard isSuccess else { throw CommandFailure("\(command.joined(separator: " ")) failed:\n\(output)") }
        return output
    }

    private var path: String? {
        if name.contains("/") { return access(name, X_OK) == 0 ? name : nil }
        let folders = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return folders.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }
}
