internal import CPinproxyShims
internal import Glibc
import PinproxySerialization

// Decoding: peers' documents and images are decoded by processes without files, network or keys, so that a fault or a
// loop costs one response.

/// The decoder's main program, which answers bodies from one socket. It is the proxy's own executable, started afresh.
package enum DecoderProgram {
    /// Its first argument. The second is its memory limit in bytes; absent: no limit.
    package static let command = "decoder"
    /// The descriptor of its socket.
    static let socket: CInt = 3
    /// The name in ps.
    private static let name = "pinproxy-decode"

    /// - Parameter arguments: those after the command.
    package static func run(_ arguments: [String]) -> Never {
        shim_end_with_parent(name)
        prepareSignals()
        preferToBeEnded()
        DecoderLibraries.load()
        CharacterSets.load()
        warmUp()
        do throws(Confinement.Failure) {
            try Confinement.apply(
                socket: socket, memory: arguments.first.flatMap { Int($0) },
                processorSeconds: DecoderLimits().processorSeconds)
        } catch {
            // The proxy gets the reason instead of "ready".
            _ = FrameSocket(socket).send(Array("\(error)".utf8), [])
            _exit(1)
        }
        serve(FrameSocket(socket))
        _exit(0)
    }

    /// Ignores signals of terminals and systemd to all of the proxy's processes: the proxy ends this one.
    private static func prepareSignals() {
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2] { signal(number, SIG_IGN) }
        // Replaces the Swift runtime's handler, which would start a program to print the stack.
        for number in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT] { signal(number, SIG_DFL) }
    }

    /// Makes the kernel kill this process before the proxy when memory is short.
    private static func preferToBeEnded() {
        let file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = write(file, "1000", 4)
        close(file)
    }

    /// Initializes what is lazy: Unicode tables, the hash seed, locales.
    private static func warmUp() {
        for text in [
            "<?xml version=\"1.0\" encoding=\"ISO-8859-2\"?><a b=\"c\">é</a>",
            "<plist><dict><key>é</key><real>1.5</real></dict></plist>",
        ] {
            _ = try? PropertyListResponseSerializer().value(ofBody: Array(text.utf8))
        }
        _ = try? JSONResponseSerializer().value(ofBody: Array("{\"é\": [1e1, 0.5]}".utf8))
        _ = "É".lowercased()
    }

    private static func serve(_ socket: FrameSocket) {
        guard socket.send(Frame.ready, []) else { return }
        while let (message, body) = socket.receive() {
            guard let (answer, result) = try? AskedBodyWork.perform(message, on: body), socket.send(answer, result)
            else { return }
        }
    }
}
