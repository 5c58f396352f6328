import Foundation
import Testing

/// Common programs through the proxy, with only the usual environment variables.
@Suite(.sharedBed(ClientProgramsBed.prepare), .timeLimit(.minutes(5)))
struct ClientProgramsTests {
    let shared: SharedBed
    let url: String
    let wrongURL: String

    init() throws {
        shared = try sharedBed()
        url = "https://right.test:\(shared.originPort)/hello"
        wrongURL = "https://wrong.test:\(shared.originPort)/hello"
    }

    private func run(_ arguments: String..., environment: [String: String] = [:]) async throws -> Run {
        try await shared.bed.run(
            arguments, environment: shared.proxy.clientEnvironment.merging(environment) { $1 })
    }

    @Test func curl() async throws {
        let right = try await run("curl", "-sS", url)
        #expect(right.output == "hello", "\(right)")
        let wrong = try await run("curl", "-sSv", wrongURL)
        #expect(wrong.ending == .exited(56), "\(wrong)")
        #expect(wrong.errors.contains("pinning failure for wrong.test"), "\(wrong)")
    }

    @Test func curlWithPlainHTTP() async throws {
        let plain = try await run("curl", "-sS", "http://unpinned.test:\(shared.secondOriginPort)/hello")
        #expect(plain.output == "hello", "\(plain)")
        // Where there is no certificate there is nothing to pin.
        let pinned = try await run("curl", "-sSi", "http://right.test:\(shared.secondOriginPort)/hello")
        #expect(pinned.output.hasPrefix("HTTP/1.1 403 "), "\(pinned)")
    }

    @Test func wget() async throws {
        let right = try await run("wget", "-qO-", "--ca-certificate=\(shared.proxy.authority)", url)
        #expect(right.output == "hello", "\(right)")
        let wrong = try await run("wget", "-O-", "--tries=1", "--ca-certificate=\(shared.proxy.authority)", wrongURL)
        #expect(!wrong.succeeded)
        #expect(wrong.errors.contains("pinning failure for wrong.test"), "\(wrong)")
    }

    @Test(arguments: ["urllib", "strict"])
    func python(way: String) async throws {
        let right = try await run(PythonPeer.python, PythonPeer.path("fetch.py"), way, url)
        #expect(right.output == "hello", "\(right)")
        let wrong = try await run(PythonPeer.python, PythonPeer.path("fetch.py"), way, wrongURL)
        #expect(!wrong.succeeded)
        #expect(wrong.errors.contains("pinning failure for wrong.test"), "\(wrong)")
    }

    @Test func pythonRequests() async throws {
        let right = try await run(PythonPeer.pythonWithPackages, PythonPeer.path("fetch.py"), "requests", url)
        #expect(right.output == "hello", "\(right)")
        let wrong = try await run(PythonPeer.pythonWithPackages, PythonPeer.path("fetch.py"), "requests", wrongURL)
        #expect(!wrong.succeeded)
        #expect(wrong.errors.contains("ProxyError"), "\(wrong)")
    }

    @Test func node() async throws {
        let arguments = [shared.proxy.address, "\(shared.proxy.port)", shared.proxy.authority]
        let right = try await shared.bed.run(["node", PythonPeer.path("fetch.mjs")] + arguments + [url])
        #expect(right.output == "200 hello", "\(right)")
        let wrong = try await shared.bed.run(["node", PythonPeer.path("fetch.mjs")] + arguments + [wrongURL])
        #expect(wrong.output.hasPrefix("refused: 502"), "\(wrong)")
        #expect(wrong.output.contains("pinning failure for wrong.test"), "\(wrong)")
    }

    @Test func git() async throws {
        let bed = shared.bed
        let made = try await run(
            "/bin/sh", "-ec",
            """
            mkdir -p repositories && git init -q source && cd source
            head -c 300000 /dev/urandom > data && git add data
            git -c user.name=t -c user.email=t@example.test commit -qm first
            git clone -q --bare . ../repositories/it.git
            """)
        #expect(made.succeeded, "\(made)")
        let origin = try await PythonPeer(
            in: bed, script: "git_origin.py",
            [
                "--certificate", bed.path("nginx/0.pem"), "--key", bed.path("nginx/0.key"), "--root",
                bed.path("repositories"),
            ])
        let clone = try await run("git", "clone", "-q", "https://right.test:\(origin.port)/it.git", "clone")
        #expect(clone.succeeded, "\(clone)")
        let same = try await run("cmp", "source/data", "clone/data")
        #expect(same.succeeded, "\(same)")
        let wrong = try await run("git", "clone", "-q", "https://wrong.test:\(origin.port)/it.git", "other")
        #expect(!wrong.succeeded)
        #expect(wrong.errors.contains("502"), "\(wrong)")
    }

