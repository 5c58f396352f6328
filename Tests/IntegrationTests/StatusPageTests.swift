import Foundation
import Testing

/// The status page in a real Chromium, and the events that feed it.
@Suite(.timeLimit(.minutes(5)))
struct StatusPageTests {
    private static let wrong = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    /// What `Peers/page.py` found.
    private struct Found: Decodable {
        let headline: String
        let rows: Int
        let entries: String
        let refusals: String
        let text: String
        let overflow: Int
        let injected: Int
        let dialog: String
        let filtered: String
        let console: [String]
        let hosts: [String]
        let violations: [[Violation]]?
        let stops: Int
        let cut: Int
        let tile: String
        let kinds: [String]
        let months: [Int]
        /// The list, the key, and what had the focus after it.
        let keys: [[String]]
        let phoneCut: Int
        let phoneOverflow: Int

        enum CodingKeys: String, CodingKey {
            case headline, rows, entries, refusals, text, overflow, injected, dialog, filtered, console, hosts,
                violations, stops, cut, tile
            case kinds, months, keys
            case phoneCut = "phone-cut"
            case phoneOverflow = "phone-overflow"
        }
    }

    /// Equal refusals are one line, certificate errors are as red as pin failures, and the keyboard reaches everything.
    @Test func aPersonFindsWhatMatters() async throws {
        try await withTestBed { bed in
            let badges =
                "enforcement: report, validates_domain_name: false, clients: {users: [root]}, expires: 2031-06-30"
            let shared = try await OriginBed.prepare(
                bed,
                pins: """
                    hosts:
                      - {match: pinned.test, pinning: public-key, pins: [\(Self.wrong)]}
                      - {match: crowded.test, pinning: public-key, pins: [\(Self.wrong)], \(badges)}
                      - {match: "**.crowded-with-quite-a-long-name.example.test", pinning: public-key, pins: \
                    [\(Self.wrong)], \(badges)}

                    """
                        + (0..<50).map {
                            "  - {match: h\($0).fleet.test, pinning: public-key, pins: [\(Self.wrong)]}\n"
                        }.joined(),
                sections: AdminClient.section, hosts: ["pinned.test": "127.0.0.1"])
            for _ in 1...30 {
                #expect(try await shared.proxy.connect(to: "127.0.0.1:\(shared.originPort)").status == 502)
                #expect(try await shared.proxy.connect(to: "pinned.test:\(shared.originPort)").status == 502)
            }
            let admin = try await AdminClient(shared.proxy)
            let page = try await bed.start(
                [
                    "/usr/bin/python3", "-u", PythonPeer.path("page.py"), "http://127.0.0.1:\(admin.port)/",
                    "--profile", bed.path("profile"),
                    "--wait-for", "verification failure",
                ], mergingErrors: true)
            let ending = try await page.ending()
            let written = await page.output.text
            #expect(ending == .exited(0), "\(written)")
            let line = page.output.lines.last { $0.contains("\"done\"") } ?? ""
            let found = try JSONDecoder().decode(Found.self, from: Data(line.utf8))
            #expect(
                found.kinds.sorted() == ["certificate", "pins"] && found.refusals.contains("× 30"), "\(found.refusals)")
            #expect(
                found.text.contains("Certificates fail") && found.text.contains("for 127.0.0.1: ")
                    && found.text.contains("(30 times)"), "\(found.text.prefix(600))")
            // Not the number of matches, which is 0.
            #expect(found.tile.hasPrefix("Pins missed30"), "\(found.tile)")
            #expect(found.months == [2], "\(found.months)")
            #expect(found.stops <= 20, "\(found.stops)")
            #expect(found.cut == 0 && found.phoneCut == 0 && found.overflow == 0 && found.phoneOverflow == 0, "\(line)")
            #expect(found.keys.count == 6)
            let (first, last) = (found.keys[2][2], found.keys[1][2])
            #expect(first != last && first.contains("failure") && last == found.keys[0][2], "\(found.keys)")
            #expect(
                found.keys[3...].map { $0[2] } == ["crowded.test", "h49.fleet.test", "pinned.test"], "\(found.keys)")
        }
    }

    private enum Violation: Decodable {
        case text(String)
        case list([String])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let text = try? value.decode(String.self) {
                self = .text(text)
            } else {
                self = .list((try? value.decode([String].self)) ?? [])
            }
        }
    }

    @Test func itShowsAMismatchAsItHappens() async throws {
        try await withTestBed { bed in
            let many = (0..<10_000).map {
                "  - {match: h\($0).fleet.test, pinning: public-key, pins: [\(Self.wrong)]}\n"
            }.joined()
            let shared = try await OriginBed.prepare(
                bed, pins: "hosts:\n  - {match: pinned.test, pinning: public-key, pins: [\(Self.wrong)]}\n" + many,
                sections: AdminClient.section, hosts: ["pinned.test": "127.0.0.1"])
            let admin = try await AdminClient(shared.proxy)
            let packages = URL(fileURLWithPath: PythonPeer.pythonWithPackages).deletingLastPathComponent()
                .deletingLastPathComponent()
            let axe = try FileManager.default.subpathsOfDirectory(atPath: packages.path).first {
                $0.hasSuffix("axe_core_python/axe.min.js")
            }
            let page = try await bed.start(
                [
                    "/usr/bin/python3", "-u", PythonPeer.path("page.py"), "http://127.0.0.1:\(admin.port)/",
                    "--profile", bed.path("profile"),
                    "--axe", packages.path + "/" + (axe ?? "axe.min.js of axe-core-python is missing"), "--wait-for",
                    "pinned.test",
                ], mergingErrors: true)
            _ = try await page.output.first(awaiting: "the page") { $0.contains("\"ready\"") ? $0 : nil }
            // Text that must never run, in every place that a client can write to.
            for hostile in [
                "<script>window.hacked=1</script>", "<img/src=x>.test", String(repeating: "h", count: 250) + ".test",
            ] {
                let connection = try RawConnection(to: shared.proxy)
                try await connection.send(
                    "CONNECT \(hostile):443 HTTP/1.1\r\nHost: \(hostile):443\r\nConnection: close\r\n\r\n")
                _ = try await connection.response()
                let plain = try RawConnection(to: shared.proxy)
                try await plain.send(
                    "<b>X</b> http://nowhere.onion/<svg/onload=hacked=1> HTTP/1.1\r\nHost: nowhere.onion\r\n\r\n")
                _ = try await plain.receiveUntilCut()
            }
            #expect(try await shared.proxy.connect(to: "pinned.test:\(shared.originPort)").status == 502)
            let ending = try await page.ending()
            let written = await page.output.text
            #expect(ending == .exited(0), "\(written)")
            let line = page.output.lines.last { $0.contains("\"done\"") } ?? ""
            let found = try JSONDecoder().decode(Found.self, from: Data(line.utf8))
            #expect(found.headline == "Pins fail", "\(found.headline)")
            #expect(
                found.refusals.contains("Certificate pinning failure for pinned.test")
                    && found.refusals.contains(Self.wrong))
            #expect(found.refusals.contains("<script>window.hacked=1<"))
            #expect(found.injected == 0)
            #expect(found.entries == "Entries (10,000 of 10,001)")
            #expect(found.rows > 0 && found.rows <= 40, "\(found.rows) rows")
            #expect(found.dialog.contains(Self.wrong), "\(found.dialog)")
            #expect(found.filtered == "No entry fits the filter.")
            #expect(found.overflow == 0 && found.phoneOverflow == 0 && found.cut == 0 && found.phoneCut == 0)
            #expect(found.stops <= 25, "\(found.stops)")
            #expect(found.console == [], "\(found.console)")
            #expect(found.hosts == ["http://127.0.0.1:\(admin.port)"], "\(found.hosts)")
            #expect(found.violations?.isEmpty == true, "\(line.suffix(3000))")
        }
    }

    /// What the page showed of a task, and what its buttons did.
    private struct Ordered: Decodable {
        struct Orders: Decodable {
            let progress: Double
            let amount: String
            let client: String
            let target: String
            let suspend: Bool
            let hidden: [String]
            let resume: Bool
            let cancel: Bool
            let sparks: [String]
            let line: String
        }

        let orders: Orders
        let console: [String]
    }

    @Test func itsButtonsControlTasks() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/token", "0123456789abcdef0123456789abcdef\n")
            let shared = try await OriginBed.prepare(
                bed, sections: ["admin": ["listen: 127.0.0.1:0", "token_file: token"]])
            let admin = try await AdminClient(shared.proxy)
            let client = try await bed.start(
                ["curl", "-sS", shared.plainURL + "/hold/page"], environment: shared.proxy.clientEnvironment)
            _ = try await shared.plainOrigin?.events.first("held")
            let page = try await bed.start(
                [
                    "/usr/bin/python3", "-u", PythonPeer.path("page.py"), "http://127.0.0.1:\(admin.port)/",
                    "--profile", bed.path("profile"),
                    "--token", "0123456789abcdef0123456789abcdef", "--orders",
                ], mergingErrors: true)
            let ending = try await page.ending()
            let written = await page.output.text
            #expect(ending == .exited(0), "\(written)")
            let line = page.output.lines.last { $0.contains("\"done\"") } ?? ""
            let found = try JSONDecoder().decode(Ordered.self, from: Data(line.utf8))
            let orders = found.orders
            #expect(orders.progress > 0 && orders.progress <= 1 && orders.amount.hasSuffix(" of 12 B"), "\(orders)")
            #expect(orders.target.hasSuffix("/hold/page") && orders.client.hasPrefix("127.0.0.1:"), "\(orders)")
            #expect(orders.suspend && orders.resume && orders.cancel && orders.hidden == ["suspend"], "\(orders)")
            #expect(
                orders.sparks.contains("Requests a second in the last minute") && orders.line.hasPrefix("M"),
                "\(orders)")
            // It asks before it knows that it needs a token.
            #expect(found.console.allSatisfy { $0.contains("401 (Unauthorized)") }, "\(found.console)")
            // Cut off in the middle of its answer.
            #expect(try await client.ending() == .exited(18))
            let told = shared.proxy.events.all.map(\.name).filter { $0.hasPrefix("task.") }
            #expect(told == ["task.suspend", "task.resume", "task.cancel"], "\(told)")
        }
    }

    @Test func itsPolicyLetsNothingElseRun() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/token", "0123456789abcdef0123456789abcdef\n")
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["admin": ["listen: 127.0.0.1:0", "token_file: token"]])
            let admin = try await AdminClient(proxy)
            for (target, type) in [
                ("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript"),
                ("/pins.js", "text/javascript"), ("/refusals.js", "text/javascript"),
                ("/incidents.js", "text/javascript"), ("/icon.svg", "image/svg+xml"),
            ] {
                let answer = try await admin.ask("GET", target)
                #expect(answer.status == 200 && answer["content-type"]?.hasPrefix(type) == true, "\(target)")
                let policy = answer["content-security-policy"] ?? ""
                #expect(
                    policy.hasPrefix("default-src 'none'; script-src 'self';")
                        && policy.contains("frame-ancestors 'none'"))
                #expect(!policy.contains("unsafe") && !answer.body.contains("0123456789abcdef"))
            }
            #expect(try await admin.ask("GET", "/events").status == 401)
        }
    }

    @Test func eventsAreBounded() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: AdminClient.section)
            let admin = try await AdminClient(proxy)
            let before = try proxy.openDescriptors()
            var watchers: [RawConnection] = []
            // As many watchers as one user may have.
            for _ in 1...8 {
                let watcher = try RawConnection(port: admin.port)
                try await watcher.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try await watcher.response()["content-type"] == "text/event-stream")
                watchers.append(watcher)
            }
            let refused = try await admin.ask("GET", "/events")
            #expect(
                refused.status == 503
                    && refused.body.contains("8 watchers of user \(geteuid()) already receive events"), "\(refused)")
            // A watcher that reads gets a refusal; the others delay no one.
            #expect(try await proxy.connect(to: "a b:1").status == 400)
            var heard = ""
            while !heard.contains("http_request_error") {
                heard += String(decoding: try await watchers[0].receive(), as: UTF8.self)
            }
            #expect(heard.contains("event: tick\ndata: {") && heard.contains("\"dropped\":0"))
            #expect(try await admin.ask("GET", "/healthz").status == 200)
            watchers = []
            try await eventually("the watchers to be gone") { try proxy.openDescriptors() <= before }
            let watcher = try RawConnection(port: admin.port)
            try await watcher.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await watcher.response().status == 200)
            proxy.process.send(signal: SIGTERM)
            #expect(try await proxy.process.ending() == .exited(0))
        }
    }

    /// A watcher that never reads misses more and more events, and is then disconnected. Watchers that read miss
    /// nothing.
    @Test func whoNeverReadsIsLetGo() async throws {
        try await withTestBed { bed in
            // A thousand counted entries make a first event that a Unix socket's buffer can't hold.
            let name = Array(repeating: String(repeating: "x", count: 60), count: 3).joined(separator: ".") + ".test"
            let many = (0..<1000).map { "  - {match: h\($0).\(name), action: deny}\n" }.joined()
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n" + many, trust: nil,
                sections: ["admin": ["listen: [127.0.0.1:0, unix:admin.sock]"]])
            let admin = try await AdminClient(proxy)
            let client = try RawConnection(to: proxy)
            try await client.connectDenied((0..<1000).map { "h\($0).\(name):443" })
            let open = try proxy.openDescriptors()
            let deaf = try RawConnection(path: bed.path("proxy/admin.sock"))
            try await deaf.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let watcher = try RawConnection(port: admin.port)
            try await watcher.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await watcher.response().status == 200)
            try await eventually("both to be there") { try proxy.openDescriptors() == open + 2 }
            let before = try proxy.ownMemory()
            var ticks = 0
            var dropped = false
            while try proxy.openDescriptors() > open + 1, ticks < 60 {
                let text = String(decoding: try await watcher.receive(), as: UTF8.self)
                ticks += text.components(separatedBy: "event: tick").count - 1
                dropped = dropped || text.contains("\"dropped\":") && !text.contains("\"dropped\":0")
            }
            #expect(ticks >= 28 && ticks < 60, "\(ticks)")
            #expect(!dropped)
            #expect(try proxy.ownMemory() < before + (8 << 20) || Sanitizer.isOn)
            #expect(try await admin.ask("GET", "/healthz").status == 200)
        }
    }
}
