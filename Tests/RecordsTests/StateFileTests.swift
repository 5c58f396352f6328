import Foundation
import Logging
import PinproxySecurity
import PinproxyTLS
import Synchronization
import Testing

@testable import PinproxyRecords

@Suite final class StateFileTests {
    private let directory: String
    private let log = Recorder()

    init() throws {
        directory = NSTemporaryDirectory() + "pinproxy-state-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    deinit {
        chmod(directory, 0o700)
        try? FileManager.default.removeItem(atPath: directory)
    }

    private var file: StateFile<[String: Int]> { StateFile("numbers.json", in: directory) }
    private func kept() -> KeptValue<[String: Int]> {
        KeptValue(["initial": 0], in: file, logger: Logger(label: "test") { [log] _ in log })
    }

    @Test func keepsAValueOverARestart() throws {
        let first = kept()
        #expect(first.value == ["initial": 0])
        first.change { $0["a/b"] = 1 }
        first.save()
        #expect(kept().value == ["initial": 0, "a/b": 1])
        #expect(log.events.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["numbers.json"])
    }

    @Test func writesOnlyWhatHasChanged() throws {
        let kept = kept()
        kept.save()
        #expect(try file.read() == nil)
        kept.change { $0["a"] = 1 }
        kept.save()
        #expect(try file.read() != nil)
        unlink(file.path)
        kept.save()
        #expect(try file.read() == nil)
        kept.save(forced: true)
        #expect(try file.read() == ["initial": 0, "a": 1])
    }

    @Test(arguments: ["", "{", "[1]", "{\"a\": \"b\"}", "\u{0}"])
    func aBrokenFileIsMovedAsideAndSaid(_ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: file.path))
        #expect(kept().value == ["initial": 0])
        #expect(log.events == ["state.broken"])
        #expect(try String(contentsOfFile: file.path + ".broken", encoding: .utf8) == text)
        #expect(try file.read() == nil)
    }

    @Test func everyPrefixOfAFileIsBroken() throws {
        try file.write(["one": 1, "two": 2])
        let whole = try Data(contentsOf: URL(fileURLWithPath: file.path))
        for length in 0..<whole.count {
            try whole.prefix(length).write(to: URL(fileURLWithPath: file.path))
            #expect(throws: StateFileProblem.self) { try self.file.read() }
        }
    }

    @Test func anUnwritableDirectoryIsSaidOnce() throws {
        // A file in place of the directory: even root can't write there.
        let kept = KeptValue(
            ["initial": 0], in: StateFile("x.json", in: directory + "/missing"),
            logger: Logger(label: "test") { [log] _ in log })
        for _ in 1...3 {
            kept.change { $0["a"] = 1 }
            kept.save()
        }
        #expect(log.events == ["state.unwritable"])
        try FileManager.default.createDirectory(atPath: directory + "/missing", withIntermediateDirectories: true)
        // Nothing has changed since then, but nothing was written either.
        kept.save()
        #expect(try StateFile<[String: Int]>("x.json", in: directory + "/missing").read() == ["initial": 0, "a": 1])
    }

    @Test func whatIsNoFileIsMovedAsideToo() throws {
        try FileManager.default.createDirectory(atPath: file.path, withIntermediateDirectories: false)
        let kept = kept()
        #expect(log.events == ["state.broken"])
        kept.change { $0["a"] = 1 }
        kept.save()
        #expect(log.events == ["state.broken"])
        #expect(try file.read() == ["initial": 0, "a": 1])
        unlink(file.path)
        #expect(mkfifo(file.path, 0o600) == 0)
        #expect(throws: StateFileProblem.self) { try self.file.read() }
    }
}

/// The names of the logged events.
struct Recorder: LogHandler {
    private final class Events: Sendable {
        let names = Mutex<[String]>([])
        let fields = Mutex<[String: [String: String]]>([:])
    }
    private let recorded = Events()
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    var events: [String] { recorded.names.withLock { $0 } }

    /// The fields of the last event with this name.
    func metadata(_ name: String) -> [String: String] { recorded.fields.withLock { $0[name] ?? [:] } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        recorded.names.withLock { $0.append(event.message.description) }
        let fields = (event.metadata ?? [:]).mapValues { "\($0)" }
        recorded.fields.withLock { $0[event.message.description] = fields }
    }
}
