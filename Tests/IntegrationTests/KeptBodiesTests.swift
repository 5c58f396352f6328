import Foundation
import Testing

/// `limits.bodies`: the total bytes of all bodies that the proxy keeps at once.
@Suite(.timeLimit(.minutes(5)))
struct KeptBodiesTests {
    /// The proxy and an origin, with a budget of this many bytes.
    private struct Bed {
        let shared: SharedBed
        let admin: AdminClient

        static let rules = [
            "{path: /received/form/**, request: {convert_body: {from: form, to: json}}}",
            "{path: /held-answer/json-*/**, response: {serializer: json}}",
            "{path: /held-answer/pass-*/**, response: {serializer: json, oversize: pass}}",
            """
            {path: /held-answer/nulls-*/**, response: {serializer: json, remove_null_values: true, enforcement: \
            report}}
            """,
            "{path: /held-answer/report-*/**, response: {serializer: json, enforcement: report}}",
            "{path: /redirect/**, session: {redirects: follow}}",
        ]

        init(_ bed: TestBed, bodies: String, inspected: String) async throws {
            shared = try await RuleBed.prepare(
                bed, rules: Self.rules,
                sections: AdminClient.section.merging(["limits": ["bodies: \(bodies)", "inspected_body: \(inspected)"]])
                { $1 })
            admin = try await AdminClient(shared.proxy)
        }

        func metric(_ sample: String) async throws -> Int {
            let text = try await admin.ask("GET", "/metrics").body
            let line = text.split(separator: "\n").first { $0.hasPrefix(sample + " ") }
            return try #require(line.flatMap { Int($0.dropFirst(sample.count + 1)) }, "\(sample): \(text)")
        }

        var inUse: Int { get async throws { try await metric("pinproxy_kept_bodies_bytes") } }

        func refused(_ what: String) async throws -> Int {
            try await metric("pinproxy_kept_bodies_refused_total{what=\"\(what)\"}")
        }

        func allIsGivenBack() async throws {
            try await eventually("all to be given back") { try await inUse == 0 }
        }

        /// Sends the head of a form for conversion, and the first bytes of its body.
        func post(_ length: Int, sending count: Int, _ fields: String = "") async throws -> RawConnection {
            let connection = try RawConnection(to: shared.proxy)
            let url = "\(shared.plainURL)/received/form/json"
            try await connection.send(
                "POST \(url) HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n"
                    + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(length)\r\n\(fields)\r\n"
                    + ("a=" + String(repeating: "x", count: max(count - 2, 0))).prefix(count))
            return connection
        }

        /// A response of 40,000 bytes in JSON that the origin doesn't end until it is released. It takes 64 KiB.
        /// - Parameter url: the origin's; nil: over plain HTTP.
        func held(_ rule: String, at url: String? = nil) async throws -> (client: ChildProcess, name: String) {
            let name = "\(rule)-\(UUID())"
            let body = "[" + String(repeating: "1,", count: 19_999) + "1"
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
            let path = "/held-answer/\(name)/close/" + RuleBed.encoded(Array((head + body).utf8))
            let client = try await shared.bed.start(
                ["curl", "-sS", "-i", (url ?? shared.plainURL) + path], environment: shared.proxy.clientEnvironment)
            return (client, name)
        }

        /// The same, once it is held.
        func heldInMemory(_ rule: String, at url: String? = nil) async throws -> (client: ChildProcess, name: String) {
            let before = try await inUse
            let held = try await held(rule, at: url)
            try await eventually("it to be kept") { try await inUse == before + 65_536 }
            return held
        }

        func release(_ name: String) async throws {
            _ = try await shared.bed.curl(via: shared.proxy, ["\(shared.plainURL)/release/\(name)"])
        }
    }

    private static func text(of client: ChildProcess) async throws -> String {
        _ = try await client.ending()
        return await client.output.text
    }

    private static func isRefusal(_ text: String) -> Bool {
        text.hasPrefix("HTTP/1.1 503 ") && text.contains("\r\nRetry-After: 5\r\n") && text.contains("limits.bodies")
    }

    // MARK: Requests

