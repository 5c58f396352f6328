import Foundation
import TestAuthority
import Testing

/// The authority's key in a process of its own (`authority.signer`).
@Suite(.timeLimit(.minutes(5)))
struct SignerTests {
    private static let pins = """
        hosts:
          - {match: tunnel.test, action: tunnel}
          - {match: denied.test, action: deny}

        """
    private static let section: ProxyProcess.Sections = ["authority": ["signer: unix:signer.sock"], "timeouts": ["idle_upstream: 100ms"]]

    /// Starts `pinproxy signer` with the proxy's configuration and waits until it serves.
    private func startSigner(_ bed: TestBed) async throws -> (process: ChildProcess, events: EventLog) {
        let process = try await bed.start(
            [ProxyProcess.executable, "signer", "--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed), mergingErrors: true)
        let events = EventLog(lines: process.output)
        _ = try await events.first("signer.start")
        return (process, events)
    }

    private func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await OriginBed.prepare(bed, pins: Self.pins, sections: Self.section, hosts: ["tunnel.test": "127.0.0.1"])
    }

    private func withSigner(_ body: (SharedBed, ChildProcess, EventLog) async throws -> Void) async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: Self.pins, trust: nil, sections: Self.section)
            let (signer, events) = try await startSigner(bed)
            try await body(try await prepare(bed), signer, events)
        }
    }

    private func tunnel(_ shared: SharedBed) async throws -> String {
        try await shared.bed.run([
            "curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}", "--proxy", shared.proxy.url,
            "https://tunnel.test:\(shared.originPort)/echo",
        ]).output
    }

    /// How often a process's memory contains bytes.
    private func occurrences(of bytes: Data, in process: ChildProcess) throws -> Int {
        let maps = try String(contentsOfFile: "/proc/\(process.identifier)/maps", encoding: .utf8)
        let memory = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/\(process.identifier)/mem"))
        defer { try? memory.close() }
        var count = 0
        for line in maps.split(separator: "\n") where line.contains(" rw") {
            let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt64($0, radix: 16) }
            try memory.seek(toOffset: ends[0])
            var rest = (try? memory.read(upToCount: Int(ends[1] - ends[0]))) ?? Data()
            while let found = rest.range(of: bytes) {
                count += 1
                rest = rest[found.upperBound...]
            }
        }
        return count
    }

    @Test func theProxyServesWithoutTheKey() async throws {
        try await withSigner { shared, signer, events in
            let run = try await shared.curl("-o", "/dev/null", "-w", "%{http_code}", shared.url + "/echo")
            #expect(run.output == "200", "\(run)")
            #expect(try await events.first("leaf.issued")["host"] == OriginBed.name)
            // A second connection is served from the cache.
            _ = try await shared.curl(shared.url + "/echo")
            #expect(events.all("leaf.issued").count == 1)
            let key = (shared.proxy.authority as NSString).deletingPathExtension + ".key"
            let text = try await shared.bed.run(["openssl", "pkey", "-in", key, "-outform", "DER"])
            #expect(text.succeeded)
            let pem = try String(contentsOfFile: key, encoding: .utf8)
            let der = try #require(Data(base64Encoded: pem.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()))
            // The private number of a P-256 key in PKCS#8 (RFC 5915) follows its OCTET STRING's head.
            let head = try #require(der.range(of: Data([0x02, 0x01, 0x01, 0x04, 0x20])))
            let secret = der[head.upperBound..<head.upperBound + 32]
            // OpenSSL keeps numbers with their lowest bytes first.
            let kept = Data(secret.reversed())
            #expect(try occurrences(of: kept, in: signer) > 0)
            #expect(try occurrences(of: kept, in: shared.proxy.process) == 0)
            #expect(try occurrences(of: Data(secret), in: shared.proxy.process) == 0)
        }
    }

    @Test func whoHasTakenOverTheProxyGetsNoOtherLeaves() async throws {
        try await withSigner { shared, _, events in
            let questions =
                ["\(OriginBed.name) 443", "any.other.test 443", "pinproxy.test 443", "10.0.0.1 443", "tunnel.test 443", "denied.test 443"]
                + ["raw 00", "raw " + String(repeating: "01", count: 4000), "a.test 443"]
            let script = PythonPeer.path("signing.py")
            let run = try await shared.bed.run(
                ["/usr/bin/python3", script, "ask", shared.bed.path("proxy/signer.sock"), shared.proxy.authority],
                input: Array((questions.joined(separator: "\n") + "\n").utf8))
            let lines = run.output.split(separator: "\n").dropFirst().map(String.init)
            #expect(lines.count == questions.count, "\(run)")
            let kinds = lines.map { line in ["issued", "refused", "closed"].first { line.contains("\"\($0)\"") } ?? "" }
            #expect(kinds == ["issued", "issued", "issued", "issued", "refused", "refused", "refused", "closed", "issued"], "\(lines)")
            #expect(lines[4].contains("doesn't intercept tunnel.test") && lines[5].contains("doesn't intercept denied.test"))
            #expect(events.all("leaf.refused").map { $0["host"] ?? "" } == ["tunnel.test", "denied.test", ""])
        }
    }

    @Test func itsLeavesAreNumbered() async throws {
        try await withSigner { shared, _, _ in
            let questions = (0..<3000).map { "h\($0).test 443" }
            let run = try await shared.bed.run(
                ["/usr/bin/python3", PythonPeer.path("signing.py"), "ask", shared.bed.path("proxy/signer.sock"), shared.proxy.authority],
                input: Array((questions.joined(separator: "\n") + "\n").utf8))
            let lines = run.output.split(separator: "\n").dropFirst()
            #expect(lines.count == 3000)
            #expect(lines.prefix(512).allSatisfy { $0.contains("\"issued\"") })
            #expect(lines.contains { $0.contains("more than 512 leaves at once") }, "\(lines.last ?? "")")
        }
    }

    /// What is kept is served on; everything else says at once why not. Tunnels need no certificate.
    @Test func withoutTheSignerItIsSaidAndTheOthersAreServed() async throws {
        try await withSigner { shared, signer, _ in
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            await signer.stop()
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            let answer = try await shared.proxy.connect(to: "other.\(OriginBed.name):\(shared.originPort)")
            #expect(answer.status == 503 && answer["Retry-After"] == "5", "\(answer)")
            #expect(answer.body.contains("signer.sock can't be connected to"), "\(answer)")
            let event = try await shared.proxy.events.first("signer.failed")
            #expect(event["cause"]?.contains("signer.sock") == true, "\(event)")
            #expect(try await tunnel(shared) == "200")
            let again = try await startSigner(shared.bed)
            #expect(try await shared.proxy.connect(to: "127.0.0.1:\(shared.originPort)").status != 503)
            #expect(try await shared.proxy.events.first("signer.failed", number: 2)["effect"] == "over")
            withExtendedLifetime(again) {}
        }
    }

    @Test(arguments: [("", "no answer within 5.0 seconds"), ("closing", "closed the connection"), ("nonsense", "makes no sense")])
    func aSignerThatDoesNotAnswerHoldsUpNobody(word: String, cause: String) async throws {
        try await withSigner { shared, signer, _ in
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            await signer.stop()
            let path = shared.bed.path("proxy/signer.sock")
            try? FileManager.default.removeItem(atPath: path)
            let silent = try await PythonPeer(in: shared.bed, script: "signing.py", ["silent", path, word])
            let before = try await shared.footprint()
            async let answer = shared.proxy.connect(to: "127.0.0.1:\(shared.originPort)")
            _ = try await silent.events.first("accepted")
            #expect(try await tunnel(shared) == "200")
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            let refusal = try await answer
            #expect(refusal.status == 503 && refusal.body.contains(cause), "\(refusal)")
            try await shared.hasGivenBack(since: before)
        }
    }

    @Test func aRotationIsFollowed() async throws {
        try await withSigner { shared, signer, events in
            let bed = shared.bed
            func rotate(_ step: String...) async throws {
                let run = try await bed.run(
                    [ProxyProcess.executable, "ca", "rotate"] + step + ["--config", bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed))
                #expect(run.succeeded, "\(run)")
                let reloads = events.all("config.reload").count
                signer.send(signal: SIGHUP)
                _ = try await events.first("config.reload", number: reloads + 1)
                #expect(try await shared.proxy.reload().name == "config.reload")
            }
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            try await rotate()
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            try await rotate("--activate")
            let run = try await shared.curl(shared.url + "/echo")
            #expect(run.succeeded, "\(run)")
            #expect(events.all("leaf.issued").count == 3)
        }
    }

    /// Keys and passwords of origins are the proxy's alone: the signer needs none of them.
    @Test func itDoesNotReadThePrivateFilesOfTheProxy() async throws {
        try await withTestBed { bed in
            let pins = """
                hosts:
                  - match: a.test
                    client_certificate: {certificate: /nonexistent/client.pem, private_key: /nonexistent/client.key}
                    session: {credentials: {user: u, password_file: /nonexistent/password}}

                """
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: pins, trust: nil,
                sections: Self.section.merging(["proxy": ["users: /nonexistent/users"]]) { $1 })
            _ = try await startSigner(bed)
        }
    }

    @Test func withoutTheKeyInTheConfigurationItSaysSo() async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: Self.pins, trust: nil)
            let run = try await bed.run(
                [ProxyProcess.executable, "signer", "--config", bed.path("proxy/pinproxy.yaml")], environment: ProxyProcess.environment(in: bed))
            #expect(run.ending == .exited(78) && run.errors.contains("authority.signer is not set"), "\(run)")
        }
    }
}
