import Foundation
import Testing

/// Peers that trickle bytes or vanish, at each stage. The proxy survives, serves others meanwhile, and frees
/// everything. Peers that say nothing at all have separate suites (`SilentOriginTests` and so on), and so does the
/// signer (`SignerTests`).
@Suite(.timeLimit(.minutes(5)))
struct SilentActorsTests {
    typealias Stage = PythonPeer.Stage

    struct Case: Sendable, CustomTestStringConvertible {
        let stage: Stage
        let behaviour: PythonPeer.Behaviour
        var isSecure = true

        var testDescription: String { "\(stage.rawValue), \(behaviour.rawValue)\(isSecure ? "" : ", http")" }

        static func all(_ secure: [Stage], plain: [Stage] = []) -> [Case] {
            [.trickle, .vanish].flatMap { behaviour in
                secure.map { Case(stage: $0, behaviour: behaviour) }
                    + plain.map { Case(stage: $0, behaviour: behaviour, isSecure: false) }
            }
        }
    }

    /// Short limits on everything that a peer can draw out.
    private static let bounds: ProxyProcess.Sections = [
        "timeouts": ["connect: 2s", "tls_handshake: 2s", "first_byte: 2s", "idle_client: 2s", "idle_upstream: 100ms"],
        "limits": ["minimum_rate: 1KiB/2s"],
    ]

    // MARK: Upstream

