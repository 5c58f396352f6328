import Foundation
import PinproxyTestBodies
import Testing

/// Expensive bodies are refused by a limit; other bodies are still checked.
@Suite(.sharedBed(DecoderBed.prepare), .timeLimit(.minutes(5)))
struct DecoderTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func get(_ rule: String, _ type: String, _ body: [UInt8], host: String = OriginBed.name) async throws -> Run
    {
        try await DecoderBed.get(shared, rule, type, body, host: host)
    }

    @Test(arguments: HostileBody.all)
    func aHostileBodyIsRefusedWithItsBound(body: HostileBody) async throws {
        let run = try await get(body.serializer, body.contentType, body.bytes)
        #expect(
            run.output.hasPrefix("HTTP/1.1 502 Body of origin.test is not ") && run.output.contains(body.words),
            "\(run)")
        let other = try await get("xml", "text/xml", Array("<a/>".utf8), host: DecoderBed.other)
        #expect(other.output.hasPrefix("HTTP/1.1 200 "), "\(other)")
    }

    @Test(arguments: ImageSeeds.all) func anImageOfEachKindPasses(seed: ImageSeeds.Seed) async throws {
        let run = try await get("image", "image/png", seed.bytes)
        #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
    }

    /// The client's own body could otherwise crash the proxy.
    @Test func aRequestThatWouldCostMuchIsRefused() async throws {
        let file = try shared.bed.file("bomb-\(UUID())", PropertyListFiles.sharing(73_000))
        let run = try await shared.curl(
            "-i", "--data-binary", "@\(file)", "-H", "Content-Type: application/x-plist", "\(shared.url)/received")
        #expect(run.output.hasPrefix("HTTP/1.1 400 ") && run.output.contains("shared references expand"), "\(run)")
        let right = try await shared.curl(
            "--data-binary", "<plist><dict><key>a</key><integer>1</integer></dict></plist>", "-H",
            "Content-Type: application/x-plist", "\(shared.url)/received")
        #expect(try ReceivedRequest(right).body == "{\"a\":1}", "\(right)")
    }

    /// It leaves no rules to those who only report, and no process where nothing is decoded.
    @Test func whatDecodesIsAProcessOfItsOwn() async throws {
        _ = try await get("xml", "text/xml", Array("<a/>".utf8))
        let processes = try shared.proxy.decoders()
        #expect((1...8).contains(processes.count))
        for process in processes {
            let command = try String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
            #expect(command.hasPrefix("pinproxy\0decoder\0"), "\(command)")
        }
    }
}

