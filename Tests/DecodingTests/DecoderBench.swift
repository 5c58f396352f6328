import Dispatch
import Foundation
import PinproxyDecoding
import PinproxySerialization
import PinproxySession
import Synchronization
import Testing

/// Decoder processes as a proxy runs them: the real program, or a script instead of it.
final class DecoderBench: Sendable {
    let executor: ProcessExecutor
    private let incidents = Mutex<[DecoderEvents.Incident]>([])
    private let troubles = Mutex<[String]>([])
    private let directory: URL?

    /// - Parameter script: Python, run by `Peers/decoder.py` instead of the program.
    init(script: String? = nil, _ change: (inout DecoderLimits) -> Void = { _ in }) throws {
        var limits = DecoderLimits()
        limits.deadline = .seconds(60)
        change(&limits)
        var executable = Executables.pinproxy
        var directory: URL?
        if let script {
            let place = FileManager.default.temporaryDirectory.appending(path: "pinproxy-decoder-\(UUID())")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            try Data(script.utf8).write(to: place.appending(path: "behaviour"))
            // Not a file that was just written: another test may be starting a program, and then holds the file open
            // (ETXTBSY).
            executable = place.appending(path: "decoder").path
            try FileManager.default.createSymbolicLink(atPath: executable, withDestinationPath: Self.peer)
            directory = place
        }
        self.directory = directory
        let told = Told()
        var events = DecoderEvents()
        events.failed = { incident in told.bench.withLock { $0?.value }?.incidents.withLock { $0.append(incident) } }
        events.unavailable = { cause in told.bench.withLock { $0?.value }?.troubles.withLock { $0.append(cause) } }
        events.availableAgain = { told.bench.withLock { $0?.value }?.troubles.withLock { $0.append("over") } }
        executor = try ProcessExecutor(limits: limits, executable: executable, events: events)
        told.bench.withLock { $0 = Weak(value: self) }
    }

    deinit {
        executor.stop()
        if let directory { try? FileManager.default.removeItem(at: directory) }
    }

    private struct Weak: Sendable { weak var value: DecoderBench? }
    private final class Told: Sendable { let bench = Mutex<Weak?>(nil) }

    private static let peer = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peers/decoder.py")
        .path

    var incidentsSoFar: [DecoderEvents.Incident] { incidents.withLock { $0 } }
    /// The reasons why no process could be started, and `over`.
    var troublesSoFar: [String] { troubles.withLock { $0 } }

    // MARK: Bodies

    /// Valid JSON under gzip, which needs a decoder.
    static let coded: [UInt8] = Array(
        Data(base64Encoded: "H4sIAAAAAAACA4s21DGK5QIA3iMBaQYAAAA=") ?? Data())

    static func judgement(
        _ codings: String? = "gzip", _ serializer: ResponseRules.Serializer = .json
    ) throws -> BodyJudgement {
        var rules = ResponseRules()
        rules.serializers = [serializer]
        let head = ResponseHead(
            status: 200, contentType: ContentType("a/b"), contentEncoding: codings, body: .unknownLength)
        rules.contentTypes = [try MediaRange("*/*")]
        let verdict = try #require(ResponseJudge(rules)).verdict(on: head, inspectedBody: 8 << 20)
        guard case .hold(let judgement, _) = verdict else { throw BenchError.notHeld }
        return judgement
    }

    enum BenchError: Error { case notHeld }

    /// The outcome as text: `pass`, or the failure.
    func judge(
        _ body: [UInt8] = coded, _ judgement: BodyJudgement? = nil, of host: String = "a.test"
    ) async throws -> String {
        let judgement = try judgement ?? Self.judgement()
        return await withCheckedContinuation { continuation in
            _ = executor.perform(judgement, on: body, of: host) { outcome in
                let words =
                    switch outcome {
                    case .success(.refuse(let error)): "\(error)"
                    case .success(let verdict): "\(verdict)"
                    case .failure(let failure): failure.cause
                    }
                continuation.resume(returning: words)
            }
        }
    }

    /// Writes a file beside the script.
    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: try #require(directory).appending(path: name))
    }

    /// Repeats until it holds, since counts follow an answer.
    func eventually(_ holds: (DecoderCounts) throws -> Bool) async throws {
        while try !holds(executor.counts) { try await Task.sleep(for: .milliseconds(5)) }
    }
}
