import Foundation
import PinproxyTestAuthority
import Testing

/// The authority's key in a separate process (`authority.signer`).
@Suite(.timeLimit(.minutes(5)))
struct SignerTests {
    private static let pins = """
        hosts:
          - {match: tunnel.test, action: tunnel}
          - {match: denied.test, action: deny}
          - {match: page.test, on_refusal: page, pinning: public-key, pins: [\(String.wrongPin), \
        sha256/BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]}
          - {match: "[2001:db8::1]", action: tunnel}
          - {match: 192.0.2.1, action: tunnel}

        """
    private static let section: ProxyProcess.Sections = [
        "authority": ["signer: unix:signer.sock"], "timeouts": ["idle_upstream: 100ms"],
    ]

    /// Starts `pinproxy signer` with the proxy's configuration and waits until it serves.
    private func startSigner(
        _ bed: TestBed, launcher: [String] = []
    ) async throws -> (process: ChildProcess, events: EventLog) {
        let process = try await bed.start(
            launcher + [ProxyProcess.executable, "signer", "--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed), mergingErrors: true)
        let events = EventLog(lines: process.output)
        _ = try await events.first("signer.start")
        return (process, events)
    }

    private func prepare(_ bed: TestBed) async throws -> SharedBed {
        let names = ["tunnel.test", "second.test", "third.test", "page.test"]
        return try await OriginBed.prepare(
            bed, pins: Self.pins, sections: Self.section,
            hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, "127.0.0.1") }))
    }

    private func withSigner(
        launcher: [String] = [], _ body: (SharedBed, ChildProcess, EventLog) async throws -> Void
    ) async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: Self.pins, trust: nil, sections: Self.section)
            let (signer, events) = try await startSigner(bed, launcher: launcher)
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
            let secret = try shared.bed.secretOfKey(at: key)
            #expect(try occurrences(of: secret, in: signer) > 0)
            #expect(try occurrences(of: secret, in: shared.proxy.process) == 0)
            #expect(try occurrences(of: Data(secret.reversed()), in: shared.proxy.process) == 0)
        }
    }

    @Test func whoHasTakenOverTheProxyGetsNoOtherLeaves() async throws {
        try await withSigner { shared, _, events in
            let questions =
                [
                    "\(OriginBed.name) 443", "any.other.test 443", "pinproxy.test 443", "10.0.0.1 443",
                    "tunnel.test 443", "denied.test 443",
                ]
                // Addresses that the configuration writes in another way.
                + ["2001:db8::1 443", "2001:0DB8:0::1 443", "::ffff:192.0.2.1 443", "::ffff:c000:201 443"]
                + ["raw 00", "raw " + String(repeating: "01", count: 4000), "a.test 443"]
            let script = PythonPeer.path("signing.py")
            let run = try await shared.bed.run(
                ["/usr/bin/python3", script, "ask", shared.bed.path("proxy/signer.sock"), shared.proxy.authority],
                input: Array((questions.joined(separator: "\n") + "\n").utf8))
            let lines = run.output.split(separator: "\n").dropFirst().map(String.init)
            #expect(lines.count == questions.count, "\(run)")
            let kinds = lines.map { line in ["issued", "refused", "closed"].first { line.contains("\"\($0)\"") } ?? "" }
            let expected =
                Array(repeating: "issued", count: 4) + Array(repeating: "refused", count: 7) + ["closed", "issued"]
            #expect(kinds == expected, "\(lines)")
            for line in lines[4..<10] { #expect(line.contains("doesn't intercept "), "\(line)") }
            let refused = [
                "tunnel.test", "denied.test", "2001:db8::1", "2001:0DB8:0::1", "::ffff:192.0.2.1", "::ffff:c000:201",
                "",
            ]
            #expect(events.all("leaf.refused").map { $0["host"] ?? "" } == refused)
        }
    }

    @Test func aFloodOfQuestionsHoldsUpNobody() async throws {
        try await withSigner { shared, signer, events in
            let path = shared.bed.path("proxy/signer.sock")
            let flood = try await PythonPeer(in: shared.bed, script: "signing.py", ["flood", path, "64"])
            for name in [OriginBed.name, "second.test", "third.test"] {
                let run = try await shared.curl("https://\(name):\(shared.originPort)/echo")
                #expect(run.succeeded, "\(run)")
            }
            // Of thousands.
            #expect((1...60).contains(events.all("leaf.refused").count))
            await flood.process.stop()
            try await eventually("the flood's connections to be closed") {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/\(signer.identifier)/fd").count < 32
            }
        }
    }

    /// It accepts as many as it has descriptors for. The log has one line at the beginning, and one at the end.
    @Test func moreConnectionsThanItMayHaveWait() async throws {
        try await withSigner(launcher: ["/usr/bin/prlimit", "--nofile=100:100"]) { shared, _, events in
            let path = shared.bed.path("proxy/signer.sock")
            let flood = try await PythonPeer(in: shared.bed, script: "signing.py", ["flood", path, "40"])
            _ = try await events.first("signer.accept") { $0["cause"] == "36 connections are open" }
            let answer = try await shared.proxy.connect(to: shared.authority)
            #expect(answer.status == 503 && answer.body.contains("no answer within 5.0 seconds"), "\(answer)")
            await flood.process.stop()
            try await eventually("a certificate") { try await shared.curl(shared.url + "/echo").succeeded }
            #expect(try await events.first("signer.accept", number: 2)["effect"] == "over")
        }
    }

    /// Cached certificates are still served. Anything else fails at once with the reason. Tunnels need no certificate.
    @Test func withoutTheSignerItIsSaidAndTheOthersAreServed() async throws {
        try await withSigner { shared, signer, _ in
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            await signer.stop()
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            let answer = try await shared.proxy.connect(to: "second.test:\(shared.originPort)")
            #expect(answer.status == 503 && answer["Retry-After"] == "5", "\(answer)")
            #expect(answer.body.contains("signer.sock can't be connected to"), "\(answer)")
            let event = try await shared.proxy.events.first("signer.failed")
            #expect(event["cause"]?.contains("signer.sock") == true, "\(event)")
            #expect(try await tunnel(shared) == "200")
            // A refusal that would be a page is the answer to CONNECT.
            #expect(try await shared.proxy.connect(to: "page.test:\(shared.originPort)").status == 502)
            let again = try await startSigner(shared.bed)
            #expect(try await shared.curl("https://second.test:\(shared.originPort)/echo").succeeded)
            #expect(try await shared.proxy.events.first("signer.failed", number: 2)["effect"] == "over")
            withExtendedLifetime(again) {}
        }
    }

    @Test(arguments: [
        ("", "no answer within 5.0 seconds"), ("closing", "closed the connection"), ("nonsense", "makes no sense"),
        ("twice", "issues no certificate: never"), ("empty", "makes no sense"),
        ("half", "the signer's certificate is broken"),
        ("oversized", "closed the connection"), ("vanishing", "can't be connected to"),
    ])
    func aSignerThatDoesNotAnswerHoldsUpNobody(word: String, cause: String) async throws {
        try await withSigner { shared, signer, _ in
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            await signer.stop()
            let path = shared.bed.path("proxy/signer.sock")
            try? FileManager.default.removeItem(atPath: path)
            let silent = try await PythonPeer(in: shared.bed, script: "signing.py", ["silent", path, word])
            let before = try await shared.footprint()
            async let answer = shared.proxy.connect(to: "second.test:\(shared.originPort)")
            _ = try await silent.events.first("accepted")
            #expect(try await tunnel(shared) == "200")
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            let refusal = try await answer
            #expect(refusal.status == 503 && refusal.body.contains(cause), "\(refusal)")
            await silent.process.stop()
            try await shared.hasGivenBack(since: before)
        }
    }

    /// Otherwise any client could use up what the signer may issue.
    @Test func noCertificateIsAskedForAHostThatCannotBeReached() async throws {
        try await withSigner { shared, _, events in
            for host in ["nowhere.onion", "127.0.0.1"] {
                let answer = try await shared.proxy.connect(to: "\(host):\(shared.originPort)")
                #expect(answer.status == 502, "\(answer)")
            }
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            #expect(events.all("leaf.issued").map { $0["host"] ?? "" } == [OriginBed.name])
        }
    }

    @Test func aPageThatRefusesIsShown() async throws {
        try await withSigner { shared, _, _ in
            let run = try await shared.curl("-i", "https://page.test:\(shared.originPort)/")
            #expect(run.output.contains("HTTP/1.1 502") && run.succeeded, "\(run)")
        }
    }

    /// Port 80 is taken for plain HTTP, which needs no certificate, until the client speaks TLS.
    @Test(.enabled(if: geteuid() == 0, "needs root, to listen on port 80")) func aClientThatSpeaksTLSOnPort80IsServed()
        async throws
    {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: Self.pins, trust: nil, sections: Self.section)
            let (signer, events) = try await startSigner(bed)
            let roots = try TestRoots()
            let network = LoopbackAddress.network()
            let origins = [
                try await PythonPeer.origin(
                    in: bed, name: "secure", chain: roots.chain("secure.test"),
                    ["--listen", "\(network).1", "--port", "80"]),
                try await PythonPeer.origin(in: bed, chain: nil, ["--listen", "\(network).2", "--port", "80"]),
            ]
            let shared = try await OriginBed.prepare(
                bed, sections: Self.section, hosts: ["secure.test": "\(network).1", "plain.test": "\(network).2"],
                roots: roots)
            #expect(try await shared.curl("https://secure.test:80/echo").succeeded)
            #expect(events.all("leaf.issued").map { $0["host"] ?? "" } == ["secure.test"])
            await signer.stop()
            // Its certificate is kept.
            #expect(try await shared.curl("https://secure.test:80/echo").succeeded)
            let plain = try await shared.curl("--proxytunnel", "http://plain.test/echo")
            #expect(plain.succeeded, "\(plain)")
            withExtendedLifetime(origins) {}
        }
    }

    @Test func aRotationIsFollowed() async throws {
        try await withSigner { shared, _, events in
            let bed = shared.bed
            func rotate(_ step: String...) async throws {
                let run = try await bed.run(
                    [ProxyProcess.executable, "ca", "rotate"] + step + ["--config", bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed))
                #expect(run.succeeded, "\(run)")
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

    /// Without a signal, as soon as the proxy asks by the new configuration; with one at once.
    @Test func aReloadOfTheProxyIsFollowed() async throws {
        try await withSigner { shared, signer, events in
            func configure(_ pins: String) throws {
                try ProxyProcess.write(
                    to: shared.bed, folder: "proxy", pins: pins, trust: shared.bed.path("roots.pem"),
                    sections: Self.section)
            }
            #expect(try await tunnel(shared) == "200")
            try configure("hosts: []\n")
            #expect(try await shared.proxy.reload().name == "config.reload")
            let run = try await shared.curl("https://tunnel.test:\(shared.originPort)/echo")
            #expect(run.succeeded, "\(run)")
            _ = try await events.first("config.reload")
            // An invalid configuration changes nothing.
            try configure("hosts: 1\n")
            signer.send(signal: SIGHUP)
            _ = try await events.first("config.error")
            try configure("hosts: []\n")
            signer.send(signal: SIGHUP)
            _ = try await events.first("config.reload", number: 2)
            let other = try await shared.curl("https://second.test:\(shared.originPort)/echo")
            #expect(other.succeeded, "\(other)")
        }
    }

    /// Keys and passwords for origins are for the proxy alone: the signer needs none.
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
                [ProxyProcess.executable, "signer", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(run.ending == .exited(78) && run.errors.contains("authority.signer is not set"), "\(run)")
        }
    }
}
