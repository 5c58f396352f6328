internal import ArgumentParser
internal import Configuration
internal import EventLoop
internal import Glibc
internal import Isolation

/// What `pinproxy exec` runs of itself where the command gets a network of its own: this process moves there, tells the other one
/// how that went, and becomes the command. Not for people.
///
/// A process can't be moved by another, and one that has threads can't move: so it is neither done between fork(2) and exec, nor in
/// the process that stays outside.
struct ExecInside: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "exec-inside")

    @Option var socket: Int32
    @Option var proxy: String
    @Flag var transparent = false
    @Argument(parsing: .captureForPassthrough) var command: [String] = []

    static func arguments(socket: CInt, _ network: IsolatedNetwork, _ command: [String]) -> [String] {
        ["pinproxy", "exec-inside", "--socket", "\(socket)", "--proxy", "\(network.proxy)"]
            + (network.isTransparent ? ["--transparent"] : []) + ["--"] + command
    }

    /// What it tells. Without another word after `entered` it has become the command.
    enum Word {
        /// Its sockets come with it.
        case entered
        case failed(String)
        /// With an `errno`.
        case notRun(CInt)

        var bytes: [UInt8] {
            switch self {
            case .entered: [0]
            case .failed(let cause): [1] + Array(cause.utf8.prefix(4000))
            case .notRun(let code): [2, UInt8(clamping: code)]
            }
        }

        init(_ bytes: [UInt8]) {
            self =
                switch bytes.first {
                case 0: .entered
                case 2: .notRun(CInt(bytes.last ?? 0))
                default: .failed(String(decoding: bytes.dropFirst(), as: UTF8.self))
                }
        }
    }

    func run() throws {
        guard fcntl(socket, F_SETFD, FD_CLOEXEC) == 0, let address = ListenAddress(proxy), let ip = IPAddress(address.ip) else {
            throw CommandFailure(code: CommandFailure.usage, message: "exec-inside is for pinproxy exec alone")
        }
        let sockets: [CInt]
        do throws(IsolationError) {
            sockets = try IsolatedNetwork(proxy: SocketAddress(ip: ip, port: address.port), isTransparent: transparent).enter()
        } catch {
            try tell(.failed(error.description))
            throw CommandFailure(code: 126)
        }
        try DescriptorMessage.send(Word.entered.bytes, sockets, over: socket)
        let words = command.first == "--" ? command.dropFirst() : command[...]
        guard let name = words.first else { throw CommandFailure(code: CommandFailure.usage) }
        execvp(name, words.map { strdup($0) } + [nil])
        try tell(.notRun(errno))
        throw CommandFailure(code: 126)
    }

    private func tell(_ word: Word) throws { try DescriptorMessage.send(word.bytes, over: socket) }
}
