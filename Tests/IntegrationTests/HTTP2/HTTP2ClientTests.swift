import Foundation
import PinproxyTestAuthority
import Testing

/// Common programs, each speaking HTTP/2 through interception, with a right pin and with a wrong one.
@Suite(.sharedBed(HTTP2ClientBed.prepare), .timeLimit(.minutes(10)))
struct HTTP2ClientTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private static let length = 500_000

    /// A program that asks for a page twenty times at once, and then sends what came to /echo.
    struct Program: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// What has to be there.
        let executable: String
        /// For `sh -ec`, with the URL as `$0`.
        let call: String
        /// As it names it.
        let version: String
        /// Tried by `make test-clients`.
        var isHeavy = false
    }

    private static let programs = [
        Program(
            testDescription: "httpx", executable: PythonPeer.pythonWithPackages,
            call: "\(PythonPeer.pythonWithPackages) \(PythonPeer.path("httpx_client.py")) $0", version: "HTTP/2"),
        Program(
            testDescription: "Node", executable: "/usr/bin/node",
            call: "node \(PythonPeer.path("node_http2.mjs")) $PROXY_PORT $SSL_CERT_FILE $0", version: "h2"),
        Program(
            testDescription: "Go", executable: "/usr/bin/go",
            call: "GO111MODULE=off go build -o go_http2 \(PythonPeer.path("go_http2.go")); ./go_http2 fetch $0",
            version: "HTTP/2.0", isHeavy: true),
        Program(
            testDescription: "Java", executable: "/usr/bin/keytool",
            call: """
                keytool -importcert -noprompt -alias proxy -file $SSL_CERT_FILE -keystore java.store -storepass changeit
                java -Djavax.net.ssl.trustStore=java.store -Djavax.net.ssl.trustStorePassword=changeit \
                \(PythonPeer.path("JavaHTTP2.java")) $PROXY_PORT $0
                """, version: "HTTP_2", isHeavy: true),
    ]

    private struct Fetched: Decodable {
        let `protocol`: String?
        let statuses: [Int]?
        let length: Int?
        let isSame: Bool?
        let echo: Int?
        let failed: String?
    }

    private func run(_ program: Program, _ host: String) async throws -> (Fetched, Run) {
        let place = shared.bed.path("\(program.testDescription)-\(host)")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        let cache = "\(Documentation.repository)/.build/go-cache"
        let run = try await shared.bed.run(
            [
                "/bin/sh", "-ec", "cd '\(place)'; \(program.call)",
                "https://\(shared.authority(of: host))/large/\(Self.length)",
            ],
            environment: shared.proxy.clientEnvironment.merging([
                "PROXY_PORT": "\(shared.proxy.port)", "GOCACHE": cache,
            ]) { $1 })
        let line = run.output.split(separator: "\n").last { $0.hasPrefix("{") } ?? "{}"
        return (try JSONDecoder().decode(Fetched.self, from: Data(line.utf8)), run)
    }

    @Test(arguments: programs) func aProgramIsServed(program: Program) async throws {
        guard FileManager.default.isExecutableFile(atPath: program.executable),
            !program.isHeavy || InstalledClients.areAll
        else {
            #expect(!InstalledClients.areAll, "\(program.executable) was to be installed")
            return
        }
        for host in ["h1.test", "h2.test"] {
            let (fetched, run) = try await run(program, host)
            #expect(fetched.protocol == program.version && fetched.statuses == [200], "\(run)")
            #expect(fetched.length == Self.length && fetched.isSame == true && fetched.echo == Self.length, "\(run)")
        }
        let (wrong, run) = try await run(program, "other.test")
        #expect(wrong.isSame != true && !(wrong.statuses ?? []).contains(200), "\(run)")
        #expect(
            !(try #require(shared.origin).events.all("request").contains {
                $0["authority"]?.hasPrefix("other.test") == true
            }))
    }

    // MARK: nghttp2's programs don't support proxies

    private func proxychains(_ arguments: String...) async throws -> Run {
        let configuration = try shared.bed.file(
            "proxychains-\(UUID()).conf", "strict_chain\nproxy_dns\n[ProxyList]\nhttp 127.0.0.1 \(shared.proxy.port)\n")
        return try await shared.bed.run(["proxychains4", "-q", "-f", configuration] + arguments)
    }

    @Test(arguments: ["h1.test", "h2.test"]) func nghttpIsServed(host: String) async throws {
        let url = "https://\(shared.authority(of: host))"
        let run = try await proxychains("nghttp", "-v", "-n", "-m", "10", "\(url)/large/\(Self.length)", "\(url)/echo")
        #expect(run.succeeded && run.output.contains("The negotiated protocol: h2"), "\(run)")
        #expect(
            !run.output.contains("RST_STREAM") && run.output.components(separatedBy: ":status: 200").count == 21,
            "\(run)")
        // Trailers, and a body with padding.
        let body = try shared.bed.file("nghttp-\(host)", Pattern.bytes(100_000))
        let echo = try await proxychains(
            "nghttp", "-d", body, "--trailer=x-sum: 5", "-b", "100", "\(url)/echo")
        #expect(echo.output.contains("\"length\": 100000"), "\(echo)")
        // A body of HTTP/1.1 has no trailers after a Content-Length (RFC 9112 section 6.3), which nghttp sends.
        #expect(echo.output.contains("\"trailers\": \(host == "h1.test" ? "[]" : "[\"x-sum: 5\"]")"), "\(echo)")
        #expect(echo.output.contains(try await shared.sha256(body)), "\(echo)")
        #expect(
            !(try await proxychains("nghttp", "https://\(shared.authority(of: "other.test"))/echo")).output.contains(
                "{"))
    }

    @Test(arguments: ["h1.test", "h2.test"]) func h2loadIsServed(host: String) async throws {
        let run = try await proxychains(
            "h2load", "-n", "1000", "-c", "5", "-m", "20", "https://\(shared.authority(of: host))/large/1000")
        #expect(run.output.contains("1000 succeeded, 0 failed, 0 errored, 0 timeout"), "\(run)")
        #expect(run.output.contains("Application protocol: h2"), "\(run)")
    }

    // MARK: curl

    @Test(arguments: ["--http2", "--http2-prior-knowledge"]) func curlIsServed(option: String) async throws {
        for host in ["h1.test", "h2.test"] {
            let urls = Array(repeating: "https://\(shared.authority(of: host))/large/\(Self.length)", count: 20)
            let run = try await shared.bed.curl(
                via: shared.proxy,
                [option, "--parallel", "-w", "%{http_version} %{http_code} %{size_download}\\n"]
                    + urls.flatMap { ["-o", "/dev/null", $0] })
            #expect(run.output.split(separator: "\n").allSatisfy { $0 == "2 200 \(Self.length)" }, "\(run)")
            #expect(run.output.split(separator: "\n").count == 20, "\(run)")
        }
        let wrong = try await shared.bed.curl(
            via: shared.proxy, [option, "https://\(shared.authority(of: "other.test"))/echo"])
        #expect(!wrong.succeeded && wrong.errors.contains("502"), "\(wrong)")
    }
}

enum HTTP2ClientBed {
    /// `other.test` has a wrong pin.
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await HTTP2Bed.prepare(
            bed, pins: "hosts:\n  - match: other.test\n    pinning: public-key\n    pins: [\(String.wrongPin)]\n",
            sections: ["timeouts": ["tls_handshake: 60s"]])
    }
}
