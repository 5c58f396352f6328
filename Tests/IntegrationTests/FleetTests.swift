import Foundation
import PinproxyTestAuthority
import Testing

/// Several proxies behind Debian's HAProxy, as in docs/fleet.md: PROXY headers, checks by `/readyz`, one CA.
@Suite(.timeLimit(.minutes(5)))
struct FleetTests {
    /// At every address of a test's fleet; the page's, or some that nothing on this machine listens on.
    private struct Ports {
        var proxy: UInt16 = 7467
        var admin: UInt16 = 7468

        static func reserved(by bed: TestBed) throws -> Ports { Ports(proxy: try bed.port(), admin: try bed.port()) }
    }

    /// The configuration of docs/fleet.md, with the addresses of this test.
    private static func configuration(
        _ bed: TestBed, at address: String, _ members: [String], _ ports: Ports = Ports()
    ) throws -> String {
        let text = try String(contentsOfFile: Documentation.repository + "/docs/fleet/haproxy.cfg", encoding: .utf8)
        var lines: [String] = []
        for line in text.components(separatedBy: "\n") {
            switch line.trimmingCharacters(in: .whitespaces).split(separator: " ").first {
            case "log", "user", "group", "chroot": continue
            case "stats" where line.contains("socket"):
                lines.append("    stats socket \(bed.path("haproxy.sock")) mode 600 level admin")
            case "bind": lines.append("    bind \(address):\(ports.proxy)")
            case "server":
                // The first represents all.
                guard !lines.contains(where: { $0.hasPrefix("    server ") }) else { continue }
                let options = line.split(separator: " ").dropFirst(3).joined(separator: " ")
                for (number, member) in members.enumerated() {
                    let own = options.replacing(/ca-file \S+/, with: "ca-file \(bed.path("proxies-ca.pem"))")
                        .replacing("check port 7468", with: "check port \(ports.admin)")
                    lines.append("    server proxy\(number + 1) \(member):\(ports.proxy) \(own)")
                }
            default: lines.append(line)
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Anything that other machines can reach uses TLS and needs a token.
    private static func admin(
        _ bed: TestBed, _ folder: String, _ roots: TestRoots, at address: String, _ ports: Ports = Ports()
    ) throws -> [String] {
        let chain = try roots.chain("proxy.test")
        try bed.file("\(folder)/admin.pem", chain.pem)
        try bed.file("\(folder)/admin.key", chain.keyPEM)
        try bed.file("\(folder)/admin.token", "0123456789abcdef0123456789abcdef\n")
        return [
            "listen: \(address):\(ports.admin)", "tls: {certificate: admin.pem, private_key: admin.key}",
            "token_file: admin.token",
        ]
    }

    /// Clients that open a new connection for each request, all from 127.0.0.9.
    private static let load = """
        import json, signal, socket, ssl, sys, threading
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        address, port, name, authority, ca = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
        context = ssl.create_default_context(cafile=ca)
        counts, failures, stop = [0], [], threading.Event()
        def run():
            while not stop.is_set():
                try:
                    s = socket.create_connection((address, port), 30, source_address=("127.0.0.9", 0))
                    s.sendall(f"CONNECT {authority} HTTP/1.1\\r\\nHost: {authority}\\r\\n\\r\\n".encode())
                    answer = b""
                    while b"\\r\\n\\r\\n" not in answer:
                        part = s.recv(4096)
                        if not part: raise OSError("closed before an answer to CONNECT")
                        answer += part
                    if b" 200 " not in answer.split(b"\\r\\n")[0]: raise OSError(answer.decode())
                    t = context.wrap_socket(s, server_hostname=name)
                    t.sendall(f"GET /echo HTTP/1.1\\r\\nHost: {authority}\\r\\nConnection: close\\r\\n\\r\\n".encode())
                    answer = b""
                    while True:
                        part = t.recv(65536)
                        if not part: break
                        answer += part
                    if not answer.startswith(b"HTTP/1.1 200") or b"GET" not in answer: raise OSError(answer.decode())
                    t.close()
                    counts[0] += 1
                except Exception as error:
                    failures.append(repr(error))
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads: thread.start()
        print("begun", flush=True)
        signal.sigwait({signal.SIGTERM})
        stop.set()
        for thread in threads: thread.join()
        print(json.dumps({"done": counts[0], "failures": failures[:5]}), flush=True)
        """

    /// HAProxy's view of a server: its status, and its sessions.
    private func server(_ name: String, _ bed: TestBed) async throws -> (status: String, sessions: Int, check: String) {
        let stats = try await order("show stat", bed)
        for line in stats.split(separator: "\n") {
            let columns = line.split(separator: ",", omittingEmptySubsequences: false)
            if columns.count > 36, columns[1] == name {
                return (String(columns[17]), Int(columns[4]) ?? -1, String(columns[36]))
            }
        }
        throw TestBedError("no \(name) in \(stats)")
    }

    @discardableResult
    private func order(_ words: String, _ bed: TestBed) async throws -> String {
        let connection = try RawConnection(path: bed.path("haproxy.sock"))
        try await connection.send(words + "\n")
        return String(decoding: try await connection.receiveAll(), as: UTF8.self)
    }

    @Test func oneOfTwoIsDrainedUnderLoad() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.intermediate.issue(TestRoots.template([OriginBed.name]))
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let trust = try roots.write(to: bed)
            let network = LoopbackAddress.network()
            let members = [network + ".1", network + ".2"]
            let ports = try Ports.reserved(by: bed)
            // One CA for both, made by the first.
            let authority = [
                "certificate: \(bed.path("shared/authority.pem"))", "private_key: \(bed.path("shared/authority.key"))",
            ]
            try FileManager.default.createDirectory(atPath: bed.path("shared"), withIntermediateDirectories: true)
            let fleet = try TestRoots("Fleet")
            _ = try fleet.write(to: bed, name: "proxies-ca")
            func start(_ number: Int) async throws -> ProxyProcess {
                try await ProxyProcess(
                    in: bed, folder: "proxy\(number + 1)", trust: trust, hosts: [OriginBed.name: "127.0.0.1"],
                    sections: [
                        "proxy": [
                            "listen: {address: \(members[number]):\(ports.proxy), proxy_protocol: [127.0.0.1]}",
                            "allow_clients: [127.0.0.9]",
                        ],
                        "admin": try Self.admin(bed, "proxy\(number + 1)", fleet, at: members[number], ports),
                        "authority": authority, "upstream": ["allow_addresses: [loopback]"],
                    ])
            }
            var proxies = [try await start(0), try await start(1)]
            try bed.file("haproxy.cfg", try Self.configuration(bed, at: network + ".9", members, ports))
            _ = try await bed.start(["haproxy", "-db", "-f", bed.path("haproxy.cfg")], mergingErrors: true)
            try await eventually("both to be up") {
                let first = try? await server("proxy1", bed)
                let second = try? await server("proxy2", bed)
                return first?.status == "UP" && second?.status == "UP"
            }
            let load = try await bed.start(
                [
                    "/usr/bin/python3", "-c", Self.load, network + ".9", "\(ports.proxy)", OriginBed.name,
                    "\(OriginBed.name):\(origin.port)", bed.path("shared/authority.pem"),
                ])
            try await eventually("both to serve") { proxies.allSatisfy { $0.events.all("exchange").count > 20 } }
            // The client's address from the header, and no program of this machine.
            let line = try await proxies[0].events.first("exchange")
            #expect(line["client"]?.hasPrefix("127.0.0.9:") == true && line["client_uid"] == nil, "\(line)")

            try await order("set server proxies/proxy1 state drain", bed)
            try await eventually("it to be empty") { try await server("proxy1", bed).sessions == 0 }
            let second = proxies[1].events.all("exchange").count
            proxies[0].process.send(signal: SIGTERM)
            #expect(try await proxies[0].process.ending() == .exited(0))
            try await eventually("the other to go on") { proxies[1].events.all("exchange").count > second + 50 }
            #expect(proxies[0].events.all("exchange").allSatisfy { $0["cause"] == nil })

            proxies[0] = try await start(0)
            try await order("set server proxies/proxy1 state ready", bed)
            try await eventually("it to serve again") { proxies[0].events.all("exchange").count > 20 }
            load.send(signal: SIGTERM)
            #expect(try await load.ending() == .exited(0))
            let result = await load.output.text
            #expect(result.contains("\"failures\": []"), "\(result)")
        }
    }

    /// The page's examples work: the proxies' file, HAProxy's, the play's command and the queries.
    @Test func thePageCanBeFollowed() async throws {
        try await withTestBed { bed in
            let blocks = try Documentation.blocks("yaml", of: "docs/fleet.md")
            let own = try #require(blocks.first { $0.contains("proxy_protocol") })
            let fleet = try TestRoots("Fleet")
            _ = try Self.admin(bed, "proxy", fleet, at: "192.0.2.21")
            _ = try fleet.write(to: bed, name: "proxies-ca")
            try bed.file("proxy/pinproxy.yaml", own + "\npins: pins.yaml\n")
            try bed.file("proxy/pins.yaml", "hosts: []\n")
            let check = try await bed.run([
                ProxyProcess.executable, "check", "--config", bed.path("proxy/pinproxy.yaml"),
            ])
            #expect(check.succeeded, "\(check)")
            try bed.file("haproxy.cfg", try Self.configuration(bed, at: "127.0.0.1", ["127.0.0.2"]))
            let accepted = try await bed.run(["haproxy", "-c", "-f", bed.path("haproxy.cfg")])
            #expect(accepted.succeeded, "\(accepted)")
            // The play checks a file before it replaces the other.
            let play = try #require(
                blocks.first { $0.contains("validate:") }?.split(separator: "\n").first { $0.contains("validate:") })
            let command = play.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces)
                .replacing("/etc/pinproxy", with: bed.path("proxy")).replacing(
                    "pinproxy check", with: "\(ProxyProcess.executable) check")
            for (pins, isRight) in [("hosts: []\n", true), ("hosts: [{match: a.test, pinning: public-key}]\n", false)] {
                let file = try bed.file("candidate.yaml", pins)
                let run = try await bed.run(["sh", "-c", command.replacing("%s", with: file)])
                #expect(run.succeeded == isRight, "\(run)")
            }
            let queries = try #require(try Documentation.blocks("promql", of: "docs/fleet.md").first).split(
                separator: "\n")
            let rules = queries.enumerated().map { "  - {alert: Q\($0.offset), expr: '\($0.element)'}\n" }.joined()
            let rulesFile = try bed.file("rules.yml", "groups:\n- name: fleet\n  rules:\n" + rules)
            let run = try await bed.run(["promtool", "check", "rules", rulesFile])
            #expect(run.succeeded && run.output.contains("\(queries.count) rules found"), "\(run)")
        }
    }

    /// The checks use `/readyz`, and not only a connection.
    @Test func whoIsNotReadyGetsNoClients() async throws {
        try await withTestBed { bed in
            let network = LoopbackAddress.network()
            let ports = try Ports.reserved(by: bed)
            let origin = try await PythonPeer.origin(in: bed, chain: nil)
            let fleet = try TestRoots("Fleet")
            _ = try fleet.write(to: bed, name: "proxies-ca")
            let proxy = try await ProxyProcess(
                in: bed, trust: nil,
                sections: [
                    "proxy": ["listen: {address: \(network).1:\(ports.proxy), proxy_protocol: [127.0.0.1]}"],
                    "admin": try Self.admin(bed, "proxy", fleet, at: network + ".1", ports),
                    "upstream": ["allow_addresses: [loopback]"],
                ])
            let file = try Self.configuration(bed, at: network + ".9", [network + ".1"], ports)
            try bed.file("haproxy.cfg", file)
            _ = try await bed.start(["haproxy", "-db", "-f", bed.path("haproxy.cfg")], mergingErrors: true)
            try await eventually("it to be up") { (try? await server("proxy1", bed))?.status == "UP" }
            // A request keeps the proxy from exiting: it drains, and reports that.
            let busy = try RawConnection(port: ports.proxy, at: network + ".9")
            try await busy.send(
                "GET http://127.0.0.1:\(origin.port)/hold/fleet HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n\r\n")
            _ = try await origin.events.first("held")
            proxy.process.send(signal: SIGTERM)
            // It answers the check, with 503.
            try await eventually("it to be down") {
                let seen = try await server("proxy1", bed)
                return seen.status == "DOWN" && seen.check == "L7STS"
            }
            #expect(proxy.process.unaskedEnding == nil)
        }
    }
}