/// Decoder processes that are stopped, killed or orphaned.
@Suite(.timeLimit(.minutes(5))) struct DecoderEndTests {
    private static let xml = Array("<a/>".utf8)

    /// JSON, compressed, with null values to remove.
    private static let coded = Array(Data(base64Encoded: "H4sIAAAAAAACA4s21DGK5QIA3iMBaQYAAAA=") ?? Data())

    private func get(_ shared: SharedBed, host: String = OriginBed.name) async throws -> Run {
        try await DecoderBed.get(shared, "xml", "text/xml", Self.xml, host: host)
    }

    private func getReported(_ shared: SharedBed) async throws -> Run {
        let type = "application/json\r\nContent-Encoding: gzip"
        return try await DecoderBed.get(shared, "report-nulls", type, Self.coded, host: OriginBed.name)
    }

    private func waiting(_ admin: AdminClient) async throws -> Bool {
        try await admin.ask("GET", "/metrics").body.contains("\npinproxy_decoder_queue 1\n")
    }

    /// One processor gives two processes; a host may have one of them.
    private func withOneStopped(_ body: (SharedBed, AdminClient, Int32) async throws -> Void) async throws {
        try await withTestBed { bed in
            let shared = try await DecoderBed.prepare(bed, launcher: ["taskset", "--cpu-list", "0"])
            let admin = try await AdminClient(shared.proxy)
            #expect(try await get(shared).output.hasPrefix("HTTP/1.1 200 "))
            let process = try #require(try shared.proxy.decoders().first)
            kill(process, SIGSTOP)
            try await body(shared, admin, process)
        }
    }

    @Test func oneThatStandsStillCostsOneResponse() async throws {
        try await withOneStopped { shared, admin, process in
            async let slow = get(shared)
            async let second = get(shared)
            try await eventually("the second to wait") { try await waiting(admin) }
            for _ in 0..<3 {
                let other = try await get(shared, host: DecoderBed.other)
                #expect(other.output.hasPrefix("HTTP/1.1 200 "), "\(other)")
            }
            let outcomes = [try await slow, try await second].map(\.output)
            let refused = try #require(outcomes.first { $0.hasPrefix("HTTP/1.1 502 ") })
            #expect(
                refused.contains("Response from origin.test not judged: decoding it took longer than 10.0 seconds"),
                "\(refused)")
            #expect(refused.contains("Proxy-Status: pinproxy; error=http_protocol_error"), "\(refused)")
            #expect(outcomes.count { $0.hasPrefix("HTTP/1.1 200 ") } == 1, "\(outcomes)")
            let event = try await shared.proxy.events.first("decoder.failed")
            #expect(event["host"] == OriginBed.name && event["pid"] == "\(process)", "\(event)")
            #expect(
                event["cause"] == "decoding it took longer than 10.0 seconds" && event["level"] == "warning", "\(event)"
            )
            let metrics = try await admin.ask("GET", "/metrics").body
            #expect(metrics.contains("pinproxy_decoded_bodies_total{result=\"timeout\"} 1\n"), "\(metrics)")
            try await eventually("it is gone") { kill(process, 0) != 0 }
        }
    }

    @Test func oneThatIsKilledCostsOneResponse() async throws {
        try await withOneStopped { shared, admin, process in
            async let first = get(shared)
            async let second = get(shared)
            // One is worked on by then.
            try await eventually("the second to wait") { try await waiting(admin) }
            kill(process, SIGKILL)
            let outcomes = [try await first, try await second].map(\.output)
            let refused = try #require(outcomes.first { $0.hasPrefix("HTTP/1.1 502 ") })
            #expect(refused.contains("the process that decoded it ended (SIGKILL)"), "\(refused)")
            #expect(outcomes.count { $0.hasPrefix("HTTP/1.1 200 ") } == 1, "\(outcomes)")
            #expect(try await get(shared).output.hasPrefix("HTTP/1.1 200 "))
        }
    }

    /// Uncertainty is no reason to refuse where a rule only reports.
    @Test func aRuleThatReportsPassesOnWhatIsNotKnown() async throws {
        try await withOneStopped { shared, admin, process in
            async let first = getReported(shared)
            _ = try await TaskControl(bed: shared.bed, proxy: shared.proxy).only { $0.phase == "judging the response" }
            async let second = get(shared)
            try await eventually("the second to wait") { try await waiting(admin) }
            kill(process, SIGKILL)
            let outcomes = [try await first, try await second].map(\.output)
            #expect(outcomes.allSatisfy { $0.hasPrefix("HTTP/1.1 200 ") }, "\(outcomes)")
            // Forwarded unchanged.
            #expect(outcomes[0].contains("Content-Encoding: gzip"), "\(outcomes)")
            _ = try await shared.proxy.events.first("decoder.failed")
        }
    }

    @Test func aClientThatLeavesTakesItsBodyOutOfTheQueue() async throws {
        try await withOneStopped { shared, admin, process in
            async let first = get(shared)
            _ = try await TaskControl(bed: shared.bed, proxy: shared.proxy).only { $0.phase == "judging the response" }
            let client = try await DecoderBed.start(shared, "xml", "text/xml", Self.xml)
            try await eventually("its body to wait") { try await waiting(admin) }
            client.send(signal: SIGKILL)
            try await eventually("its body to be gone") { try await !waiting(admin) }
            kill(process, SIGCONT)
            let run = try await first
            #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
        }
    }

    @Test(arguments: [SIGTERM, SIGKILL]) func noneIsLeftBehind(signal: Int32) async throws {
        try await withTestBed { bed in
            let shared = try await DecoderBed.prepare(bed)
            #expect(try await get(shared).output.hasPrefix("HTTP/1.1 200 "))
            let processes = try shared.proxy.decoders()
            #expect(!processes.isEmpty)
            shared.proxy.process.send(signal: signal)
            _ = try await shared.proxy.process.ending()
            try await eventually("they are gone") { processes.allSatisfy { kill($0, 0) != 0 } }
        }
    }

    /// An upgrade replaces the executable. The running proxy still starts its own old one.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["PINPROXY_TEST_LAUNCHER"] == nil))
    func aProgramThatWasReplacedStillStartsThem() async throws {
        try await withTestBed { bed in
            let copy = bed.path("copy")
            let shared = try await DecoderBed.prepare(
                bed, launcher: ["sh", "-c", "cp \"$0\" '\(copy)' && exec '\(copy)' \"$@\""])
            try FileManager.default.removeItem(atPath: copy)
            try bed.file("copy", "another program\n")
            let run = try await get(shared)
            #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
        }
    }
}

