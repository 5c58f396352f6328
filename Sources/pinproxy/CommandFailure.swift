internal import Foundation

/// How a command ends when it doesn't end well.
struct CommandFailure: Error {
    /// Wrong usage.
    static let usage: Int32 = 2
    /// EX_CONFIG of sysexits.h: the configuration is wrong.
    static let configuration: Int32 = 78

    var code: Int32
    /// For standard error; nil if everything has been said.
    var message: String?

    /// The answer is no, or it failed.
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
    static func output(_ text: String) { write(text, to: .standardOutput) }

    static func error(_ text: String) { write(text, to: .standardError) }

    private static func write(_ text: String, to file: FileHandle) {
        // Nobody there to read it is no failure of ours.
        try? file.write(contentsOf: Data((text.hasSuffix("\n") ? text : text + "\n").utf8))
    }
}

/// The reason of a failed system call, e.g. `Permission denied`.
func systemReason(_ code: Int32 = errno) -> String { String(cString: strerror(code)) }
