internal import CPinproxySeccomp
internal import CPinproxyShims
internal import Glibc

/// Confines the process irrevocably: it may compute, allocate, read one descriptor and write to two. Apply it after
/// opening everything that will be needed, and before reading a peer's first byte.
package enum Confinement {
    /// The step that failed, and why. The process must exit.
    package struct Failure: Error, CustomStringConvertible {
        let step: String
        let code: CInt

        package var description: String { "\(step): \(String(cString: strerror(code)))" }
    }

    /// - Parameters:
    ///   - socket: read and written.
    ///   - memory: bytes beyond those already mapped; nil: no limit.
    ///   - processorSeconds: time after which the kernel kills the process.
    package static func apply(socket: CInt, memory: Int?, processorSeconds: Int) throws(Failure) {
        if let memory { try limit(RLIMIT_AS, "RLIMIT_AS", mapped() + memory) }
        try limit(RLIMIT_CPU, "RLIMIT_CPU", processorSeconds)
        // Open descriptors stay open.
        try limit(RLIMIT_NOFILE, "RLIMIT_NOFILE", 0)
        try limit(RLIMIT_FSIZE, "RLIMIT_FSIZE", 0)
        try limit(RLIMIT_CORE, "RLIMIT_CORE", 0)
        guard shim_hide_memory() == 0 else { throw Failure(step: "PR_SET_DUMPABLE", code: errno) }
        try filter(socket: socket)
    }

    private static func limit(_ resource: __rlimit_resource, _ name: String, _ amount: Int) throws(Failure) {
        var limit = rlimit(rlim_cur: rlim_t(amount), rlim_max: rlim_t(amount))
        guard setrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else {
            throw Failure(step: name, code: errno)
        }
    }

    /// Bytes of address space in use (proc_pid_statm(5)).
    private static func mapped() throws(Failure) -> Int {
        let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Failure(step: "/proc/self/statm", code: errno) }
        defer { close(file) }
        var text = [UInt8](repeating: 0, count: 64)
        let count = read(file, &text, text.count)
        let pages = text.prefix(max(count, 0)).prefix { (0x30...0x39).contains($0) }.reduce(0) {
            10 * $0 + Int($1 - 0x30)
        }
        guard pages > 0 else { throw Failure(step: "/proc/self/statm", code: EIO) }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    // MARK: System calls

    /// A condition on an argument, by its number.
    private typealias Condition = (argument: UInt32, scmp_compare, UInt64, UInt64)

    /// Kills the process at unlisted system calls (SIGSYS). Opening optional files fails with ENOENT instead.
    private static func filter(socket: CInt) throws(Failure) {
        guard let filter = seccomp_init(SCMP_ACT_KILL_PROCESS) else {
            throw Failure(step: "seccomp_init", code: ENOMEM)
        }
        defer { seccomp_release(filter) }
        func allow(_ names: String..., where conditions: Condition...) throws(Failure) {
            for name in names { try add(SCMP_ACT_ALLOW, name, conditions, to: filter) }
        }
        func descriptor(_ number: CInt) -> Condition { (0, SCMP_CMP_EQ, UInt64(number), 0) }
        try allow("read", where: descriptor(socket))
        try allow("write", where: descriptor(socket))
        try allow("write", "writev", where: descriptor(STDERR_FILENO))
        // Memory, which never becomes code.
        try allow("mmap", "mprotect", where: (2, SCMP_CMP_MASKED_EQ, UInt64(PROT_EXEC), 0))
        try allow("munmap", "mremap", "madvise", "brk")
        // qsort(3) asks once for the size of the machine's memory.
        try allow("futex", "sched_yield", "clock_gettime", "clock_getres", "gettimeofday", "getrandom", "sysinfo")
        try allow("exit", "exit_group", "rt_sigreturn", "rt_sigprocmask", "restart_syscall", "getpid", "gettid")
        // abort(3): a library that finds its memory corrupt raises SIGABRT. If that is blocked, glibc 2.41 resets its
        // action.
        try allow("rt_sigaction", where: (0, SCMP_CMP_EQ, UInt64(SIGABRT), 0))
        try allow(
            "tgkill",
            where: (0, SCMP_CMP_EQ, UInt64(getpid()), 0), (1, SCMP_CMP_EQ, UInt64(getpid()), 0),
            (2, SCMP_CMP_EQ, UInt64(SIGABRT), 0))
        for name in ["open", "openat"] { try add(shim_SCMP_ACT_NO_SUCH_FILE, name, [], to: filter) }
        // This also sets PR_SET_NO_NEW_PRIVS, which a filter needs in a process that isn't root.
        let code = seccomp_load(filter)
        guard code == 0 else { throw Failure(step: "seccomp_load", code: -code) }
    }

    private static func add(
        _ action: UInt32, _ name: String, _ conditions: [Condition], to filter: scmp_filter_ctx
    ) throws(Failure) {
        let number = seccomp_syscall_resolve_name(name)
        // This architecture lacks the call.
        guard number >= 0 else { return }
        let arguments = conditions.map { condition in
            scmp_arg_cmp(arg: condition.argument, op: condition.1, datum_a: condition.2, datum_b: condition.3)
        }
        let code = seccomp_rule_add_array(filter, action, number, UInt32(arguments.count), arguments)
        guard code == 0 else { throw Failure(step: "seccomp \(name)", code: -code) }
    }
}