    @Test func pip() async throws {
        let bed = shared.bed
        let made = try await run(PythonPeer.python, PythonPeer.path("make_wheel.py"), bed.path("nginx/documents"))
        #expect(made.succeeded, "\(made)")
        let installed = try await run(
            PythonPeer.pythonWithPackages, "-m", "pip", "install", "--no-cache-dir", "--target", bed.path("packages"),
            "--index-url", "https://right.test:\(shared.originPort)/simple", "tiny-for-pinproxy",
            environment: ["PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1"])
        #expect(installed.succeeded, "\(installed)")
        let used = try await run(
            PythonPeer.python, "-c", "import tiny_for_pinproxy; print(tiny_for_pinproxy.ANSWER)",
            environment: ["PYTHONPATH": bed.path("packages")])
        #expect(used.output == "42", "\(used)")
    }

    @Test func opensslClient() async throws {
        let right = try await shared.bed.secureExchange(
            via: shared.proxy, to: "right.test:\(shared.originPort)",
            "GET /hello HTTP/1.1\r\nHost: right.test:\(shared.originPort)\r\nConnection: close\r\n\r\n")
        #expect(right.output.contains("hello"), "\(right)")
        let wrong = try await shared.bed.secureExchange(
            via: shared.proxy, to: "wrong.test:\(shared.originPort)", "")
        #expect(!wrong.succeeded)
        #expect(wrong.errors.contains("502"), "\(wrong)")
    }

    /// The client gets a certificate that the strictest programs accept.
    @Test(arguments: ["right.test", "unpinned.test"])
    func theLeafIsStrictlyRight(host: String) async throws {
        let shown = try await run(
            "/bin/sh", "-c",
            """
            openssl s_client -proxy \(shared.proxy.address):\(shared.proxy.port) -servername \(host) \
            -connect \(host):\(shared.originPort) </dev/null 2>/dev/null | openssl x509 > shown-\(host).pem
            openssl verify -x509_strict -purpose sslserver -verify_hostname \(host) \
            -CAfile \(shared.proxy.authority) shown-\(host).pem
            """)
        #expect(shown.output.hasSuffix("OK"), "\(shown)")
    }

    @Test func aCommandUnderExec() async throws {
        let environment = ProxyProcess.environment(in: shared.bed)
        let configuration = try shared.bed.file(
            "proxy/listening.yaml",
            try shared.bed.contents("proxy/pinproxy.yaml")
                .replacingOccurrences(of: "127.0.0.1:0", with: "127.0.0.1:\(shared.proxy.port)"))
        let right = try await shared.bed.run(
            [ProxyProcess.executable, "exec", "--config", configuration, "--", "curl", "-sS", url],
            environment: environment)
        #expect(right.output == "hello", "\(right)")
        let passed = try await shared.bed.run(
            [ProxyProcess.executable, "exec", "--config", configuration, "--", "/bin/sh", "-c", "exit 7"],
            environment: environment)
        #expect(passed.ending == .exited(7), "\(passed)")
        let printed = try await shared.bed.run(
            ["/bin/sh", "-c", "eval \"$(\(ProxyProcess.executable) env --config \(configuration))\"; curl -sS \(url)"],
            environment: environment)
        #expect(printed.output == "hello", "\(printed)")
    }
}

/// nginx as three hosts: with a right pin, with a wrong pin, and without pins.
enum ClientProgramsBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let leaf = try roots.leaf("right.test", "wrong.test", "unpinned.test")
        let nginx = try await NginxOrigin(
            in: bed,
            sites: [.init(name: "right.test wrong.test unpinned.test", chain: ServedChain(leaf))])
        let pins = """
            hosts:
              - match: right.test
                pinning: public-key
                pins: [\(try await leaf.pin(bed))]
              - match: wrong.test
                pinning: public-key
                pins: [\(String.wrongPin)]

            """
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed),
            hosts: ["right.test": "127.0.0.1", "wrong.test": "127.0.0.1", "unpinned.test": "127.0.0.1"])
        return SharedBed(bed: bed, proxy: proxy, originPort: nginx.port, secondOriginPort: nginx.plainPort)
    }
}
