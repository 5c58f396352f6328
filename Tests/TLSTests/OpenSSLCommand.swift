import Foundation

/// The openssl command, as a second opinion.
enum OpenSSLCommand {
    /// X25519MLKEM768 came with OpenSSL 3.5.
    static var knowsPostQuantumGroups: Bool {
        get throws { try text(["list", "-kem-algorithms"], input: []).contains("X25519MLKEM768") }
    }

    /// Runs the command and returns its output.
    static func run(_ arguments: [String], input: [UInt8]) throws -> [UInt8] {
        let (status, output) = try execute(arguments, input: input, errors: .nullDevice)
        guard status == 0 else { throw Failure(status: status) }
        return output
    }

    /// Whether the command exits with 0, and its output on both streams.
    static func outcome(_ arguments: [String]) throws -> (isSuccess: Bool, output: String) {
        let (status, output) = try execute(arguments, input: [], errors: nil)
        return (status == 0, String(decoding: output, as: UTF8.self))
    }

    /// - Parameter errors: where errors go; nil: where the output goes.
    private static func execute(
        _ arguments: [String], input: [UInt8], errors: FileHandle?
    ) throws -> (status: Int32, output: [UInt8]) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.arguments = arguments
        process.environment = ["PATH": "/usr/bin:/bin"]
        let (stdin, stdout) = (Pipe(), Pipe())
        process.standardInput = stdin
        process.standardOutput = stdout
        if let errors { process.standardError = errors } else { process.standardError = stdout }
        try process.run()
        try stdin.fileHandleForWriting.write(contentsOf: Data(input))
        try stdin.fileHandleForWriting.close()
        let output = try stdout.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, [UInt8](output))
    }

    static func text(_ arguments: [String], input: [UInt8]) throws -> String {
        String(decoding: try run(arguments, input: input), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    struct Failure: Error {
        let status: Int32
    }
}
