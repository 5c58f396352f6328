internal import Glibc
internal import PinproxyEventLoop
internal import PinproxyIsolation

/// The process that becomes a command in private surroundings. It moves there, reports the result to `pinproxy exec`,
/// and executes the command.
///
/// It forks, since starting this program again would double the time. A process can't move another, and one with
/// threads can't move: so the parent must be single-threaded, and stays outside.
enum ExecFork {
    /// A message of the child. If none follows `entered`, it has become the command.
    enum Word {
        /// The sockets that listen inside accompany it.
        /// - Parameter untrusted: why the trust stores weren't covered.
        case entered(untrusted: String?)
        case failed(String)
        /// With an `errno`.
        case notRun(CInt)
        /// It waits for a byte: the result of ``SubordinateIDs/map(into:)``.
        case awaitsIDs

        private static let limit = 4000

        var bytes: [UInt8] {
            switch self {
            case .entered(let untrusted): [0] + Array((untrusted ?? "").utf8.prefix(Self.limit))
            case .failed(let cause): [1] + Array(cause.utf8.prefix(Self.limit))
            case .notRun(let code): [2, UInt8(clamping: code)]
            case .awaitsIDs: [3]
            }
        }

        init(_ bytes: [UInt8]) {
            let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
            self =
                switch bytes.first {
                case 0: .entered(untrusted: text.isEmpty ? nil : text)
                case 2: .notRun(CInt(bytes.last ?? 0))
                case 3: .awaitsIDs
                default: .failed(text)
                }
        }
    }

    /// - Parameters:
    ///   - socket: takes its messages; the child's copy closes when it executes the command.
    ///   - mask: the signals that the command has blocked.
    ///   - prepare: called first in the child.
    static func start(
        _ arguments: [String], in surroundings: CommandSurroundings, tellingOver socket: CInt, mask: sigset_t,
        prepare: () -> Void = {}
    ) throws(SystemError) -> pid_t {
        let process = fork()
        guard process >= 0 else { throw SystemError(code: errno, call: "fork") }
        if process > 0 { return process }
        var mask = mask
        prepare()
        pthread_sigmask(SIG_SETMASK, &mask, nil)
        become(arguments, in: surroundings, tellingOver: socket)
    }

    enum Outcome {
        /// It has become the command.
        case entered(CommandSurroundings.Entered)
        /// It can't have these surroundings, with a human-readable reason.
        case refused(String)
        /// With an `errno`.
        case notRun(CInt)
    }

    /// Waits for the child's messages. Afterwards the child has become the command, or ends.
    static func outcome(
        of process: pid_t, in surroundings: CommandSurroundings, over socket: CInt
    ) throws(SystemError) -> Outcome {
        var outcome = Outcome.refused("its process ended")
        while let message = try DescriptorMessage.receive(from: socket) {
            switch Word(message.bytes) {
            case .entered(let untrusted): outcome = .entered(.init(sockets: message.descriptors, untrusted: untrusted))
            case .failed(let cause): return .refused(cause)
            case .notRun(let problem): return .notRun(problem)
            case .awaitsIDs:
                try DescriptorMessage.send([surroundings.subordinates?.map(into: process) ?? 0], over: socket)
            }
        }
        return outcome
    }

    private static func become(
        _ arguments: [String], in surroundings: CommandSurroundings, tellingOver socket: CInt
    ) -> Never {
        do {
            let entered = try surroundings.enter { () throws(IsolationError) in try mappedIDs(over: socket) }
            try DescriptorMessage.send(Word.entered(untrusted: entered.untrusted).bytes, entered.sockets, over: socket)
            execvp(arguments[0], arguments.map { strdup($0) } + [nil])
            try DescriptorMessage.send(Word.notRun(errno).bytes, over: socket)
        } catch {
            try? DescriptorMessage.send(Word.failed("\(error)").bytes, over: socket)
        }
        _exit(126)
    }

    private static func mappedIDs(over socket: CInt) throws(IsolationError) -> UInt8 {
        do {
            try DescriptorMessage.send(Word.awaitsIDs.bytes, over: socket)
            return try DescriptorMessage.receive(from: socket)?.bytes.first ?? 0
        } catch {
            throw IsolationError("\(error)")
        }
    }
}

/// The kernel refuses private surroundings for a command; it was not run.
struct SurroundingsRefused: Error {
    let cause: String
}
