import CPinproxySeccomp
import Foundation
import Testing

/// The system calls allowed to a confined decoder process. Each case makes real ones in a process of
/// Tests/ConfinementProbe.
@Suite(.timeLimit(.minutes(5))) struct ConfinementTests {
    struct Outcome: Sendable {
        /// The first is `confined`, if it got that far.
        let lines: [String]
        /// The signal that killed it, or 0.
        let signal: Int32
        /// Killed for a forbidden call.
        var isForbidden: Bool { lines == ["confined"] && signal == SIGSYS }
    }

    @Test(arguments: [
        // Files, their properties, and directories. 524288 is O_CLOEXEC, 577 creates a file.
        ["openat2", "-100"], ["stat"], ["newfstatat", "-100"], ["getdents64"], ["unlink"], ["rename"], ["mkdir"],
        ["chdir"],
        ["memfd_create"], ["inotify_init1"], ["ioctl", "1"], ["fcntl", "1"], ["dup", "1"], ["pipe2"], ["sendfile"],
        // The network.
        ["socket", "2", "1"], ["socket", "1", "1"], ["socketpair", "1", "1"], ["connect"], ["bind"], ["sendmsg", "1"],
        ["recvmsg", "1"],
        // Other processes, and copies of itself.
        ["fork"], ["vfork"], ["clone"], ["clone3"], ["execve"], ["execveat"], ["kill", "1"], ["tkill", "1"],
        ["tgkill", "1", "1", "9"],
        ["rt_sigqueueinfo", "1"], ["ptrace", "16", "1"], ["process_vm_readv", "1"], ["pidfd_open", "1"], ["setns"],
        ["unshare"],
        // The kernel.
        ["prctl", "4", "1"], ["seccomp"], ["prlimit64"], ["setrlimit"], ["bpf"], ["perf_event_open"],
        ["io_uring_setup"],
        ["userfaultfd"], ["keyctl"], ["mount"], ["setuid"], ["personality"], ["rt_sigaction"],
        // Memory that becomes code: PROT_READ and PROT_EXEC, private and anonymous.
        ["mmap", "0", "4096", "5", "34", "-1"], ["mprotect", "0", "4096", "5"], ["pkey_mprotect", "0", "4096", "5"],
        // Descriptors other than the socket and standard error.
        ["read", "0"], ["read", "2"], ["write", "0"], ["write", "4"], ["writev", "1"], ["pread64", "1"],
    ])
    func aCallThatIsNotNeededEndsTheProcess(words: [String]) async throws {
        let outcome = try await Self.probe(words)
        #expect(outcome.isForbidden, "\(words): \(outcome)")
    }

    /// Libraries look for optional files.
    @Test(arguments: [["open"], ["openat", "-100"]])
    func aFileIsNeverThere(words: [String]) async throws {
        let outcome = try await Self.probe(words)
        #expect(outcome.lines == ["confined", "returned -1 \(ENOENT)"] && outcome.signal == 0, "\(outcome)")
    }

    /// Every call number, with every argument 0: calls not listed here aren't allowed.
    @Test func nothingElseIsAllowed() async throws {
        let allowed: Set<String> = [
            "mmap", "mprotect", "munmap", "mremap", "madvise", "brk", "futex", "sched_yield", "clock_gettime",
            "clock_getres",
            "gettimeofday", "getrandom", "sysinfo", "rt_sigprocmask", "restart_syscall", "getpid", "gettid", "open",
            "openat",
        ]
        // These end it in their own way, or need its descriptors. Linux exempts uprobe and uretprobe from every filter,
        // and kills callers without a probe.
        let others: Set<String> = [
            "exit", "exit_group", "rt_sigreturn", "read", "write", "writev", "tgkill", "uprobe", "uretprobe",
        ]
        let calls = Self.calls
        try #require(calls.count > 250 && calls.contains { $0.name == "openat" })
        let survivors = try await withThrowingTaskGroup(of: String?.self) { group in
            var survivors: Set<String> = []
            for (index, call) in calls.enumerated() where !others.contains(call.name) {
                if index >= 4, let survivor = try await group.next() ?? nil { survivors.insert(survivor) }
                group.addTask { try await Self.probe(["\(call.number)"]).isForbidden ? nil : call.name }
            }
            for try await survivor in group { if let survivor { survivors.insert(survivor) } }
            return survivors
        }
        #expect(survivors == allowed.intersection(calls.map(\.name)), "\(survivors.symmetricDifference(allowed))")
    }

    @Test func itMayWorkAndNoMore() async throws {
        let clock = try await Self.probe(["clock_gettime", "1"])
        #expect(clock.lines.count == 2 && clock.signal == 0)
        let memory = try await Self.probe(["mmap", "0", "4096", "3", "34", "-1"])
        #expect(memory.lines.last?.hasPrefix("returned ") == true && memory.lines.last != "returned -1 1", "\(memory)")
        #expect(try await Self.probe(["thread"]).isForbidden)
        // A library that finds its memory damaged ends the process with the signal for that.
        let aborted = try await Self.probe(["abort"])
        #expect(aborted.lines == ["confined"] && aborted.signal == SIGABRT, "\(aborted)")
        let faulted = try await Self.probe(["fault"])
        #expect(faulted.lines == ["confined"] && faulted.signal == SIGSEGV, "\(faulted)")
    }

    /// 256 MiB beyond its initial memory; the address sanitizer needs more.
    @Test(.enabled(if: dlsym(nil, "__asan_init") == nil)) func memoryIsBounded() async throws {
        #expect(try await Self.probe(["allocate", "\(128 << 20)"]).lines == ["confined", "allocated"])
        #expect(try await Self.probe(["allocate", "\(512 << 20)"]).lines == ["confined", "no memory"])
    }

    // MARK: The other process

    private static func probe(_ words: [String]) async throws -> Outcome {
        let process = Process()
        process.executableURL = URL(filePath: Executables.path("PinproxyConfinementProbe"))
        process.arguments = words
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        return try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { process in
                let text = (try? output.fileHandleForReading.readToEnd()).flatMap { $0 } ?? Data()
                let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
                let signal = process.terminationReason == .uncaughtSignal ? process.terminationStatus : 0
                continuation.resume(returning: Outcome(lines: lines, signal: signal))
            }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
    }

    /// The system calls of this machine, by libseccomp.
    private static let calls: [(number: Int, name: String)] = (0..<600).compactMap { number in
        guard let name = seccomp_syscall_resolve_num_arch(UInt32(SCMP_ARCH_NATIVE), CInt(number)) else { return nil }
        defer { free(name) }
        return (number, String(cString: name))
    }
}
