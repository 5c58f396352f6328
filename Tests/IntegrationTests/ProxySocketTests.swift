import Foundation
import Testing

/// `proxy.listen: unix:PATH`.
@Suite(.timeLimit(.minutes(5)))
struct ProxySocketTests {
    private static func request(_ shared: SharedBed, _ path: String = "/echo") -> String {
        "GET \(shared.plainURL)\(path) HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n\r\n"
    }

    private static func listen(_ paths: String...) -> ProxyProcess.Sections {
        [
            "proxy": [
                "listen: [\((["127.0.0.1:0"] + paths.map { "unix:\($0)" }).joined(separator: ", "))]", "workers: 2",
            ]
        ]
    }

    @Test func itServesClients() async throws {
        try await withTestBed { bed in
            // Addresses say nothing about clients that connect by a file.
            var sections = Self.listen("p.sock")
            sections["proxy"]?.append("allow_clients: [192.0.2.1]")
            let shared = try await OriginBed.prepare(bed, sections: sections)
            let path = bed.path("proxy/p.sock")
            let client = try RawConnection(path: path)
            // Several requests, and CONNECT, as anywhere.
            for _ in 0..<2 {
                try await client.send(Self.request(shared))
                let answer = try await client.response()
                #expect(answer.status == 200 && answer.body.contains("\"method\": \"GET\""), "\(answer)")
            }
            try await client.send("CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n")
            #expect(try await client.response().status == 200)
            let line = try await shared.proxy.events.first("exchange") { $0["method"] == "GET" }
            #expect(line["client"] == "unix:\(path)" && line["client_uid"] == "\(geteuid())", "\(line)")
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
            // A request to the proxy itself is answered with the proxy's address.
            let lost = try RawConnection(path: path)
            try await lost.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await lost.response().body.contains("unix:\(path)"))
            // Clients that connect by address are refused here.
            #expect(try await shared.proxy.connect(to: shared.authority).status == 403)
        }
    }

    /// Real programs: Node's agent with a socket path, and socat in front of a curl without support for it.
    @Test func programsUseIt() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: Self.listen("p.sock"))
            let path = bed.path("proxy/p.sock")
            let script = """
                const http = require("http"), tls = require("tls"), fs = require("fs");
                const ca = fs.readFileSync(process.argv[2]);
                http.request({socketPath: process.argv[1], method: "CONNECT", path: \
                "\(shared.authority)"}).on("connect", (answer, socket) => {
                  const inside = tls.connect({socket, ca, servername: "\(OriginBed.name)"}, () => {
                    inside.write("GET /echo HTTP/1.1\\r\\nHost: \(shared.authority)\\r\\nConnection: \
                close\\r\\n\\r\\n");
                    inside.pipe(process.stdout);
                  });
                }).end();
                """
            let node = try await bed.run(["node", "-e", script, path, shared.proxy.authority])
            #expect(node.output.contains("\"method\": \"GET\""), "\(node)")
            let address = LoopbackAddress.network() + ".1"
            let bridge = try await bed.start([
                "socat", "TCP-LISTEN:8080,bind=\(address),fork,reuseaddr", "UNIX-CONNECT:\(path)",
            ])
            defer { bridge.send(signal: SIGTERM) }
            try await eventually("socat to listen") { (try? RawConnection(port: 8080, at: address)) != nil }
            let curl = try await bed.run([
                "curl", "-sS", "--proxy", "http://\(address):8080", "--cacert", shared.proxy.authority,
                shared.url + "/echo",
            ])
            #expect(curl.output.contains("\"method\": \"GET\""), "\(curl)")
            // env and exec send programs to an address that they can use.
            let run = try await bed.run(
                [
                    ProxyProcess.executable, "exec", "--config", bed.path("proxy/pinproxy.yaml"), "--", "curl", "-sS",
                    shared.url + "/echo",
                ],
                environment: ProxyProcess.environment(in: bed))
            #expect(run.output.contains("\"method\": \"GET\""), "\(run)")
        }
    }

    @Test func aReloadAddsChangesAndRemovesIt() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: Self.listen("a.sock"))
            let (a, b) = (bed.path("proxy/a.sock"), bed.path("proxy/b.sock"))
            let kept = try RawConnection(path: a)
            try await kept.send(Self.request(shared))
            #expect(try await kept.response().status == 200)
            var sections = Self.listen("a.sock", "b.sock")
            sections["proxy"]?.append("socket_mode: \"0666\"")
            func apply() async throws -> LogEvent {
                try ProxyProcess.write(
                    to: bed, folder: "proxy", pins: "hosts: []\n", trust: bed.path("roots.pem"), sections: sections)
                return try await shared.proxy.reload()
            }
            #expect(try await apply().name == "config.reload")
            for path in [a, b] {
                #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o666)
                let client = try RawConnection(path: path)
                try await client.send(Self.request(shared))
                #expect(try await client.response().status == 200)
            }
            sections = Self.listen("b.sock")
            #expect(try await apply()["listen"]?.contains("a.sock") == false)
            try await eventually("the file to go") { !FileManager.default.fileExists(atPath: a) }
            // Connected clients stay.
            try await kept.send(Self.request(shared))
            #expect(try await kept.response().status == 200)
            // If a path can't be opened, the old socket stays.
            try bed.file("proxy/plain", "no socket")
            for (path, cause) in [("plain", "is not a socket"), ("nowhere/a.sock", "its directory is not there")] {
                sections = Self.listen(path)
                let outcome = try await apply()
                #expect(outcome.name == "config.error" && outcome["cause"]?.contains(cause) == true, "\(outcome)")
                #expect((try? RawConnection(path: b)) != nil)
            }
            #expect(try bed.contents("proxy/plain") == "no socket")
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            #expect(!FileManager.default.fileExists(atPath: b))
        }
    }

    /// A killed proxy's file is replaced; one with a listener is not.
    @Test func aSocketThatWasLeftBehindIsTakenOver() async throws {
        try await withTestBed { bed in
            let first = try await ProxyProcess(
                in: bed, folder: "first", trust: nil, sections: Self.listen(bed.path("p.sock")))
            try ProxyProcess.write(
                to: bed, folder: "second", pins: "hosts: []\n", trust: nil, sections: Self.listen(bed.path("p.sock")))
            let refused = try await bed.run(
                [ProxyProcess.executable, "run", "--config", bed.path("second/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed, folder: "second"))
            #expect(
                !refused.succeeded && refused.errors.contains("p.sock is already in use by another program"),
                "\(refused)")
            #expect((try? RawConnection(path: bed.path("p.sock"))) != nil)
            first.process.send(signal: SIGKILL)
            _ = try await first.process.ending()
            #expect(FileManager.default.fileExists(atPath: bed.path("p.sock")))
            let second = try await ProxyProcess(
                in: bed, folder: "third", trust: nil, sections: Self.listen(bed.path("p.sock")))
            #expect((try? RawConnection(path: bed.path("p.sock"))) != nil)
            second.process.send(signal: SIGTERM)
            _ = try await second.process.ending()
        }
    }
}
