import Foundation
import Synchronization
import Testing

/// What one test works with: its own directory, and programs that end with it.
///
/// Use `withTestBed`, which leaves nothing behind. With `PINPROXY_TEST_KEEP=1` the directories are kept, with the
/// configuration and all that the programs wrote.
final class TestBed: Sendable {
    let directory: String
    private let ports = Mutex<[ReservedPort]>([])
    private let children = Mutex<[(name: String, process: ChildProcess)]>([])

    /// The bed of the suite, where the suite has the `sharedBed` trait.
    @TaskLocal static var shared: SharedBed?

    init() throws {
        var template = Array("/tmp/pinproxy-test.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestBedError("mkdtemp: \(errno)") }
        directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        // curl reads it. Most tests look at messages of HTTP/1.1; those of HTTP/2 say --http2.
        try file(".curlrc", "http1.1\n")
    }

    /// Writes a file into the directory and returns its path.
    @discardableResult
    func file(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
        try file(name, Array(text.utf8), mode: mode)
    }

    @discardableResult
    func file(_ name: String, _ bytes: [UInt8], mode: mode_t = 0o600) throws -> String {
        let path = path(name)
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        // Replaces a file atomically: a reader sees the old or the new one, complete.
        let fresh = path + ".new"
        try Data(bytes).write(to: URL(fileURLWithPath: fresh))
        chmod(fresh, mode)
        guard rename(fresh, path) == 0 else { throw TestBedError("rename \(path): \(errno)") }
        return path
    }

    func path(_ name: String) -> String {
        directory + "/" + name
    }

    func contents(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    /// A loopback port without a listener, which no other process gets until the bed ends (``ReservedPort``).
    func port() throws -> UInt16 {
        let port = try ReservedPort()
        ports.withLock { $0.append(port) }
        return port.number
    }

    /// The environment of every program: the variables that carry proxies and authorities are set
    /// for each client, never inherited.
    var environment: [String: String] {
        [
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": directory, "LANG": "C.UTF-8",
            "TMPDIR": directory, "PYTHONDONTWRITEBYTECODE": "1",
        ].merging(Sanitizer.environment) { $1 }
    }

    /// Starts a program that runs until the end of the test.
    func start(
        _ arguments: [String], environment: [String: String] = [:], input: [UInt8] = [],
        inherited: [CInt] = [], mergingErrors: Bool = false
    ) async throws -> ChildProcess {
        let process = try await ChildProcess(
            arguments, environment: self.environment.merging(environment) { $1 },
            directory: directory, input: input, inherited: inherited,
            mergingErrors: mergingErrors)
        children.withLock { $0.append((arguments[0], process)) }
        return process
    }

    /// Runs a program to its end.
    func run(
        _ arguments: [String], environment: [String: String] = [:], input: [UInt8] = []
    ) async throws -> Run {
        let process = try await start(arguments, environment: environment, input: input)
        let ending = try await process.ending()
        return Run(
            arguments: arguments, ending: ending, output: await process.output.text,
            errors: await process.errors.text)
    }

    func end() async {
        for (name, process) in children.withLock({ $0 }) where name == ProxyProcess.executable {
            guard let ending = process.unaskedEnding, case .signalled = ending else { continue }
            let last = await process.output.text.split(separator: "\n").suffix(30).joined(separator: "\n")
            Issue.record(Comment(rawValue: "the proxy died of \(ending)\n\(last)"))
        }
        for (_, process) in children.withLock({ $0 }).reversed() { await process.stop() }
        for (name, process) in children.withLock({ $0 }) {
            LogSchema.check(process.output.lines + process.errors.lines, of: name)
        }
        if Sanitizer.isOn {
            for (name, process) in children.withLock({ $0 }) where name == ProxyProcess.executable {
                Sanitizer.check(await process.output.complete + process.errors.complete, of: name)
            }
        }
        if ProcessInfo.processInfo.environment["PINPROXY_TEST_KEEP"] == nil {
            try? FileManager.default.removeItem(atPath: directory)
            return
        }
        for (index, (name, process)) in children.withLock({ $0 }).enumerated() {
            let program = (name as NSString).lastPathComponent
            let written = await process.output.text + "\n" + process.errors.text
            _ = try? file("written-\(index)-\(program)", written)
        }
    }
}

/// The outcome of a program that ran to its end.
struct Run: Sendable, CustomStringConvertible {
    let arguments: [String]
    let ending: ChildProcess.Ending
    let output: String
    let errors: String

    var succeeded: Bool { ending == .exited(0) }

    var description: String {
        "\(arguments.joined(separator: " ")): \(ending)\n\(output.suffix(4000))\n\(errors.suffix(4000))"
    }
}

/// Gives `body` a test bed and removes it afterwards, whatever happens.
func withTestBed<Value>(
    isolation: isolated (any Actor)? = #isolation, _ body: (TestBed) async throws -> Value
) async throws -> Value {
    let bed = try TestBed()
    do {
        let value = try await body(bed)
        await bed.end()
        return value
    } catch {
        await bed.end()
        throw error
    }
}