    @Test(
        arguments: Case.all(
            [.accept, .hello, .handshake, .request, .halfHead, .continue, .head, .halfBody, .halfChunk],
            plain: [.accept, .request, .halfHead, .continue, .head, .halfBody, .halfChunk]))
    func anOrigin(_ actor: Case) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.silent(
                until: actor.stage, then: actor.behaviour, in: bed,
                chain: actor.isSecure ? roots.chain("silent.test") : nil)
            let shared = try await OriginBed.prepare(
                bed, sections: Self.bounds, hosts: ["silent.test": "127.0.0.1"], roots: roots)
            let before = try await shared.footprint()
            async let answer = shared.bed.run(
                [
                    "curl", "-sS", "-i", "--max-time", "100",
                    "\(actor.isSecure ? "https" : "http")://silent.test:\(origin.port)/",
                ],
                environment: shared.proxy.clientEnvironment)
            _ = try await origin.events.first("silent")
            try await shared.servesOthers()
            let run = try await answer
            // Either the proxy's error, or a body that can't pass as complete, but not curl's timeout.
            let status = run.output.split(separator: "\r\n").last { $0.hasPrefix("HTTP/1.1 ") }?.split(separator: " ")[
                1]
            if status == "200" || status == nil {
                #expect(!run.succeeded && run.ending != .exited(28), "\(run)")
            } else {
                #expect(status == "502" || status == "504", "\(run)")
            }
            try await shared.hasGivenBack(since: before)
        }
    }

    @Test(arguments: Case.all([.accept, .request, .halfHead]), [true, false])
    func aParent(_ actor: Case, isTunnel: Bool) async throws {
        try await withTestBed { bed in
            let parent = try await PythonPeer.silent(until: actor.stage, then: actor.behaviour, in: bed)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil,
                sections: Self.bounds.merging(["upstream": ["parent: http://127.0.0.1:\(parent.port)"]]) { $1 })
            let before = try proxy.openDescriptors()
            let client = try RawConnection(to: proxy)
            try await client.send(
                """
                \(isTunnel ? "CONNECT origin.test:443" : "GET http://origin.test:443/") HTTP/1.1\r\nHost: \
                origin.test:443\r\n\r\n
                """
            )
            _ = try await parent.events.first("silent")
            #expect(try await proxy.connect(to: "not a name:1").status == 400, "others are answered")
            let answer = try await client.response()
            #expect([502, 504].contains(answer.status), "\(answer)")
            try await client.finishSending()
            try await eventually("descriptors to be closed") { try proxy.openDescriptors() <= before }
            #expect(proxy.process.unaskedEnding == nil)
        }
    }

    @Test(arguments: Case.all([.accept, .hello, .handshake, .request, .halfHead, .halfBody]))
    func aReportCollector(_ actor: Case) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let collector = try await PythonPeer.silent(
                until: actor.stage, then: actor.behaviour, in: bed, chain: roots.chain("collector.test"))
            let entry = """
                hosts:
                  - match: pinned.test
                    pinning: public-key
                    pins: [\(String.wrongPin)]
                    report_uri: https://collector.test:\(collector.port)/

                """
            let shared = try await OriginBed.prepare(
                bed, pins: entry, sections: Self.bounds,
                hosts: ["collector.test": "127.0.0.1", "pinned.test": "127.0.0.1"], roots: roots)
            let before = try await shared.footprint()
            // On a busy machine a handshake may time out, and nothing is reported.
            try await eventually("a mismatch") {
                try await shared.proxy.connect(to: "pinned.test:\(shared.originPort)").status == 502
            }
            _ = try await collector.events.first("silent")
            try await shared.servesOthers()
            _ = try await shared.proxy.events.first("pin.report.failed")
            try await shared.hasGivenBack(since: before)
        }
    }

    // MARK: Downstream

    /// What a client sends before it trickles or vanishes, and the bytes that trickle.
    enum Beginning: String, CaseIterable, Sendable {
        case nothing, head, body, tunnel, handshake, response

        fileprivate var next: String {
            switch self {
            case .nothing: "GET / HTTP/1.1\r\nHost: a"
            case .handshake, .tunnel: "\u{16}\u{3}\u{1}"
            default: "a"
            }
        }
    }

    @Test(arguments: Beginning.allCases, [PythonPeer.Behaviour.trickle, .vanish])
    func aClient(_ beginning: Beginning, _ behaviour: PythonPeer.Behaviour) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: Self.bounds)
            let before = try await shared.footprint()
            let client = try RawConnection(to: shared.proxy)
            let host = "\(OriginBed.name):\(shared.secondOriginPort)"
            switch beginning {
            case .nothing: break
            case .head: try await client.send("GET http://\(host)/echo HTTP/1.1\r\nHost: a\r\nX-Field: ")
            case .body:
                try await client.send(
                    "POST http://\(host)/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\nfirst")
            case .tunnel, .handshake:
                try await client.send("CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n")
                #expect(try await client.response().status == 200)
                // On a busy machine the proxy's timeout may have expired.
                if beginning == .handshake { try? await client.send([0x16, 3, 1, 0x02, 0, 1, 0, 1, 0xfc, 3, 3]) }
            case .response:
                try await client.send("GET http://\(host)/large/100000000 HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(try await !client.receive(atMost: 100).isEmpty)
            }
            try await go(on: client, behaviour, beginning.next, shared, before)
        }
    }

    enum Door: String, CaseIterable, Sendable { case control, runs, admin, balancer }

    @Test(
        arguments: Door.allCases,
        [false, true].flatMap { hasBegun in
            [PythonPeer.Behaviour.trickle, .vanish].map { ($0, hasBegun ? "GET /status HTTP/1.1\r\nX-Field: " : "") }
        })
    func aClientOfAnotherDoor(_ door: Door, _ actor: (behaviour: PythonPeer.Behaviour, sent: String)) async throws {
        let (behaviour, sent) = actor
        try await withTestBed { bed in
            let (balanced, port) = (LoopbackAddress.network() + ".1", try bed.port())
            var sections = Self.bounds
            sections["admin"] = ["listen: 127.0.0.1:0"]
            sections["proxy"] = ["listen: [127.0.0.1:0, {address: \(balanced):\(port), proxy_protocol: [127.0.0.1]}]"]
            let shared = try await OriginBed.prepare(bed, sections: sections)
            let before = try await shared.footprint()
            let client =
                switch door {
                case .control: try RawConnection(path: bed.path("proxy/state/pinproxy/control.sock"))
                case .runs: try RawConnection(path: bed.path("proxy/state/pinproxy/runs.sock"))
                case .admin: try RawConnection(port: try await AdminClient(shared.proxy).port)
                case .balancer: try RawConnection(port: port, at: balanced)
                }
            let header = door == .balancer ? "PROXY TCP4 192.0.2.1 192" : ""
            try await client.send(header.isEmpty ? sent : sent.isEmpty ? "PROXY" : header)
            try await go(
                on: client, behaviour, header.isEmpty && sent.isEmpty ? "GET /status HTTP/1.1\r\nX-Field: a" : " ",
                shared, before)
        }
    }

    /// A `pinproxy exec` run, which its connection identifies.
    @Test(arguments: [PythonPeer.Behaviour.trickle, .vanish]) func aRun(_ behaviour: PythonPeer.Behaviour) async throws
    {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: Self.bounds)
            let before = try await shared.footprint()
            let client = try RawConnection(path: bed.path("proxy/state/pinproxy/runs.sock"))
            try await client.send("POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
            try await go(on: client, behaviour, " ", shared, before)
        }
    }

    private func go(
        on client: RawConnection, _ behaviour: PythonPeer.Behaviour, _ next: String, _ shared: SharedBed,
        _ before: Footprint
    ) async throws {
        if behaviour == .vanish { try await client.vanish() }
        let trickling = Task {
            var bytes = Array(next.utf8)[...]
            while behaviour == .trickle, !Task.isCancelled {
                guard (try? await client.send([bytes.first ?? 0x61])) != nil else { return }
                if bytes.count > 1 { bytes = bytes.dropFirst() }
                // The pace of the trickle.
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
        try await shared.servesOthers()
        try await shared.hasGivenBack(since: before)
        trickling.cancel()
        await trickling.value
    }

    // MARK: Log and disk

    /// A log reader that exits with lines still unread.
    @Test func aLogReaderThatVanishes() async throws {
        try await withTestBed { bed in
            let log = try StalledPipe()
            let shared = try await OriginBed.prepare(bed, sections: Self.bounds, log: log)
            let before = try await shared.footprint()
            log.vanish()
            for _ in 0..<20 { try await shared.servesOthers() }
            try await shared.hasGivenBack(since: before)
        }
    }

    private static let canFreeze =
        NetworkBed.isAvailable
        && ["/dev/loop-control", "/usr/sbin/mkfs.ext4", "/usr/sbin/fsfreeze"].allSatisfy(FileManager.default.fileExists)

    /// The state directory's file system blocks writes for a while, without an error.
    @Test(.enabled(if: canFreeze, "needs root, a loop device, mkfs.ext4 and fsfreeze"))
    func aDiskThatDoesNotAnswer() async throws {
        try await withTestBed { bed in
            let (image, state) = (bed.path("disk"), bed.path("proxy/state"))
            let made =
                """
                truncate -s 16M '\(image)' && mkfs.ext4 -q '\(image)' && mkdir -p '\(state)' && mount -o loop \
                '\(image)' '\(state)'
                """
            let shared = try await OriginBed.prepare(
                bed, sections: Self.bounds,
                launcher: ["unshare", "--mount", "/bin/sh", "-c", "\(made) && exec \"$0\" \"$@\""])
            let before = try await shared.footprint()
            func freeze(_ word: String) async throws {
                let run = try await bed.run(
                    ["nsenter", "--mount=/proc/\(shared.proxy.process.identifier)/ns/mnt", "fsfreeze", word, state])
                #expect(run.succeeded, "\(run)")
            }
            try await freeze("--freeze")
            do {
                try ProxyProcess.write(
                    to: bed, folder: "proxy", pins: "hosts: [{match: other.test, action: deny}]\n",
                    trust: bed.path("roots.pem"),
                    sections: Self.bounds)
                #expect(try await shared.proxy.reload().name == "config.reload")
                let said = try await shared.proxy.events.first("state.unwritable")
                #expect(said["cause"] == "the disk doesn't answer", "\(said)")
                for _ in 0..<3 { try await shared.servesOthers() }
                #expect(try await shared.proxy.reload().name == "config.reload")
                #expect(try await shared.tasks.ask("POST", "/learn?until=4000000000").status == 503)
                #expect(try await shared.tasks.ask("GET", "/healthz").status == 200)
            } catch {
                try await freeze("--unfreeze")
                throw error
            }
            try await freeze("--unfreeze")
            #expect(try await shared.proxy.events.first("state.unwritable", number: 2)["effect"] == "over")
            try await eventually("the configuration to be kept") {
                let kept = try await bed.run(
                    [
                        "nsenter", "--mount=/proc/\(shared.proxy.process.identifier)/ns/mnt", "cat",
                        "\(state)/pinproxy/configuration.json",
                    ])
                return kept.succeeded
            }
            try await shared.hasGivenBack(since: before)
        }
    }
}
