import Foundation

/// Another implementation, as a second opinion: a script with Python's or Node's standard library.
enum PeerProgram: String {
    case python = "/usr/bin/python3"
    case node = "/usr/bin/node"

    /// Returns the JSON that the script prints (in ASCII, since Foundation drops a U+FEFF at the beginning of a text),
    /// with `input` on its standard input.
    func run(_ script: String, _ arguments: [String] = [], input: [UInt8]) throws -> Any {
        let process = Process()
        process.executableURL = URL(filePath: rawValue)
        process.arguments = [self == .python ? "-c" : "-e", script] + (self == .node ? ["--"] : []) + arguments
        process.environment = ["PATH": "/usr/bin:/bin"]
        let (stdin, stdout) = (Pipe(), Pipe())
        process.standardInput = stdin
        process.standardOutput = stdout
        try process.run()
        try stdin.fileHandleForWriting.write(contentsOf: Data(input))
        try stdin.fileHandleForWriting.close()
        let output = try stdout.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(status: process.terminationStatus) }
        return try JSONSerialization.jsonObject(with: output, options: .fragmentsAllowed)
    }

    struct Failure: Error {
        let status: Int32
    }
}
