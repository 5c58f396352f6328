import Foundation
import PinproxySerialization
import PinproxySession
import PinproxyTestBodies
import Testing

@testable import PinproxyDecoding

/// The real program decodes, confined as in use.
@Suite(.timeLimit(.minutes(5))) struct ProcessExecutorTests {
    @Test func everyImageIsDecoded() async throws {
        let bench = try DecoderBench()
        for seed in ImageSeeds.all {
            let judgement = try DecoderBench.judgement(nil, .image)
            #expect(try await bench.judge(seed.bytes, judgement) == "pass", "\(seed)")
            let cut = try await bench.judge(Array(seed.bytes.dropLast(4)), judgement)
            #expect(cut.contains("is not an image"), "\(seed): \(cut)")
        }
        #expect(bench.incidentsSoFar.isEmpty, "\(bench.incidentsSoFar)")
    }

    /// Decoders take unusual paths for damaged input.
    @Test(arguments: ImageSeeds.all) func damageEndsNoProcess(seed: ImageSeeds.Seed) async throws {
        let bench = try DecoderBench()
        let judgement = try DecoderBench.judgement(nil, .image)
        var random = SeededGenerator(seed: 11)
        for _ in 0..<500 { _ = try await bench.judge(seed.bytes.mutated(by: &random), judgement) }
        #expect(bench.incidentsSoFar.isEmpty, "\(bench.incidentsSoFar)")
    }

    /// The character set is known to the process, or to the library, or would need a file.
    @Test(arguments: [
        "UTF-8", "ISO-8859-1", "ISO-8859-15", "windows-1252", "Shift_JIS", "EUC-KR", "GB18030", "UTF-7", "IBM1047",
        "no-such",
    ])
    func documentsInEveryCharacterSetAreJudged(name: String) async throws {
        let bench = try DecoderBench()
        let text = "<?xml version=\"1.0\" encoding=\"\(name)\"?><a>b</a>"
        let judgement = try DecoderBench.judgement(nil, .xml)
        let outcome = try await bench.judge(Array(text.utf8), judgement)
        if name == "IBM1047" || name == "no-such" {
            // It is declared as the wrong one, or as one that doesn't exist.
            #expect(outcome != "pass" && outcome.contains("is not XML"), "\(outcome)")
        } else {
            #expect(outcome == "pass", "\(outcome)")
        }
        #expect(try await bench.judge(Array("<a/>".utf8), judgement) == "pass")
        #expect(bench.incidentsSoFar.isEmpty, "\(bench.incidentsSoFar)")
    }

    @Test func theVerdictIsTheSameAsHere() async throws {
        let bench = try DecoderBench()
        let xml = try DecoderBench.judgement(nil, .xml)
        #expect(try await bench.judge(DecoderBench.coded) == "pass")
        #expect(
            try await bench.judge(Array("<a>\n</b>".utf8), xml) == xml.outcome(on: Array("<a>\n</b>".utf8)).words)
        #expect(
            try await bench.judge(Array("no gzip".utf8))
                == DecoderBench.judgement().outcome(on: Array("no gzip".utf8)).words)
        let list = try DecoderBench.judgement(nil, .propertyList)
        #expect(try await bench.judge(Array("<plist><dict/></plist>".utf8), list) == "pass")
        // As long as a body may be, which takes many pieces in both directions.
        let long = Array("<a>\(String(repeating: "<b/>", count: 2_000_000))</a>".utf8)
        #expect(try await bench.judge(long, xml) == "pass")
        let conversion = BodyConversionWork(BodyConversion(from: .form, to: .json), contentType: "", limit: 8 << 20)
        let form = Array((0..<200_000).map { "name\($0)=value" }.joined(separator: "&").utf8)
        let converted = await withCheckedContinuation { continuation in
            _ = bench.executor.perform(conversion, on: form, of: "a.test") { continuation.resume(returning: $0) }
        }
        #expect(try converted.get() == conversion.outcome(on: form))
        try await bench.eventually { $0.done == 6 && $0.starts == 1 }
    }

    /// Uncoded JSON is checked by the proxy in one pass, and starts no process.
    @Test func whatNeedsNoDecoderStartsNoProcess() async throws {
        let bench = try DecoderBench()
        #expect(try await bench.judge(Array("[1]".utf8), DecoderBench.judgement(nil)) == "pass")
        #expect(bench.executor.counts.starts == 0 && bench.executor.counts.processes.isEmpty)
    }

    // MARK: What it is

    /// Only root can look into a process that is protected from inspection.
    @Test(.enabled(if: getuid() == 0, "needs root, whose process has something to give up"))
    func itHasNothingButItsSocket() async throws {
        let bench = try DecoderBench()
        #expect(try await bench.judge() == "pass")
        let process = "/proc/\(try #require(bench.executor.counts.processes.first))"
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: process + "/fd").sorted()
        #expect(descriptors == ["0", "1", "2", "3"])
        let targets = try descriptors.map {
            try FileManager.default.destinationOfSymbolicLink(atPath: "\(process)/fd/\($0)")
        }
        #expect(targets[0] == "/dev/null" && targets[1] == "/dev/null" && targets[3].hasPrefix("socket:"), "\(targets)")
        #expect(targets[2].hasPrefix("pipe:") || dlsym(nil, "__asan_init") != nil, "\(targets)")
        #expect(try Data(contentsOf: URL(filePath: process + "/environ")).isEmpty)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: process + "/cwd") == "/")
        let status = try String(contentsOfFile: process + "/status", encoding: .utf8)
        #expect(status.hasPrefix("Name:\tpinproxy-decode\n"))
        #expect(
            status.contains("\nNoNewPrivs:\t1\n") && status.contains("\nSeccomp:\t2\n")
                && status.contains("\nThreads:\t1\n"))
        #expect(try String(contentsOfFile: process + "/oom_score_adj", encoding: .utf8) == "1000\n")
        let limits = try String(contentsOfFile: process + "/limits", encoding: .utf8).split(separator: "\n").map {
            line in
            line.split(separator: "  ", omittingEmptySubsequences: true).map { $0.filter { $0 != " " } }
        }
        func limit(_ name: String) -> [String] { limits.first { $0[0] == name }.map { Array($0[1...2]) } ?? [] }
        #expect(limit("Maxcputime") == ["90", "90"])
        for name in ["Maxfilesize", "Maxcorefilesize", "Maxopenfiles"] {
            #expect(limit(name) == ["0", "0"], "\(name)")
        }
        if dlsym(nil, "__asan_init") == nil {
            let memory = try #require(limit("Maxaddressspace").first.flatMap { Int($0) })
            #expect((768 << 20)..<(2 << 30) ~= memory)
        }
        let link = try FileManager.default.attributesOfItem(atPath: process)[.ownerAccountID] as? Int
        #expect(link == 0, "PR_SET_DUMPABLE")
    }

    // MARK: Signals

    /// Signals for the proxy reach all processes of its group or unit.
    @Test func itLeavesSignalsToTheProxy() async throws {
        let bench = try DecoderBench()
        #expect(try await bench.judge() == "pass")
        let process = try #require(bench.executor.counts.processes.first)
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGPIPE] { kill(process, signal) }
        #expect(try await bench.judge() == "pass")
        #expect(bench.executor.counts.processes == [process] && bench.incidentsSoFar.isEmpty)
    }

    @Test func oneThatStandsStillIsEndedAndReplaced() async throws {
        let bench = try DecoderBench { $0.deadline = .seconds(2) }
        #expect(try await bench.judge() == "pass")
        let process = try #require(bench.executor.counts.processes.first)
        kill(process, SIGSTOP)
        #expect(try await bench.judge(of: "slow.test") == "decoding it took longer than 2.0 seconds")
        #expect(try await bench.judge() == "pass")
        let incident = try #require(bench.incidentsSoFar.first)
        #expect(incident.process == process && incident.host == "slow.test" && bench.incidentsSoFar.count == 1)
        try await bench.eventually { _ in kill(process, 0) != 0 }
        try await bench.eventually { $0.timedOut == 1 && $0.done == 2 }
    }

    /// It ends between two bodies: the next gets another process, and only the log shows it.
    @Test func oneThatEndsWhileItIsIdleIsReplaced() async throws {
        let bench = try DecoderBench()
        #expect(try await bench.judge() == "pass")
        kill(try #require(bench.executor.counts.processes.first), SIGKILL)
        try await bench.eventually { _ in bench.incidentsSoFar.count == 1 }
        #expect(bench.incidentsSoFar[0].host == nil && bench.incidentsSoFar[0].failure == .ended("SIGKILL"))
        #expect(try await bench.judge() == "pass")
    }

    // MARK: How long it lives

    @Test func oneThatIsIdleEnds() async throws {
        let bench = try DecoderBench { $0.idle = .milliseconds(50) }
        #expect(try await bench.judge() == "pass")
        try await bench.eventually { _ in bench.executor.counts.processes.isEmpty }
        #expect(try await bench.judge() == "pass")
        #expect(bench.executor.counts.starts == 2 && bench.incidentsSoFar.isEmpty)
    }

    @Test func oneThatHasDoneItsShareIsReplaced() async throws {
        let bench = try DecoderBench { $0.bodies = 2 }
        for _ in 0..<5 { #expect(try await bench.judge() == "pass") }
        try await bench.eventually { $0.starts == 3 && $0.done == 5 }
        #expect(bench.incidentsSoFar.isEmpty)
    }

    @Test func theyEndWithTheExecutor() async throws {
        let bench = try DecoderBench()
        #expect(try await bench.judge() == "pass")
        let process = try #require(bench.executor.counts.processes.first)
        bench.executor.stop()
        try await bench.eventually { _ in
            // Until then there is an unreaped child.
            waitpid(process, nil, WNOHANG) != 0 || kill(process, 0) != 0
        }
        #expect(try await bench.judge().hasSuffix("the proxy stops"))
    }
}

extension BodyVerdict {
    fileprivate var words: String { if case .refuse(let error) = self { "\(error)" } else { "\(self)" } }
}
