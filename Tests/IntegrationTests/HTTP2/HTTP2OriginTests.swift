import Foundation
import PinproxyTestAuthority
import Testing

/// Common servers as HTTP/2 origins.
@Suite(.timeLimit(.minutes(10)))
struct HTTP2OriginTests {
    enum Server: String, CaseIterable, Sendable {
        case nginx, nghttpd, node, go

        var isInstalled: Bool {
            switch self {
            case .nginx: true
            case .nghttpd: FileManager.default.isExecutableFile(atPath: "/usr/bin/nghttpd")
            case .node: FileManager.default.isExecutableFile(atPath: "/usr/bin/node")
            case .go: InstalledClients.areAll && FileManager.default.isExecutableFile(atPath: "/usr/bin/go")
            }
        }
    }

    private static let length = 3_000_000

    /// Starts the server as `server.test`. `/large/N` is a body of N bytes.
    private func start(
        _ server: Server, in bed: TestBed, _ roots: TestRoots, options: String = ""
    ) async throws -> UInt16 {
        let chain = try roots.chain("server.test")
        let certificate = try bed.file("server.pem", chain.pem, mode: 0o644)
        let key = try bed.file("server.key", chain.keyPEM)
        switch server {
        case .nginx:
            let nginx = try await NginxOrigin(
                in: bed, sites: [.init(name: "server.test", chain: chain)],
                locations: "location = /echo { return 200 nothing; }",
                options: options, http2: true)
            try bed.file("nginx/documents/large/\(Self.length)", Pattern.bytes(Self.length), mode: 0o644)
            return nginx.port
        case .nghttpd:
            let port = try bed.port()
            try bed.file("documents/large/\(Self.length)", Pattern.bytes(Self.length), mode: 0o644)
            _ = try await bed.start([
                "nghttpd", "-a", "127.0.0.1", "-d", bed.path("documents"), "--echo-upload", "\(port)", key, certificate,
            ])
            try await eventually("nghttpd to listen") { (try? RawConnection(port: port)) != nil }
            return port
        case .node:
            return try await PythonPeer(
                in: bed, script: "node_http2_origin.mjs", [certificate, key], interpreter: "node"
            ).port
        case .go:
            let build = try await bed.run(
                ["go", "build", "-o", bed.path("go_http2"), PythonPeer.path("go_http2.go")],
                environment: ["GO111MODULE": "off", "GOCACHE": "\(Documentation.repository)/.build/go-cache"])
            try #require(build.succeeded, "\(build)")
            let process = try await bed.start([bed.path("go_http2"), "serve", certificate, key])
            return try #require(try await EventLog(lines: process.output).first("ready")["port"].flatMap { UInt16($0) })
        }
    }

    private func proxy(_ bed: TestBed, _ roots: TestRoots) async throws -> ProxyProcess {
        try await ProxyProcess(in: bed, trust: roots.write(to: bed), hosts: ["server.test": "127.0.0.1"])
    }

    @Test(arguments: Server.allCases) func aServerIsUsed(server: Server) async throws {
        guard server.isInstalled else { return }
        try await withTestBed { bed in
            let roots = try TestRoots()
            let port = try await start(server, in: bed, roots)
            let proxy = try await proxy(bed, roots)
            for option in ["--http1.1", "--http2"] {
                let url = "https://server.test:\(port)/large/\(Self.length)"
                let run = try await bed.curl(
                    via: proxy,
                    [option, "--parallel", "-w", "%{http_code}\\n"]
                        + (0..<10).flatMap { ["-o", bed.path("got-\($0)"), url] })
                #expect(run.output.split(separator: "\n") == Array(repeating: "200", count: 10), "\(run)")
                for number in 0..<10 { #expect(try Pattern.isWhole(bed.path("got-\(number)"), Self.length)) }
                if server == .nginx { continue }
                let body = try bed.file("body", Pattern.bytes(1_000_000))
                let echo = try await bed.curl(
                    via: proxy,
                    [
                        option, "-H", "Expect:", "--data-binary", "@\(body)", "-o", bed.path("echo"),
                        "https://server.test:\(port)/echo",
                    ])
                #expect(try echo.succeeded && Pattern.isWhole(bed.path("echo"), 1_000_000), "\(echo)")
            }
            // Each request used HTTP/2: it is the task's protocol.
            let line = try await proxy.events.first("exchange") { $0["path"] == "/large/\(Self.length)" }
            #expect(line["status"] == "200" && line["cause"] == nil, "\(line)")
        }
    }

    /// nginx sends GOAWAY after so many requests, and closes. No client notices, not even with a request that must not
    /// be repeated: what it leaves out was not processed (RFC 9113 section 8.7), and neither was what is still to be
    /// sent.
    @Test(arguments: ["--http1.1", "--http2"], ["GET", "POST"])
    func nginxEndsItsConnectionsUnnoticed(option: String, method: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let port = try await start(.nginx, in: bed, roots, options: "keepalive_requests 7;")
            let proxy = try await proxy(bed, roots)
            let run = try await bed.curl(
                via: proxy,
                [
                    option, "--parallel", "--parallel-max", "20", "-X", method, "-w", "%{http_code}\\n", "-o",
                    "/dev/null",
                    "https://server.test:\(port)/echo?[1-300]",
                ])
            let codes = run.output.split(separator: "\n").reduce(into: [:]) { $0[$1, default: 0] += 1 }
            #expect(codes == ["200": 300], "\(codes) \(run.errors)")
        }
    }

    /// nginx answers before it has read the body, and resets the stream.
    @Test(arguments: Crossing.bothToH2) func nginxRefusesABodyThatIsTooLarge(crossing: Crossing) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let nginx = try await NginxOrigin(
                in: bed,
                sites: [
                    .init(
                        name: "server.test", chain: try roots.chain("server.test"),
                        directives: "client_max_body_size 1k;")
                ],
                http2: true)
            let proxy = try await proxy(bed, roots)
            let body = try bed.file("body", Pattern.bytes(5_000_000))
            let run = try await bed.curl(
                via: proxy,
                [
                    crossing.option, "-i", "-H", "Expect:", "--data-binary", "@\(body)",
                    "https://server.test:\(nginx.port)/hello",
                ])
            #expect(run.output.contains("HTTP/\(crossing.version) 413"), "\(run)")
        }
    }
}
