internal import CPinproxyShims
internal import Glibc
internal import PinproxyEventLoop

struct DecoderStart: ~Copyable {
    let process: pid_t
    /// Becomes readable when the process ends.
    let end: Descriptor
    /// Non-blocking.
    let socket: Descriptor
    /// The process's standard error; non-blocking.
    let output: Descriptor

    /// - Parameter longestBody: the longest body that it will get.
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
        var program = ProgramStart(executable, arguments, environment: [])
        // This order overwrites no descriptor before it is in place: all of them are above 2.
        program.descriptors = [
            (STDERR_FILENO, .descriptor(errors)), (DecoderProgram.socket, .descriptor(socket)),
            (STDIN_FILENO, .nothing),
            (STDOUT_FILENO, .nothing),
        ]
        program.closesFrom = DecoderProgram.socket + 1
        program.directory = "/"
        program.group = .ownSession
        program.blockedSignals = .empty
        program.restoresSignals = true
        return try program.start()
    }
}
