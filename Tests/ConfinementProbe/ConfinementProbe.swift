import CPinproxySeccomp
import Glibc
import PinproxyDecoding

/// Confines itself like a decoder process, then makes one system call, and prints the result.
///
///     ConfinementProbe NAME|NUMBER [ARGUMENT…]
///     ConfinementProbe allocate BYTES
///     ConfinementProbe thread|abort|fault
///
/// Standard output replaces the socket. A forbidden call ends it by SIGSYS, after the line "confined".
@main enum ConfinementProbe {
    static func main() {
        var words = Array(CommandLine.arguments.dropFirst())
        let name = words.isEmpty ? "getpid" : words.removeFirst()
        let number = Int(name).map { CInt($0) } ?? seccomp_syscall_resolve_name(name)
        let arguments = words.map { Int($0) ?? 0 } + Array(repeating: 0, count: 6)
        // The function is variadic, which Swift can't call.
        typealias Call = @convention(c) (Int, Int, Int, Int, Int, Int, Int) -> Int
        let call = unsafeBitCast(dlsym(nil, "syscall"), to: Call.self)
        // The runtime's handlers would start a program to show the stack.
        for number in [SIGSEGV, SIGILL, SIGTRAP, SIGABRT] { signal(number, SIG_DFL) }
        do {
            try Confinement.apply(socket: STDOUT_FILENO, memory: 256 << 20, processorSeconds: 30)
        } catch {
            say("not confined: \(error)")
            _exit(1)
        }
        say("confined")
        switch name {
        case "allocate": say(malloc(arguments[0]) == nil ? "no memory" : "allocated")
        case "thread":
            var thread = pthread_t()
            say("thread \(pthread_create(&thread, nil, { _ in nil }, nil))")
        case "abort": abort()
        case "fault": UnsafeMutablePointer<Int>(bitPattern: 8)?.pointee = 1
        default:
            let result = call(
                Int(number), arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5])
            say("returned \(result) \(errno)")
        }
        _exit(0)
    }

    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }
}
