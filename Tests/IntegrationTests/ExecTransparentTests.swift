import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy exec --transparent`: programs without proxy support are held to the pins.
@Suite(
    .sharedBed(ExecTransparentBed.prepare),
    .enabled(if: IsolationBed.isTransparencyAvailable, "needs root, to listen on ports 53, 80 and 443"),
    .timeLimit(.minutes(5)))
struct ExecTransparentTests {
    let shared: SharedBed
    var bed: TestBed { shared.bed }

    init() throws {
        shared = try sharedBed()
    }

    private func exec(
        options: [String] = [], environment: [String: String] = [:], _ command: [String]
    ) async throws -> Run {
        try await bed.run(
            IsolationBed.withoutHostsFile + bed.execArguments(["--transparent"] + options, command),
            environment: ProxyProcess.environment(in: bed).merging(environment) { $1 })
    }

    private func curl(_ arguments: String...) async throws -> Run {
        try await exec(["curl", "-sS", "--noproxy", "*"] + arguments)
    }

    // MARK: Programs

    struct Program: Sendable, CustomTestStringConvertible {
        let path: String
        let arguments: [String]
        var testDescription: String { ([path] + arguments).joined(separator: " ").prefix(60).description }
    }

    /// None of them uses the proxy; the last argument is the URL.
    static let programs = [
        Program(path: "/usr/bin/curl", arguments: ["-sSo/dev/null", "--noproxy", "*"]),
        Program(path: "/usr/bin/wget", arguments: ["-qO/dev/null", "--tries=1", "--no-proxy"]),
        // Debian's, which knows no NODE_USE_ENV_PROXY.
        Program(
            path: "/usr/bin/node",
            arguments: [
                "-e",
                "require('https').get(process.argv[1], r => process.exit(r.statusCode == 200 ? 0 : 1))"
                    + ".on('error', e => { throw e })",
            ]),
        Program(
            path: "/usr/bin/python3",
            arguments: [
                "-c",
                "import http.client, sys, urllib.parse; u = urllib.parse.urlsplit(sys.argv[1]); c = "
                    + "http.client.HTTPSConnection(u.netloc); c.request('GET', u.path); "
                    + "sys.exit(c.getresponse().status != 200)",
            ]),
        Program(path: "/usr/bin/git", arguments: ["-c", "http.proxy=", "ls-remote"]),
        Program(
            path: "/usr/bin/perl",
            arguments: ["-MLWP::UserAgent", "-e", "exit !LWP::UserAgent->new->get($ARGV[0])->is_success"]),
        Program(
            path: "/usr/bin/php",
            arguments: ["-r", "exit(file_get_contents($argv[1]) === false ? 1 : 0);"]),
    ]

    @Test(arguments: programs) func rightPinsWorkAndWrongOnesDont(program: Program) async throws {
        guard FileManager.default.isExecutableFile(atPath: program.path) else { return }
        if program.path.hasSuffix("perl"), try await !bed.run(["perl", "-MLWP::Protocol::https", "-e1"]).succeeded {
            return
        }
        // What git asks for below it, any page serves.
        let path = program.path.hasSuffix("git") ? "/git" : "/large/3"
        let right = try await exec([program.path] + program.arguments + ["https://right.test\(path)"])
        #expect(right.succeeded && right.told.isEmpty, "\(right)")
        let wrong = try await exec([program.path] + program.arguments + ["https://wrong.test/large/3"])
        #expect(!wrong.succeeded, "\(wrong)")
        #expect(wrong.told.count == 1, "\(wrong)")
        let advice = "pinproxy explain --config \(bed.path("proxy/pinproxy.yaml")) wrong.test"
        #expect(
            wrong.told.first?.hasPrefix("pinproxy: wrong.test: Certificate pinning failure for wrong.test") == true,
            "\(wrong)")
        #expect(wrong.told.first?.hasSuffix(". Details: run \(advice)") == true, "\(wrong)")
    }

    /// A statically linked program that does no name lookups.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/gcc")))
    func aStaticBinary() async throws {
        try bed.file(
            "fetch.c",
            """
            #include <arpa/inet.h>
            #include <stdio.h>
            #include <string.h>
            #include <unistd.h>
            int main(int count, char **words) {
                struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
                char text[4096];
                inet_pton(AF_INET, words[1], &address.sin_addr);
                int s = socket(AF_INET, SOCK_STREAM, 0);
                if (connect(s, (struct sockaddr *)&address, sizeof address)) return 2;
                dprintf(s, "GET /static HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n", words[2]);
                ssize_t length = read(s, text, sizeof text - 1);
                if (length <= 0) return 3;
                text[length] = 0;
                return printf("%.12s\\n", text) < 0;
            }
            """)
        let made = try await bed.run(["gcc", "-static", "-o", bed.path("fetch"), bed.path("fetch.c")])
        guard made.succeeded else { return }
        let right = try await exec([bed.path("fetch"), IsolationBed.address, "plain.test"])
        #expect(right.output == "HTTP/1.1 200" && right.told.isEmpty, "\(right)")
        let denied = try await exec([bed.path("fetch"), IsolationBed.address, "denied.test"])
        #expect(denied.output == "HTTP/1.1 403", "\(denied)")
        #expect(denied.told.count == 1 && denied.told[0].hasPrefix("pinproxy: denied.test:80: "), "\(denied)")
    }

    /// A program with proxy support still uses the proxy.
    @Test func theVariablesStillLeadToTheProxy() async throws {
        let run = try await exec([
            "curl", "-sS", "-o", "/dev/null", "-w", "%{http_connect} %{http_code}", "https://right.test/large/3",
        ])
        #expect(run.output == "200 200" && run.errors.isEmpty, "\(run)")
    }

    @Test(.enabled(if: IsolationBed.isAvailableToUsers, "needs root, to be an ordinary user")) func anOrdinaryUser()
        async throws
    {
        let environment = try IsolationBed.openToUsers(bed)
        let options = ["--transparent", "--state-directory", bed.path("proxy/state/pinproxy")]
        func run(_ host: String) async throws -> Run {
            let command = ["curl", "-sSo/dev/null", "--noproxy", "*", "https://\(host)/large/3"]
            return try await bed.run(
                IsolationBed.withoutHostsFile + IsolationBed.asNobody + bed.execArguments(options, command),
                environment: environment)
        }
        let right = try await run("right.test")
        #expect(right.succeeded && right.errors.isEmpty, "\(right)")
        let wrong = try await run("wrong.test")
        #expect(
            wrong.ending == .exited(35) && wrong.told.first?.contains("Certificate pinning failure") == true, "\(wrong)"
        )
    }

    // MARK: Plain HTTP

    @Test func requestsAreMadeWholeForTheProxy() async throws {
        let run = try await curl(
            "-d", "abc", "-H", "Proxy-Authorization: Basic mine", "http://plain.test/whole?x",
            "http://plain.test/second")
        #expect(run.succeeded && run.errors.isEmpty, "\(run)")
        for path in ["/whole", "/second"] {
            let exchange = try await shared.proxy.events.first("exchange") { $0["path"] == path }
            #expect(
                exchange["host"] == "plain.test" && exchange["port"] == "80" && exchange["method"] == "POST",
                "\(exchange)")
        }
        let origin = try #require(shared.plainOrigin)
        let request = try await origin.events.first("request") { $0["target"] == "/whole?x" }
        #expect("\(request)".contains("mine") == false && "\(request)".contains("pinproxy-run") == false, "\(request)")
    }

    @Test func uploadsAndDownloadsOfSomeSize() async throws {
        let script =
            """
            head -c 5000000 /dev/zero | curl -sS --noproxy '*' --data-binary @- http://plain.test/large/4000000 | wc -c
            """
        let run = try await exec(["sh", "-c", script])
        #expect(run.output.contains("4000000") && run.errors.isEmpty, "\(run)")
        let secure = try await exec([
            "sh", "-c", script.replacingOccurrences(of: "http://plain", with: "https://right"),
        ])
        #expect(secure.output.contains("4000000") && secure.errors.isEmpty, "\(secure)")
    }

    // MARK: What is refused

    /// The address that a program means must be one that the name has.
    @Test(arguments: ["203.0.113.9", "[2001:db8::9]"])
    func anAddressThatTheNameDoesNotHave(address: String) async throws {
        let secure = try await curl("--connect-to", "::\(address):443", "https://right.test/")
        #expect(secure.ending == .exited(35) && secure.errors.contains("unrecognized name"), "\(secure)")
        let bare = address.filter { $0 != "[" && $0 != "]" }
        let words =
            "the program has connected to \(bare), which is not an address of this host: it has \(IsolationBed.address)"
        let beginning = "pinproxy: right.test: \(words). Details: run pinproxy explain"
        #expect(secure.told.first?.hasPrefix(beginning) == true, "\(secure)")
        let plain = try await curl("-i", "--connect-to", "::\(address):80", "http://right.test/")
        #expect(plain.output.contains("421 Misdirected Request") && plain.output.contains(words), "\(plain)")
        #expect(plain.told.first?.hasPrefix("pinproxy: right.test:80: \(words)") == true, "\(plain)")
    }

    /// The name in the hello decides, and the certificate and the Host field must agree with it.
    @Test func anotherNameAtTheSameAddress() async throws {
        let run = try await curl("-k", "-w", "%{http_code}", "-H", "Host: wrong.test", "https://right.test/large/3")
        #expect(run.output.hasSuffix("421"), "\(run)")
    }

    @Test func aHelloWithoutAName() async throws {
        let run = try await curl("-k", "https://\(IsolationBed.address)/")
        #expect(run.ending == .exited(35), "\(run)")
        let words = "pinproxy: \(IsolationBed.address):443: its TLS hello names no host (SNI)"
        #expect(run.told.count == 1 && run.told[0].hasPrefix(words), "\(run)")
    }

    @Test func whatIsNeitherTLSNorHTTP() async throws {
        func say(_ text: String, to port: Int) async throws -> Run {
            let script = "exec 3<>/dev/tcp/\(IsolationBed.address)/\(port); printf '\(text)' >&3; head -c 12 <&3"
            return try await exec(["bash", "-c", script])
        }
        let secure = try await say("GET / HTTP/1.1\\r\\n\\r\\n", to: 443)
        #expect(secure.told.first?.contains("to port 443 only TLS can be let through") == true, "\(secure)")
        let nameless = try await say("GET / HTTP/1.0\\r\\n\\r\\n", to: 80)
        #expect(
            nameless.output == "HTTP/1.1 400" && nameless.told.first?.contains("names no host (Host)") == true,
            "\(nameless)")
    }

    @Test func otherPortsAndProtocolsAreClosed() async throws {
        let other = try await curl("https://right.test:8443/")
        #expect(
            other.ending == .exited(7) && other.told.first?.contains("none that can be redirected to it") == true,
            "\(other)")
        let datagram = """
            import socket
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.settimeout(60)
            s.connect(('192.0.2.1', 443))
            s.send(b'x')
            s.recv(1)
            """
        let quic = try await exec([PythonPeer.python, "-c", datagram])
        #expect(quic.errors.contains("Connection refused"), "\(quic)")
    }

    @Test(arguments: VerifiedTunnelBed.longHellos) func aLongHelloMayComeInParts(_ options: [String]) async throws {
        let command = [
            PythonPeer.python, PythonPeer.path("tunnel_client.py"), "--authority", "right.test:443", "--trust",
            shared.proxy.authority, "--path", "/large/3",
        ]
        let run = try await exec(command + options)
        let result = try #require(LogEvent(line: run.output), "\(run)")
        #expect(result["hello"].flatMap { Int($0) } ?? 0 > 2000, "\(run)")
        #expect(result["body"]?.utf8.count == 3 && run.told.isEmpty, "\(run)")
    }

    @Test func liveIsWhileTheCommandRuns() async throws {
        let process = try await bed.start(
            IsolationBed.withoutHostsFile
                + bed.execArguments(
                    ["--transparent", "--explain-refusals=live"],
                    ["sh", "-c", "curl -sk --noproxy '*' https://\(IsolationBed.address)/; exec sleep 1000"]),
            environment: ProxyProcess.environment(in: bed))
        _ = try await process.errors.first(awaiting: "the refusal") { $0.contains("names no host (SNI)") ? $0 : nil }
        process.send(signal: SIGTERM)
        #expect(try await process.ending() == .signalled(SIGTERM))
    }

    @Test func aThousandRefusalsAreFewLines() async throws {
        let urls = (0..<1000).map { "url = \"https://\($0.isMultiple(of: 2) ? "wrong.test" : "denied.test")/\"\n" }
            .joined()
        let config = try bed.file("transparent-urls", urls)
        let run = try await exec(["curl", "-s", "--noproxy", "*", "-K", config])
        let ending = " (500 times). Details: run pinproxy explain "
        #expect(run.told.count == 2 && run.told.allSatisfy { $0.contains(ending) }, "\(run)")
    }

    // MARK: Names

    /// Whichever server is asked, over whatever: the proxy's resolver answers.
    @Test(arguments: ["127.0.0.53", "8.8.8.8", "::1", "2001:db8::53"], [[], ["tcp"]])
    func namesAreAnswered(server: String, transport: [String]) async throws {
        func ask(_ type: Int, _ name: String) async throws -> String {
            let command = [PythonPeer.python, PythonPeer.path("names.py"), server, "\(type)", name] + transport
            return try await exec(options: ["--explain-refusals=off"], command).output
        }
        #expect(try await ask(1, "Right.test") == "0 \(IsolationBed.address)")
        #expect(try await ask(28, "right.test") == "0")
        #expect(try await ask(28, "six.test") == "0 2001:db8::6")
        #expect(try await ask(1, "nowhere.onion") == "3")
        #expect(try await ask(16, "right.test") == "4")
    }

    /// curl asks no server for a name below .onion.
    @Test func anUnknownNameIsUnknown() async throws {
        let run = try await exec(["wget", "--no-proxy", "--tries=1", "-O", "-", "https://nowhere.onion/"])
        #expect(run.ending == .exited(4) && run.errors.contains("unable to resolve"), "\(run)")
    }

    /// Programs that look for IPv4 or IPv6 only where the machine has it.
    @Test func addressesAreConfigured() async throws {
        let script = """
            import socket
            for family in (socket.AF_INET, socket.AF_UNSPEC):
                print(socket.getaddrinfo("right.test", 443, family, socket.SOCK_STREAM, 0, \
            socket.AI_ADDRCONFIG)[0][4][0])
            """
        let run = try await exec([PythonPeer.python, "-c", script])
        #expect(run.output == "\(IsolationBed.address)\n\(IsolationBed.address)", "\(run)")
    }

    /// The socket answers questions for names only to a current run.
    @Test func namesAreForRuns() async throws {
        func ask(_ request: String) async throws -> RawResponse {
            let connection = try RawConnection(path: bed.path("proxy/state/pinproxy/runs.sock"))
            try await connection.send(request + "\r\nHost: a\r\n\r\n")
            return try await connection.response()
        }
        let token = String(repeating: "5", count: 64)
        let question = "GET /addresses?name=right.test HTTP/1.1\r\nAuthorization: Bearer \(token)"
        #expect(try await ask(question).status == 404)
        #expect(try await ask("GET /addresses?name=right.test HTTP/1.1").status == 400)
        let run = try RawConnection(path: bed.path("proxy/state/pinproxy/runs.sock"))
        try await run.send("POST /runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\r\n")
        #expect(try await run.response().status == 200)
        let answer = try await ask(question)
        #expect(answer.status == 200 && answer.description.contains("\"\(IsolationBed.address)\""), "\(answer)")
        #expect(
            try await ask(question.replacingOccurrences(of: "right.test", with: "nowhere.onion")).description.contains(
                "\"exists\":false"))
    }

    /// No name server knows the hosts that the proxy answers for itself.
    @Test func theProxysOwnTestHosts() async throws {
        let right = try await curl("https://PinProxy.test/")
        #expect(right.output == "pinproxy answers for this host itself." && right.errors.isEmpty, "\(right)")
        let wrong = try await curl("https://wrong.pinproxy.test/")
        #expect(wrong.ending == .exited(35) && wrong.told.count == 1, "\(wrong)")
        #expect(
            wrong.told.first?.hasPrefix("pinproxy: wrong.pinproxy.test: Certificate pinning failure") == true,
            "\(wrong)")
        let other = try await curl("https://other.pinproxy.test/")
        #expect(other.ending == .exited(6), "\(other)")
    }

    // MARK: This machine

    /// Services on the loopback are as unreachable for the command as from another machine, by name and address, with
    /// TLS and without.
    @Test func theLoopbackOfThisMachineIsNotReached() async throws {
        let names = ["right.test", "plain.test"]
        _ = try await ProxyProcess(
            in: bed, folder: "strict", trust: bed.path("roots.pem"),
            hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, IsolationBed.address) }),
            sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"]])
        let script = """
            curl -sk --noproxy '*' -o /dev/null https://right.test/large/3; echo $?
            curl -s --noproxy '*' -o /dev/null -w '%{http_code}\\n' http://plain.test/large/3
            curl -sk -o /dev/null -w '%{http_connect}\\n' https://right.test/large/3
            """
        let run = try await bed.run(
            IsolationBed.withoutHostsFile
                + bed.execArguments(["--transparent"], ["sh", "-c", script], folder: "strict"),
            environment: ProxyProcess.environment(in: bed, folder: "strict"))
        #expect(run.output == "35\n403\n403", "\(run)")
        #expect(
            run.told.count == 2
                && run.told.allSatisfy {
                    $0.contains("is loopback of the proxy's machine, and the client is not on it")
                }, "\(run)")
    }

    // MARK: Names

    /// A DNS query is a message to the domain's name servers.
    @Test func aRefusedHostIsNotLookedUp() async throws {
        try await withTestBed { bed in
            try bed.file("resolv.conf", "nameserver 127.0.0.1\n", mode: 0o644)
            let serves = """
                ip link set lo up; mount --bind '\(bed.path("resolv.conf"))' /etc/resolv.conf
                setpriv --pdeathsig KILL \(PythonPeer.python) '\(PythonPeer.path("name_server.py"))' \
                '\(bed.path("asked"))' &
                until [ -s '\(bed.path("asked"))' ]; do sleep 0.02; done; exec "$@"
                """
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [{match: '**.denied.test', action: deny}]\n", trust: nil,
                sections: ["proxy": ["listen: 127.0.0.1:7467"]],
                launcher: ["unshare", "--net", "--mount", "/bin/sh", "-c", serves, "sh"])
            let script = """
                curl -s --noproxy '*' http://secret-1.denied.test/; curl -sk --noproxy '*' \
                https://secret-2.denied.test/; echo $?
                curl -sk --noproxy '*' --resolve secret-3.denied.test:443:192.0.2.1 https://secret-3.denied.test/; \
                echo $?
                curl -s http://secret-4.denied.test/ -o /dev/null -w '%{http_code}\\n'
                curl -s --noproxy '*' http://unknown.test/; echo $?
                """
            let run = try await bed.exec(
                options: ["--transparent"], launcher: IsolationBed.withoutHostsFile, "sh", "-c", script)
            let lines = run.output.split(separator: "\n")
            #expect(
                run.output.contains("\"secret-1.denied.test:80\"") && lines.suffix(4) == ["35", "35", "403", "6"],
                "\(run)")
            #expect(run.told.count { $0.contains("denied by policy") } == 4, "\(run)")
            let asked = try bed.contents("asked")
            #expect(!asked.contains("secret") && asked.contains("unknown.test"), "\(asked)")
            _ = proxy
        }
    }

    // MARK: The proxy comes and goes

    @Test func aProxyThatGoesAndComesBack() async throws {
        try await withTestBed { bed in
            let port = try bed.port()
            func proxy() async throws -> ProxyProcess {
                try await ProxyProcess(
                    in: bed, pins: "hosts: [{match: denied.test, action: deny}]\n", trust: nil,
                    hosts: ["denied.test": "192.0.2.7"],
                    sections: ["proxy": ["listen: 127.0.0.1:\(port)"]])
            }
            let first = try await proxy()
            let script = """
                curl -s --noproxy '*' http://denied.test/first; touch gone-now; until [ -e is-gone ]; do sleep 0.02; \
                done
                curl -s --noproxy '*' --resolve denied.test:80:192.0.0.8 http://denied.test/second; touch back-now
                until [ -e is-back ]; do sleep 0.02; done; curl -s --noproxy '*' http://denied.test/third
                """
            let process = try await bed.start(
                IsolationBed.withoutHostsFile + bed.execArguments(["--transparent"], ["sh", "-c", script]),
                environment: ProxyProcess.environment(in: bed))
            try await eventually("the first request") { FileManager.default.fileExists(atPath: bed.path("gone-now")) }
            await first.process.stop()
            try bed.file("is-gone", "")
            try await eventually("the second request") { FileManager.default.fileExists(atPath: bed.path("back-now")) }
            let next = try await proxy()
            _ = try await next.events.first("run.begin")
            try bed.file("is-back", "")
            #expect(try await process.ending() == .exited(0))
            // The address is known from before, and the proxy isn't there.
            let (output, told) = (await process.output.text, await process.errors.text)
            #expect(
                output.contains("the proxy can't be reached: \(bed.path("proxy/state/pinproxy/door.sock"))"),
                "\(output)")
            #expect(told.contains("denied.test:80: the proxy can't be reached"), "\(told)")
            _ = try await next.events.first("exchange") { $0["path"] == "/third" && $0["status"] == "403" }
        }
    }

    /// Without a proxy the command would have no network, so it isn't run.
    @Test func withoutAProxyTheCommandIsNotRun() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/pinproxy.yaml", "proxy: {listen: 127.0.0.1:1}\npins: null\n")
            let create = [ProxyProcess.executable, "ca", "create", "--config", bed.path("proxy/pinproxy.yaml")]
            #expect(try await bed.run(create, environment: ProxyProcess.environment(in: bed)).succeeded)
            let run = try await bed.run(
                bed.execArguments(["--transparent"], ["touch", "was-run"]),
                environment: ProxyProcess.environment(in: bed))
            #expect(run.ending == .exited(126), "\(run)")
            #expect(run.told.count == 1 && run.told[0].contains("--transparent needs a running proxy"), "\(run)")
            #expect(
                run.told.first?.hasSuffix("start it with pinproxy run, or for this run with --start") == true, "\(run)")
            #expect(!FileManager.default.fileExists(atPath: bed.path("was-run")))
        }
    }
}

enum ExecTransparentBed {
    /// Origins on the ports of the web, at an address of this process's own.
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let names = ["right.test", "wrong.test"]
        let leaf = try roots.intermediate.issue(TestRoots.template(names))
        let here = ["--listen", IsolationBed.address, "--port"]
        let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf), here + ["443"])
        let plain = try await PythonPeer.origin(in: bed, chain: nil, here + ["80"])
        let pins = """
            hosts:
              - match: right.test
                pinning: public-key
                pins: [\(try await roots.intermediate.pin(bed))]
              - match: wrong.test
                pinning: public-key
                pins: [\(String.wrongPin)]
              - match: denied.test
                action: deny
            """
        let hosts = Dictionary(
            uniqueKeysWithValues: (names + ["denied.test", "plain.test"]).map { ($0, IsolationBed.address) })
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed), hosts: hosts.merging(["six.test": "2001:db8::6"]) { $1 },
            sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"], "upstream": [IsolationBed.opensLoopback]])
        return SharedBed(
            bed: bed, proxy: proxy, originPort: origin.port, secondOriginPort: plain.port, origin: origin,
            plainOrigin: plain)
    }
}
