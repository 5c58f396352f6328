import Foundation
import Testing

/// `session.http`, `proxy.http` and `session.ping`.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2VersionTests {
    /// The protocols that the configuration allows on one side, those that the peer offers, and the negotiated one;
    /// nil: none.
    struct Case: Sendable, CustomTestStringConvertible {
        let allowed: String?
        let offered: String
        let spoken: String?

        var testDescription: String { "\(allowed ?? "default") and \(offered): \(spoken ?? "nothing")" }
    }

    private static let cases = [
        Case(allowed: nil, offered: "h2,http/1.1", spoken: "h2"),
        Case(allowed: nil, offered: "http/1.1,h2", spoken: "http/1.1"),
        Case(allowed: nil, offered: "h2", spoken: "h2"), Case(allowed: nil, offered: "http/1.1", spoken: "http/1.1"),
        Case(allowed: "[h2, http/1.1]", offered: "h2,http/1.1", spoken: "h2"),
        Case(allowed: "[http/1.1]", offered: "h2,http/1.1", spoken: "http/1.1"),
        Case(allowed: "[http/1.1]", offered: "h2", spoken: nil),
        Case(allowed: "[h2]", offered: "h2,http/1.1", spoken: "h2"),
        Case(allowed: "[h2]", offered: "http/1.1", spoken: nil),
    ]

    @Test(arguments: cases) func anEntryLimitsWhatIsSpokenToItsHost(version: Case) async throws {
        try await withTestBed { bed in
            let pins =
                version.allowed.map { "hosts:\n  - match: h2.test\n    session: {http: \($0)}\n" } ?? "hosts: []\n"
            let shared = try await HTTP2Bed.prepare(bed, pins: pins, origin: ["--protocols", version.offered])
            for crossing in Crossing.bothToH2 {
                let run = try await shared.curl(crossing, "/echo", "-i")
                guard let spoken = version.spoken else {
                    #expect((run.succeeded ? run.output : run.errors).contains(" 502"), "\(run)")
                    // Python's TLS can't say that there is no protocol in common: it closes.
                    if version.allowed == "[h2]" {
                        let line = try await shared.proxy.events.first("exchange")
                        #expect(line["cause"]?.contains("session.http") == true, "\(line)")
                    }
                    continue
                }
                #expect(
                    run.output.contains(spoken == "h2" ? "\"version\": \"HTTP/2\"" : "\"version\": \"HTTP/1.1\""),
                    "\(run)")
            }
            if version.spoken == nil { #expect(try #require(shared.origin).events.all("request").isEmpty) }
        }
    }

    private static let clients = [
        Case(allowed: nil, offered: "h2,http/1.1", spoken: "h2"),
        Case(allowed: nil, offered: "http/1.1", spoken: "http/1.1"),
        Case(allowed: "[http/1.1]", offered: "h2,http/1.1", spoken: "http/1.1"),
        Case(allowed: "[http/1.1]", offered: "h2", spoken: nil),
        Case(allowed: "[h2]", offered: "h2,http/1.1", spoken: "h2"),
        Case(allowed: "[h2]", offered: "http/1.1", spoken: nil),
        Case(allowed: "[h2, http/1.1]", offered: "http/1.1,h2", spoken: "h2"),
    ]

    @Test(arguments: clients) func theProxyLimitsWhatClientsSpeak(version: Case) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, sections: ["proxy": version.allowed.map { ["http: \($0)"] } ?? []])
            let client = try HTTP2Client(
                of: try await HTTP2Client.program(in: shared), authority: shared.authority(of: "h2.test"))
            let protocols = version.offered.split(separator: ",").map(String.init)
            guard let spoken = version.spoken else {
                await #expect(throws: TestBedError.self) { try await client.connect(protocols: protocols) }
                let line = try await shared.proxy.events.first("exchange") {
                    $0["cause"]?.contains("proxy.http") == true
                }
                #expect(line["host"] == "h2.test", "\(line)")
                return
            }
            #expect(try await client.connect(protocols: protocols).protocol == spoken)
        }
    }

    /// A client that offers no protocols speaks HTTP/1.1.
    @Test func noOfferIsHTTP1() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let run = try await shared.curl(.h1ToH2, "/echo", "-i", "--no-alpn")
            #expect(run.output.hasPrefix("HTTP/1.1 200"), "\(run)")
        }
    }

    /// An origin may change the protocol that it chooses.
    @Test func whatAnOriginChoseMayChange() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let port = try bed.port()
            let shared = try await HTTP2Bed.prepare(
                bed, origin: ["--port", "\(port)"], sections: ["timeouts": ["idle_upstream: 100ms"]], roots: roots)
            #expect(try await shared.curl(.h2ToH2, "/echo").output.contains("HTTP/2"))
            await shared.origin?.process.stop()
            _ = try await PythonPeer.http2Origin(
                in: bed, name: "changed", chain: roots.chain("h2.test"),
                ["--protocols", "http/1.1", "--port", "\(port)"])
            for _ in 0..<3 {
                #expect(try await shared.curl(.h2ToH2, "/echo").output.contains("HTTP/1.1"))
            }
        }
    }

    /// While a request is in flight the origin is asked whether it lives; one that says nothing loses its connection.
    @Test func aSilentConnectionIsFoundByPings() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, pins: "hosts:\n  - match: h2.test\n    session: {ping: 1s}\n")
            let waiting = try await bed.start(
                ["curl", "-sS", "--http2", shared.url(.h2ToH2, "/silent/request")],
                environment: shared.proxy.clientEnvironment)
            _ = try await #require(shared.origin).events.first("ping", number: 2)
            #expect(waiting.unaskedEnding == nil)
            let deaf = try await shared.curl(.h2ToH2, "/deaf/x", "-i", "-m", "100")
            #expect(deaf.output.contains("HTTP/2 502") && deaf.output.contains("PING"), "\(deaf)")
        }
    }

    @Test func withoutTheSettingNobodyIsPinged() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["first_byte: 3s"]])
            let run = try await shared.curl(.h2ToH2, "/silent/request", "-i")
            #expect(run.output.contains("HTTP/2 504"), "\(run)")
            // The PING for a silent connection is sent when the timeout expires.
            #expect(try #require(shared.origin).events.all("ping").count <= 1)
        }
    }
}
