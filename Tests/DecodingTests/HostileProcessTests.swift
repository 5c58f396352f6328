import Foundation
import PinproxySerialization
import PinproxySession
import Testing

@testable import PinproxyDecoding

/// A compromised process may send and do anything: one body is refused for it, and nothing else happens.
@Suite(.timeLimit(.minutes(5))) struct HostileProcessTests {
    /// Does what the body says, and accepts any other.
    private static let obedient = """
        say(b"ready")
        while True:
            message, body = asked()
            if body == b"hang": time.sleep(1000)
            elif body == b"exit": os._exit(3)
            elif body == b"fault": os.kill(os.getpid(), 11)
            elif body == b"words":
                os.write(2, b"first line\\nlast \\x1b[31m words\\n")
                os._exit(1)
            elif body == b"noise":
                while True: os.write(2, b"x" * 65536)
            elif body == b"garbage": proxy.sendall(bytes(range(256)))
            elif body == b"long message": proxy.sendall(struct.pack("<QQ", 1 << 20, 0))
            elif body == b"long body": proxy.sendall(struct.pack("<QQ", 1, 1 << 62))
            elif body == b"unknown": say(b"\\xff")
            elif body == b"empty": say(b"")
            elif body == b"rewrite": say(b"\\1", b"another body")
            elif body == b"twice": proxy.sendall(2 * (struct.pack("<QQ", 1, 0) + b"\\0"))
            elif body == b"half":
                proxy.sendall(struct.pack("<QQ", 1, 0))
                os._exit(0)
            elif body == b"close":
                proxy.close()
                time.sleep(1000)
            elif body == b"then more":
                say(b"\\0")
                say(b"\\0")
            else: say(b"\\0")
        """

    private func judge(_ text: String, by bench: DecoderBench, of host: String = "a.test") async throws -> String {
        try await bench.judge(Array(text.utf8), DecoderBench.judgement(nil, .xml), of: host)
    }

    private static let nonsense = "the process that decoded it gave an answer that makes no sense"

    @Test(arguments: [
        ("exit", "the process that decoded it ended (exit status 3)"),
        ("fault", "the process that decoded it ended (SIGSEGV)"),
        ("half", "the process that decoded it ended (exit status 0)"),
        ("close", "the process that decoded it ended (SIGKILL)"),
        ("noise", nonsense), ("garbage", nonsense), ("long message", nonsense), ("long body", nonsense),
        ("unknown", nonsense),
        ("empty", nonsense), ("rewrite", nonsense), ("twice", nonsense),
    ])
    func whateverItDoesOneBodyIsRefused(body: String, words: String) async throws {
        let bench = try DecoderBench(script: Self.obedient)
        #expect(try await judge("fine", by: bench) == "pass")
        #expect(try await judge(body, by: bench, of: "bad.test") == words)
        #expect(try await judge("fine", by: bench) == "pass")
        #expect(bench.incidentsSoFar.count == 1 && bench.incidentsSoFar.first?.host == "bad.test")
        try await bench.eventually { $0.failed == 1 && $0.done == 2 && $0.starts == 2 }
        #expect(bench.troublesSoFar.isEmpty)
    }

    @Test func itsLastWordsAreTold() async throws {
        let bench = try DecoderBench(script: Self.obedient)
        #expect(try await judge("words", by: bench) == "the process that decoded it ended (exit status 1)")
        try await bench.eventually { _ in !bench.incidentsSoFar.isEmpty }
        #expect(bench.incidentsSoFar[0].output == "first line\nlast \u{1B}[31m words\n")
        #expect(try await judge("noise", by: bench) == Self.nonsense)
        try await bench.eventually { _ in bench.incidentsSoFar.count == 2 }
        #expect(bench.incidentsSoFar[1].output == String(repeating: "x", count: 1024))
    }

    /// An unrequested answer ends it; the previous body has its own.
    @Test func whatNobodyAskedForEndsIt() async throws {
        let bench = try DecoderBench(script: Self.obedient)
        let first = try await judge("then more", by: bench)
        // The second may arrive together with the first.
        #expect(first == "pass" || first == Self.nonsense)
        try await bench.eventually { _ in bench.incidentsSoFar.count == 1 }
        #expect(try await judge("fine", by: bench) == "pass")
    }

    // MARK: Time

    @Test func oneThatNeverAnswersIsEnded() async throws {
        let bench = try DecoderBench(script: Self.obedient) { $0.deadline = .milliseconds(500) }
        #expect(try await judge("hang", by: bench) == "decoding it took longer than 0.5 seconds")
        #expect(try await judge("fine", by: bench) == "pass")
        try await bench.eventually { $0.timedOut == 1 }
    }

    // MARK: Fairness

    /// Of two processes a host gets one, however many bodies it sends.
    @Test func oneHostNeverHoldsAllOfThem() async throws {
        let bench = try DecoderBench(script: Self.obedient) { $0.processes = 2 }
        let judgement = try DecoderBench.judgement(nil, .xml)
        for _ in 0..<20 {
            _ = bench.executor.perform(judgement, on: Array("hang".utf8), of: "bad.test") { _ in }
        }
        for host in ["a.test", "b.test", "a.test"] { #expect(try await judge("fine", by: bench, of: host) == "pass") }
        try await bench.eventually { $0.waiting == 19 && $0.processes.count == 2 }
    }

    /// A client that leaves cancels what waits, but keeps the place of what is in progress.
    @Test func clientsThatComeAndGoStartNoMore() async throws {
        let bench = try DecoderBench(script: Self.obedient) { $0.processes = 2 }
        let judgement = try DecoderBench.judgement(nil, .xml)
        for _ in 0..<50 {
            let ticket = bench.executor.perform(judgement, on: Array("hang".utf8), of: "bad.test") { _ in }
            // The first is in progress by then; the others wait for it.
            #expect(try await judge("fine", by: bench) == "pass")
            ticket.cancel()
        }
        #expect(try await judge("fine", by: bench) == "pass")
        try await bench.eventually { $0.waiting == 0 && $0.starts == 2 }
    }

    @Test func whoWaitsTooLongIsRefused() async throws {
        let bench = try DecoderBench(script: Self.obedient) {
            $0.processes = 2
            $0.patience = .milliseconds(1)
        }
        _ = bench.executor.perform(try DecoderBench.judgement(nil, .xml), on: Array("hang".utf8), of: "a.test") { _ in }
        #expect(try await judge("fine", by: bench, of: "a.test") == BodyWorkFailure.noRoom.cause)
        try await bench.eventually { $0.refused == 1 }
    }

    // MARK: Starting

    @Test(arguments: [
        ("os._exit(1)", "exit status 1"), ("say(b'not confined: no memory')\nos._exit(1)", "not confined: no memory"),
        ("time.sleep(1000)", "it was not ready within 0.5 seconds"),
    ])
    func oneThatNeverGetsReadyIsNotTriedAtOnceAgain(script: String, words: String) async throws {
        let bench = try DecoderBench(script: script) { $0.deadline = .milliseconds(500) }
        let said = try await judge("fine", by: bench)
        #expect(said.hasPrefix("no process can be started to decode it: ") && said.contains(words), "\(said)")
        try await bench.eventually { $0.failedStarts == 1 && $0.starts == 1 && bench.troublesSoFar.count == 1 }
        #expect(bench.troublesSoFar.first?.contains(words) == true, "\(bench.troublesSoFar)")
    }

    @Test func aProgramThatIsNotThereIsSaid() async throws {
        let executor = try ProcessExecutor(executable: "/nonexistent/pinproxy")
        defer { executor.stop() }
        let outcome = await withCheckedContinuation { continuation in
            guard let judgement = try? DecoderBench.judgement() else { return continuation.resume(returning: "") }
            _ = executor.perform(judgement, on: DecoderBench.coded, of: "a.test") {
                continuation.resume(returning: "\($0)")
            }
        }
        #expect(outcome.contains("posix_spawn: No such file or directory"), "\(outcome)")
    }

    /// The pause grows, and ends with the first process that gets ready.
    @Test func onceOneCanBeStartedAllIsAsBefore() async throws {
        let script = "if not os.path.exists(folder + '/ok'): os._exit(1)\n" + Self.obedient
        let bench = try DecoderBench(script: script)
        #expect(try await judge("fine", by: bench).hasPrefix("no process can be started"))
        try bench.write("", to: "ok")
        while try await judge("fine", by: bench) != "pass" { try await Task.sleep(for: .milliseconds(5)) }
        try await bench.eventually { _ in bench.troublesSoFar.last == "over" }
        #expect(bench.troublesSoFar.count == 2)
    }
}