    @Test func fortyClientsWithSlowBodiesTakeNoMoreThanTheBudget() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "1MiB", inspected: "256KiB")
            // Each of them takes 192 KiB, to its end.
            let (sent, length, step) = (150_000, 190_000, 196_608)
            var clients: [RawConnection] = []
            for _ in 0..<40 { clients.append(try await budget.post(length, sending: sent)) }
            try await eventually("each to wait, or to be refused") {
                let (inUse, refused) = (try await budget.inUse, try await budget.refused("request"))
                #expect(inUse <= 1 << 20)
                return inUse % step == 0 && inUse / step + refused == 40
            }
            let refused = try await budget.refused("request")
            #expect(refused >= 35 && refused < 40)
            let rest = String(repeating: "y", count: length - sent)
            let answers = try await withThrowingTaskGroup(of: RawResponse.self) { group in
                for client in clients {
                    group.addTask {
                        // Refused clients may have been disconnected by now.
                        try? await client.send(rest)
                        return try await client.response()
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let converted = answers.filter { $0.status == 200 }
            #expect(converted.count == 40 - refused)
            #expect(converted.allSatisfy { $0.body.contains("\"length\": \(length + 6)") }, "\(converted)")
            let others = answers.filter { $0.status != 200 }
            #expect(others.count == refused && others.allSatisfy { Self.isRefusal($0.description) }, "\(others)")
            try await budget.allIsGivenBack()
            // The log has one line when the limit is reached, and one when that ends.
            let events = budget.shared.proxy.events
            let struck = try await events.first("bodies.limit")
            #expect(struck["level"] == "warning" && struck["limit"] == "\(1 << 20)", "\(struck)")
            let over = try await events.first("bodies.limit") { $0["effect"] == "over" }
            #expect(over["not_kept"] == "\(refused)", "\(over)")
            #expect(events.all("bodies.limit").count == 2)
            // There is memory again.
            let again = try await budget.post(length, sending: length)
            #expect(try await again.response().status == 200)
        }
    }

    /// The count is of memory: forty clients bring 280 MiB.
    @Test(.disabled(if: Sanitizer.isOn, "its allocator keeps what is freed on purpose"))
    func memoryStaysNearTheBudget() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "32MiB", inspected: "8MiB")
            let first = try await budget.post(1000, sending: 1000)
            #expect(try await first.response().status == 200)
            let before = try budget.shared.proxy.peakMemory()
            let (sent, length) = (7 << 20, 8_000_000)
            var clients: [RawConnection] = []
            for _ in 0..<40 { clients.append(try await budget.post(length, sending: 2)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                let rest = [UInt8](repeating: 0x78, count: sent - 2)
                // A refused client is disconnected after a while.
                for client in clients { group.addTask { try? await client.send(rest) } }
                try await group.waitForAll()
            }
            try await eventually("each to wait, or to be refused") {
                let (inUse, refused) = (try await budget.inUse, try await budget.refused("request"))
                return inUse % sent == 0 && inUse / sent + refused == 40
            }
            let grown = try budget.shared.proxy.peakMemory() - before
            #expect(grown < 128 << 20, "\(grown) bytes")
            clients.removeAll()
            try await budget.allIsGivenBack()
        }
    }

    @Test func clientsThatLeaveInTheMiddleGiveBackWhatTheyTook() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "1MiB", inspected: "256KiB")
            var clients: [RawConnection] = []
            for number in 0..<5 {
                clients.append(try await budget.post(190_000, sending: 150_000))
                if number % 2 == 0 { try await clients[number].resetOnClose() }
            }
            try await eventually("all to be kept") { try await budget.inUse == 5 * 196_608 }
            clients.removeAll()
            try await budget.allIsGivenBack()
            #expect(try await budget.refused("request") == 0)
        }
    }

    /// No 100 is sent for a body that doesn't fit.
    @Test func noBodyIsAskedForWithoutRoom() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "64KiB", inspected: "64KiB")
            let first = try await budget.post(50_000, sending: 49_000)
            try await eventually("the first to take all") { try await budget.inUse == 64 << 10 }
            let second = try await budget.post(1000, sending: 0, "Expect: 100-continue\r\n")
            let answer = try await second.response()
            #expect(Self.isRefusal(answer.description), "\(answer)")
            try await first.send(String(repeating: "y", count: 1000))
            #expect(try await first.response().status == 200)
            let third = try await budget.post(1000, sending: 0, "Expect: 100-continue\r\n")
            #expect(try await third.response().status == 100)
            try await third.send("a=" + String(repeating: "x", count: 998))
            #expect(try await third.response().status == 200)
            try await budget.allIsGivenBack()
        }
    }

    // MARK: Responses

    @Test func aResponseThatCannotBeHeldIsRefusedAndNeverPassedUnjudged() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "128KiB", inspected: "64KiB")
            let kept = [try await budget.heldInMemory("json"), try await budget.heldInMemory("json")]
            for rule in ["json", "pass"] {
                let text = try await Self.text(of: try await budget.held(rule).client)
                #expect(Self.isRefusal(text) && !text.contains("1,1,1"), "\(text)")
            }
            // A rule that only reports holds nothing back for that.
            for rule in ["report", "nulls"] {
                let (client, name) = try await budget.held(rule)
                try await eventually("\(rule) to be noticed") {
                    try await budget.refused("response") >= (rule == "report" ? 3 : 4)
                }
                try await budget.release(name)
                let text = try await Self.text(of: client)
                #expect(text.hasPrefix("HTTP/1.1 200 ") && text.hasSuffix("1,1"), "\(text.prefix(300))")
            }
            // Held ones are still checked: this is not JSON.
            for (client, name) in kept {
                try await budget.release(name)
                let text = try await Self.text(of: client)
                #expect(text.hasPrefix("HTTP/1.1 502 "), "\(text.prefix(300))")
            }
            try await budget.allIsGivenBack()
        }
    }

    @Test func aClientThatLeavesWhileItsResponseIsHeldGivesItBack() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "256KiB", inspected: "64KiB")
            // Over TLS, where an end without a word isn't half of one.
            let url = budget.shared.url
            let held = [
                try await budget.heldInMemory("json", at: url), try await budget.heldInMemory("nulls", at: url),
            ]
            for (client, _) in held { client.send(signal: SIGKILL) }
            try await budget.allIsGivenBack()
        }
    }

    // MARK: Replay

    /// A body that can't be kept for a retry is sent once.
    @Test func aRequestContinuesWithoutBeingKept() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "192KiB", inspected: "64KiB")
            var held: [(client: ChildProcess, name: String)] = []
            for _ in 0..<3 { held.append(try await budget.heldInMemory("json")) }
            let file = try bed.file("upload", String(repeating: "u", count: 300_000))
            func upload(_ path: String) async throws -> Run {
                try await bed.curl(via: budget.shared.proxy, ["-i", "-T", file, budget.shared.plainURL + path])
            }
            let redirected = try await upload("/redirect/307/received/x")
            #expect(
                redirected.output.contains("HTTP/1.1 502 ") && redirected.output.contains("limits.bodies"),
                "\(redirected)")
            #expect(try await budget.refused("replay") == 1)
            // One that isn't needed again doesn't notice.
            let see = try await upload("/redirect/303/received/x")
            #expect(see.output.contains("\"method\": \"GET\""), "\(see)")
            for (_, name) in held { try await budget.release(name) }
            try await eventually("room") { try await budget.inUse == 0 }
            let short = try await bed.curl(
                via: budget.shared.proxy,
                [
                    "-i", "-T", try bed.file("short", String(repeating: "u", count: 100_000)),
                    budget.shared.plainURL + "/redirect/307/received/x",
                ])
            #expect(short.output.contains("\"length\": 100000"), "\(short)")
            try await budget.allIsGivenBack()
        }
    }

    // MARK: Sharing

    /// Clients that can't be served from memory are served by the origin.
    @Test(arguments: ["chunked", "close", "length"]) func aSharedResponseContinuesUnshared(coding: String) async throws
    {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(
                bed, session: "{coalesce: true}",
                sections: AdminClient.section.merging(["limits": ["bodies: 128KiB", "inspected_body: 64KiB"]]) { $1 })
            let admin = try await AdminClient(shared.proxy)
            let path = "/stream/m?coding=\(coding)&size=\(8 << 20)"
            let names = ["one", "two", "three", "four"]
            let clients = try await shared.begin(4, path, names.map { ["-o", $0] })
            try await shared.go("m")
            for client in clients { #expect(try await client.ending() == .exited(0)) }
            let whole = try await bed.run(
                ["sh", "-c", "curl -sS '\(shared.url)\(path)' | sha256sum"], environment: shared.proxy.clientEnvironment
            )
            for name in names {
                // Trailers follow the body.
                let sum = try await bed.run(["sh", "-c", "sed '1,/^\r$/d' \(name) | head -c \(8 << 20) | sha256sum"])
                #expect(sum.output == whole.output, "\(name)")
            }
            let metrics = try await admin.ask("GET", "/metrics").body
            #expect(!metrics.contains("pinproxy_kept_bodies_refused_total{what=\"shared\"} 0\n"), "it was short")
            try await eventually("all to be given back") {
                try await admin.ask("GET", "/metrics").body.contains("\npinproxy_kept_bodies_bytes 0\n")
            }
        }
    }

    // MARK: Reload

    @Test func aReloadChangesTheLimitAndLosesNoCount() async throws {
        try await withTestBed { bed in
            let budget = try await Bed(bed, bodies: "128KiB", inspected: "64KiB")
            func reload(_ from: String, _ to: String) async throws {
                let path = bed.path("proxy/pinproxy.yaml")
                let text = try String(contentsOfFile: path, encoding: .utf8)
                try bed.file(
                    "proxy/pinproxy.yaml", text.replacingOccurrences(of: "bodies: \(from)", with: "bodies: \(to)"))
                let event = try await budget.shared.proxy.reload()
                #expect(event.name == "config.reload", "\(event)")
            }
            let held = [try await budget.heldInMemory("json"), try await budget.heldInMemory("json")]
            let inUse = try await budget.inUse
            try await reload("128KiB", "64KiB")
            #expect(try await budget.metric("pinproxy_kept_bodies_limit_bytes") == 64 << 10)
            #expect(try await budget.inUse == inUse)
            let refused = try await Self.text(of: try await budget.held("json").client)
            #expect(Self.isRefusal(refused) && refused.contains("65536 bytes"), "\(refused)")
            try await reload("64KiB", "1MiB")
            let more = try await budget.heldInMemory("json")
            #expect(try await budget.inUse > inUse)
            for (client, name) in held + [more] {
                try await budget.release(name)
                _ = try await client.ending()
            }
            try await budget.allIsGivenBack()
        }
    }
}
