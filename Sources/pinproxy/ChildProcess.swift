internal import EventLoop
internal import Glibc

/// Another program, run to its end.
enum ChildProcess {
    /// - Parameter command: a path and its arguments.
    /// - Returns: whether it exited with 0, and what it wrote to standard output and standard error.
    static func run(_ command: [String]) throws(SystemError) -> (isSuccess: Bool, output: [UInt8]) {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError(code: errno, call: "pipe") }
        defer { close(ends[0]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        let arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        let failure = posix_spawn(&process, command[0], &actions, nil, arguments, environ)
        close(ends[1])
        guard failure == 0 else { throw SystemError(code: failure, call: "posix_spawn") }
        let output = everything(from: ends[0])
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return (status == 0, output)
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
