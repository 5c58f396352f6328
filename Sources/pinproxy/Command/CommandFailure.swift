internal import Glibc

/// The failure of a command: its exit status and message.
struct CommandFailure: Error {
    static let usage: Int32 = 2
    /// EX_CONFIG of sysexits.h: the configuration is wrong.
    static let configuration: Int32 = 78

    var code: Int32
    /// For standard error; nil: already printed.
    var message: String?

    /// The answer is no, or the command failed.
    init(_ message: String) {
        code = 1
        self.message = message
    }

    init(code: Int32, message: String? = nil) {
        self.code = code
        self.message = message
    }
}

enum Standard {
    static func output(_ text: String) { write(text, to: STDOUT_FILENO) }

    /// Writes bytes unchanged.
    static func output(bytes: [UInt8]) { write(raw: bytes, to: STDOUT_FILENO) }

    static func error(_ text: String) { write(text, to: STDERR_FILENO) }

    /// Writes text without adding a newline.
    static func error(raw text: String) { write(raw: Array(text.utf8), to: STDERR_FILENO) }

    private static func write(_ text: String, to descriptor: CInt) {
        write(raw: Array((text.hasSuffix("\n") ? text : text + "\n").utf8), to: descriptor)
    }

    private static func write(raw bytes: [UInt8], to descriptor: CInt) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written > 0 {
                rest = rest.dropFirst(written)
            } else if errno == EAGAIN {
                // Another process that shares the descriptor has made it non-blocking.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&room, 1, -1)
            } else if errno != EINTR {
                // Without a reader this is not a failure of the command.
                return
            }
        }
    }
}

/// The reason of a failed system call, e.g. `Permission denied`.
func systemReason(_ code: Int32 = errno) -> String { String(cString: strerror(code)) }

/// Descriptors 0, 1 and 2. A process may be started with some of them closed. The next files that it opens get their
/// numbers, and messages for standard error are written into one of those files.
enum StandardDescriptors {
    /// Opens closed ones on /dev/null. Call it before anything else opens a file.
    static func ensureOpen() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            // open(2) takes the lowest free number. A failure can't be reported.
            guard open("/dev/null", O_RDWR) == descriptor else { exit(1) }
        }
    }
}
