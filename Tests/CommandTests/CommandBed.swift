import Foundation
import Testing

/// A directory with a configuration, and the built executable to run in it.
///
/// Running it blocks one of the few threads that all tests share. A suite with many runs is serialized, so that it
/// doesn't hold up tests that wait for their servers.
final class CommandBed {
    struct Outcome: Equatable {
        var code: Int32
        var output: String
        var errors: String
    }

    let directory: String

    init(_ name: String = "bed", configuration: String = "pins: null\n") throws {
        directory =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("pinproxy-commands-\(UUID().uuidString)/\(name)").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try write("pinproxy.yaml", configuration)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: (directory as NSString).deletingLastPathComponent)
    }

    func path(_ name: String) -> String { directory + "/" + name }

    func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
    }

    func read(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    /// The executable beside the tests' own.
    static var executable: String {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return (tests as NSString).deletingLastPathComponent + "/pinproxy"
    }

    /// An environment without the shell's variables, and with a state directory in the bed.
    var environment: [String: String] {
        ["PATH": "/usr/bin:/bin", "HOME": directory, "XDG_STATE_HOME": path("state")]
    }

    /// Runs `pinproxy` with these arguments until it ends.
    func run(_ arguments: String..., environment more: [String: String] = [:]) throws -> Outcome {
        try Self.run(
            [Self.executable] + arguments, in: directory, environment: environment.merging(more) { $1 })
    }

    /// The same with `--config` for the bed's configuration after the first word.
    func configured(_ command: String..., rest: [String] = []) throws -> Outcome {
        try Self.run(
            [Self.executable] + command + ["--config", path("pinproxy.yaml")] + rest, in: directory,
            environment: environment)
    }

    /// The settings that the tests themselves got (docs/testing.md).
    private static let sanitizerSettings = ProcessInfo.processInfo.environment.filter {
        $0.key == "ASAN_OPTIONS" || $0.key == "LSAN_OPTIONS"
    }

    static func run(
        _ command: [String], in directory: String, environment: [String: String]
    ) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.currentDirectoryURL = URL(fileURLWithPath: directory)
        process.environment = environment.merging(sanitizerSettings) { $1 }
        process.standardInput = FileHandle.nullDevice
        // Files, since two pipes can't be emptied at once.
        let names = ["output", "errors"].map { "\(directory)/.\($0)-\(UUID().uuidString)" }
        for name in names { try Data().write(to: URL(fileURLWithPath: name)) }
        defer { for name in names { try? FileManager.default.removeItem(atPath: name) } }
        process.standardOutput = FileHandle(forWritingAtPath: names[0])
        process.standardError = FileHandle(forWritingAtPath: names[1])
        try process.run()
        process.waitUntilExit()
        let texts = try names.map { try String(contentsOfFile: $0, encoding: .utf8) }
        if texts[1].contains("ERROR: AddressSanitizer") || texts[1].contains("ERROR: LeakSanitizer") {
            Issue.record(Comment(rawValue: "the sanitizer stopped \(command)\n\(texts[1].prefix(6000))"))
        }
        return Outcome(code: process.terminationStatus, output: texts[0], errors: texts[1])
    }
}
