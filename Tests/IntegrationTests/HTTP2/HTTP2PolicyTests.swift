import Foundation
import PinproxyTestAuthority
import Testing

/// Pins and names apply to HTTP/2 exactly as to HTTP/1.1.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2PolicyTests {
    private static let wrong = "hosts:\n  - match: h2.test\n    pinning: public-key\n    pins: [\(String.wrongPin)]\n"

    @Test func aMismatchIsRefusedAsOverHTTP1() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, pins: Self.wrong.replacing("match: h2.test", with: "match: \"*.test\""))
            var answers: [String] = []
            for host in ["h1.test", "h2.test"] {
                let answer = try await shared.proxy.connect(to: shared.authority(of: host))
                answers.append(
                    answer.description.replacing(shared.authority(of: host), with: "HOST").replacing(host, with: "HOST")
                        .replacing("h1.test", with: "HOST").replacing(/127\.0\.0\.1:\d+/, with: "ADDRESS")
                        .replacing(/task( +|" : )\d+/, with: "TASK")
                        // The client is only named if it is found quickly enough.
                        .replacing(/"client" : {[^}]*}/, with: "CLIENT")
                        .replacing(/\\n  client  [^"]*\\n/, with: "CLIENT")
                        .replacing(/Content-Length: \d+/, with: "LENGTH"))
            }
            #expect(answers[0].hasPrefix("HTTP/1.1 502 ") && answers[0] == answers[1], "\(answers)")
            #expect(try #require(shared.origin).events.all("request").isEmpty)
        }
    }

    /// After a reload, streams in flight finish and later ones get the new policy.
    @Test func aReloadRetiresConnections() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let held = try await client.request("GET", "/hold/first")
            #expect(try await client.head(held).status == 200)
            #expect(try await client.get("/echo").head.status == 200)
            try bed.file("proxy/pins.yaml", Self.wrong)
            #expect(try await shared.proxy.reload().name == "config.reload")
            let (head, body) = try await client.get("/later")
            #expect(head.status == 502 && body.text?.contains("pinning failure for h2.test") == true, "\(head) \(body)")
            #expect(try #require(shared.origin).events.all("request").contains { $0["target"] == "/later" } == false)
            // Bypasses the proxy, which refuses the host by now.
            let port = try #require(shared.ports["h2.test"])
            let release = try await bed.run([
                "curl", "-sS", "--http2", "--cacert", bed.path("roots.pem"), "--resolve", "h2.test:\(port):127.0.0.1",
                "https://h2.test:\(port)/release/first",
            ])
            #expect(release.succeeded && release.output == "released", "\(release)")
            #expect(try await client.body(held).text == "first,second")
            // The connection that the new pins forbid is closed after its last exchange.
            let number = try #require(shared.origin).events.all("request").first { $0["target"] == "/hold/first" }?[
                "connection"]
            _ = try await #require(shared.origin).events.first("closed") { $0["connection"] == number }
        }
    }

    /// With pins that still match, only the connection is new.
    @Test func aReloadThatAllowsTheHostContinues() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            for round in 0..<3 {
                #expect(try await client.get("/echo").head.status == 200)
                try bed.file(
                    "proxy/pins.yaml", "hosts:\n  - match: h2.test\n    session: {max_redirects: \(round + 1)}\n")
                #expect(try await shared.proxy.reload().name == "config.reload")
            }
            #expect(try await client.get("/echo").head.status == 200)
        }
    }

    // MARK: Names

    /// What a request says of where it goes, besides the CONNECT to h2.test.
    struct Naming: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var fields: @Sendable (_ authority: String) -> [(String, String?)] = { _ in [] }
        /// nil: the stream is reset.
        let status: Int?
        /// By a later nghttp2 (1.64), before the proxy sees the head.
        var mayBeReset = false
    }

    private static let namings = [
        Naming(testDescription: ":authority names it", status: 200),
        Naming(
            testDescription: "Host in the place of :authority", fields: { [(":authority", nil), ("host", $0)] },
            status: 200),
        Naming(testDescription: "Host beside :authority", fields: { [("host", $0)] }, status: 200),
        Naming(testDescription: "in upper case", fields: { [(":authority", $0.uppercased())] }, status: 200),
        Naming(
            testDescription: "another host", fields: { [(":authority", $0.replacing("h2.test", with: "other.test"))] },
            status: 421),
        Naming(testDescription: "another port", fields: { _ in [(":authority", "h2.test:1")] }, status: 421),
        Naming(testDescription: "no port", fields: { _ in [(":authority", "h2.test")] }, status: 421),
        Naming(
            testDescription: "another Host",
            fields: { [(":authority", nil), ("host", $0.replacing("h2", with: "other"))] }, status: 421),
        Naming(
            testDescription: "Host that differs", fields: { [("host", $0.replacing("h2", with: "other"))] }, status: nil
        ),
        Naming(testDescription: "no name at all", fields: { _ in [(":authority", nil)] }, status: nil),
        Naming(
            testDescription: "two Hosts", fields: { [(":authority", nil), ("host", $0), ("host", "other.test")] },
            status: nil),
        Naming(testDescription: "a user", fields: { [(":authority", "user@\($0)")] }, status: 400, mayBeReset: true),
        Naming(testDescription: "http", fields: { _ in [(":scheme", "http")] }, status: 400),
        Naming(testDescription: "another scheme", fields: { _ in [(":scheme", "ftp")] }, status: 400),
    ]

    @Test func namesAgreeOrNothingIsPassedOn() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let program = try await HTTP2Client.program(in: shared)
            let authority = shared.authority(of: "h2.test")
            for (number, naming) in Self.namings.enumerated() {
                let client = try HTTP2Client(of: program, authority: authority)
                try await client.connect()
                let stream = try await client.request("GET", "/named/\(number)", naming.fields(authority))
                let head = try await client.head(stream)
                let isReset = naming.status == nil || naming.mayBeReset && head.reset != nil
                #expect(
                    head.status == (isReset ? nil : naming.status) && (head.reset != nil) == isReset,
                    "\(naming.testDescription): \(head)")
                let isPassedOn = try #require(shared.origin).events.all("request").contains {
                    $0["target"] == "/named/\(number)"
                }
                #expect(isPassedOn == (naming.status == 200), "\(naming.testDescription)")
                // The connection stays open.
                #expect(try await client.get("/echo").head.status == 200, "\(naming.testDescription)")
            }
        }
    }

    /// A connection with another host's SNI serves no request.
    @Test func anotherSNIIsMisdirected() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let client = try HTTP2Client(
                of: try await HTTP2Client.program(in: shared), authority: shared.authority(of: "h2.test"))
            try await client.connect(name: "other.test")
            for host in ["h2.test", "other.test"] {
                let (head, body) = try await client.get("/sni", [(":authority", shared.authority(of: host))])
                #expect(head.status == 421 && body.text?.contains("SNI names other.test") == true, "\(head) \(body)")
            }
            #expect(try #require(shared.origin).events.all("request").isEmpty)
        }
    }

    /// A leaf names one host, so no client uses its connection for another.
    @Test func noClientCanCoalesce() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let run = try await bed.curl(
                via: shared.proxy,
                ["--http2", "-w", "%{num_connects}\\n", "-o", "/dev/null", "-o", "/dev/null"]
                    + ["h2.test", "other.test"].map { "https://\(shared.authority(of: $0))/echo" })
            #expect(run.output == "1\n1", "\(run)")
            let leaf = try await bed.run(
                [
                    "/bin/sh", "-c",
                    """
                    openssl s_client -proxy \(shared.proxy.address):\(shared.proxy.port) -connect $0 -servername \
                    h2.test </dev/null 2>/dev/null \
                    | openssl x509 -noout -ext subjectAltName
                    """, shared.authority(of: "h2.test"),
                ])
            #expect(
                leaf.output.components(separatedBy: "DNS:").count == 2 && leaf.output.contains("DNS:h2.test"), "\(leaf)"
            )
        }
    }
}
