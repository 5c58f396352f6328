internal import CShims
internal import Glibc
import Serialization

// Decoding: documents and images that peers send are decoded by processes without files, network or keys. Decoders that
// are hard to trust read their bytes there, and a fault or a loop in one costs one response.

/// What such a process does: it gets bodies over one socket, and answers what becomes of them.
///
/// It is the same program as the proxy, started anew, so that nothing of the proxy's memory is in it.
package enum DecoderProgram {
    /// Its first argument. The second is how much memory it may take, in bytes, or nothing for any amount.
    package static let command = "decoder"
    /// Where its socket is.
    static let socket: CInt = 3
    /// What ps shows.
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
            // The other end hears the reason, and that it isn't "ready".
            _ = FrameSocket(socket).send(Array("\(error)".utf8), [])
            _exit(1)
        }
        serve(FrameSocket(socket))
        _exit(0)
    }

    /// The proxy ends it. Signals that are meant for the proxy reach all of its processes: from a terminal, from
    /// systemd at a stop, which the proxy has still to answer its clients before.
    private static func prepareSignals() {
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2] { signal(number, SIG_IGN) }
        // Not the Swift runtime's handler, which would start a program to show the stack.
        for number in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT] { signal(number, SIG_DFL) }
    }

    /// Where memory lacks, this process goes before the proxy does.
    private static func preferToBeEnded() {
        let file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = write(file, "1000", 4)
        close(file)
    }

    /// Has what is made at first use made now: tables of Unicode, the seed of hashes, locales.
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

    /// Until the other end closes the socket.
    private static func serve(_ socket: FrameSocket) {
        guard socket.send(Frame.ready, []) else { return }
        while let (message, body) = socket.receive() {
            guard let (answer, result) = try? AskedBodyWork.perform(message, on: body), socket.send(answer, result)
            else { return }
        }
    }
}