private enum DecoderBed {
    static let other = "other.test"

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed { try await prepare(bed, launcher: []) }

    static func prepare(_ bed: TestBed, launcher: [String]) async throws -> SharedBed {
        let serializers = ["xml", "property-list", "image"].map {
            "{path: /repeat/\($0), response: {serializer: \($0), content_types: [\"*/*\"]}}"
        }
        let rules =
            serializers + [
                """
                {path: /repeat/report-nulls, \
                response: {serializer: json, remove_null_values: true, enforcement: report}}
                """,
                "{path: /received, request: {convert_body: {from: property-list, to: json}}}",
            ]
        let others = RuleBed.pins(rules: serializers).replacingOccurrences(of: "hosts:\n", with: "")
            .replacingOccurrences(of: OriginBed.name, with: other)
        return try await RuleBed.prepare(
            bed, rules: rules, hosts: others, names: [other: "127.0.0.1"], sections: AdminClient.section,
            launcher: launcher)
    }

    /// The origin answers with what it is sent.
    private static func arguments(
        _ shared: SharedBed, _ rule: String, _ type: String, _ body: [UInt8], host: String
    ) throws -> [String] {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nContent-Length: \(body.count)\r\n\r\n"
        let file = try shared.bed.file("message-\(UUID())", Array(head.utf8) + body)
        return [
            "-i", "--max-time", "120", "--data-binary", "@\(file)",
            "https://\(host):\(shared.originPort)/repeat/\(rule)",
        ]
    }

    static func get(
        _ shared: SharedBed, _ rule: String, _ type: String, _ body: [UInt8], host: String
    ) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, arguments(shared, rule, type, body, host: host))
    }

    /// A client that can be ended.
    static func start(_ shared: SharedBed, _ rule: String, _ type: String, _ body: [UInt8]) async throws -> ChildProcess
    {
        let arguments = try arguments(shared, rule, type, body, host: OriginBed.name)
        return try await shared.bed.start(["curl", "-sS"] + arguments, environment: shared.proxy.clientEnvironment)
    }
}

extension ProxyProcess {
    /// Its processes that decode, by their numbers.
    func decoders() throws -> [Int32] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }.filter { number in
            guard let status = try? String(contentsOfFile: "/proc/\(number)/status", encoding: .utf8),
                let command = try? String(contentsOfFile: "/proc/\(number)/cmdline", encoding: .utf8)
            else { return false }
            return status.contains("\nPPid:\t\(process.identifier)\n") && command.hasPrefix("pinproxy\0decoder")
        }
    }
}
