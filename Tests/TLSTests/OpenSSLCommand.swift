import Foundation

/// The openssl command, as a second opinion.
enum OpenSSLCommand {
    /// What it prints for the arguments and the input.
    static func run(_ arguments: [String], input: [UInt8]) throws -> [UInt8] {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.arguments = arguments
        process.environment = ["PATH": "/usr/bin:/bin"]
        let (stdin, stdout) = (Pipe(), Pipe())
        process.standardInput = stdin
        process.standardOutput = stdout
        process.standardError = FileHandle.nullDevice
        try process.run()
        try stdin.fileHandleForWriting.write(contentsOf: Data(input))
        try stdin.fileHandleForWriting.close()
        let output = try stdout.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(status: process.terminationStatus) }
        return [UInt8](output)
    }

    static func text(_ arguments: [String], input: [UInt8]) throws -> String {
        String(decoding: try run(arguments, input: input), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    struct Failure: Error {
        let status: Int32
    }
}
