internal import CShims
internal import EventLoop
internal import Glibc

/// A process that was just started, and its descriptors.
struct DecoderStart: ~Copyable {
    let process: pid_t
    /// Becomes readable when the process ends.
    let end: Descriptor
    /// Non-blocking.
    let socket: Descriptor
    /// The process's standard error; non-blocking.
    let output: Descriptor

    /// - Parameters:
    ///   - executable: the path of this program.
    ///   - longestBody: the longest body that it will get.
    init(_ executable: String, longestBody: Int) throws(SystemError) {
        let sockets = try Ends { ends in
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, ends)
        }
        let pipe = try Ends { ends in pipe2(ends, CInt(O_CLOEXEC)) }
        for descriptor in [sockets.near.raw, pipe.near.raw] {
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        }
        // The sanitizer reports to standard error, and needs address space without bound.
        let isSanitized = dlsym(nil, "__asan_init") != nil
        let memory = isSanitized ? "" : "\(DecoderLimits.memory(longestBody: longestBody))"
        let process = try Self.spawn(
            executable, ["pinproxy", DecoderProgram.command, memory], socket: sockets.far.raw,
            errors: isSanitized ? STDERR_FILENO : pipe.far.raw)
        let end = shim_pidfd_open(process)
        guard end >= 0 else {
            let error = SystemError(code: errno, call: "pidfd_open")
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
            throw error
        }
        self.process = process
        self.end = Descriptor(owning: end)
        socket = sockets.near
        output = pipe.near
    }

    /// A pair of descriptors between two processes; both are close-on-exec.
    private struct Ends: ~Copyable {
        let near: Descriptor
        let far: Descriptor

        init(_ make: (UnsafeMutablePointer<CInt>) -> CInt) throws(SystemError) {
            var ends: [CInt] = [-1, -1]
            guard make(&ends) == 0 else { throw SystemError(code: errno, call: "socketpair") }
            near = Descriptor(owning: ends[0])
            far = Descriptor(owning: ends[1])
        }
    }

    /// Starts it in `/` and a new session, with an empty environment and no descriptors but these.
    private static func spawn(
        _ executable: String, _ arguments: [String], socket: CInt, errors: CInt
    ) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // This order overwrites no descriptor before it is in place: all of them are above 2.
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
        posix_spawn_file_actions_adddup2(&actions, socket, DecoderProgram.socket)
        for descriptor in [STDIN_FILENO, STDOUT_FILENO] {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        posix_spawn_file_actions_addclosefrom_np(&actions, DecoderProgram.socket + 1)
        posix_spawn_file_actions_addchdir_np(&actions, "/")
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (all, none) = (sigset_t(), sigset_t())
        sigfillset(&all)
        sigemptyset(&none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setsigmask(&attributes, &none)
        // POSIX_SPAWN_SETSIGDEF, POSIX_SPAWN_SETSIGMASK and POSIX_SPAWN_SETSID of <spawn.h>
        posix_spawnattr_setflags(&attributes, 0x04 | 0x08 | 0x80)
        let pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process = pid_t()
        let code = posix_spawn(&process, executable, &actions, &attributes, pointers, [nil])
        guard code == 0 else { throw SystemError(code: code, call: "posix_spawn") }
        return process
    }
}
