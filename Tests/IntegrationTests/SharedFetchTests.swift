import Foundation
import Testing

/// `session.coalesce`: identical requests in flight become one, across clients and workers.
@Suite(.timeLimit(.minutes(5)))
struct SharedFetchTests {
    @Test func fortyClientsCostOneRequest() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(40, "/wait/a")
            try await shared.go("a")
            for output in try await shared.outputs(of: clients) {
                #expect(output.hasPrefix("HTTP/1.1 200 OK\r\n") && output.hasSuffix("\r\n\r\nfor */*"), "\(output)")
            }
            #expect(try await shared.allRequests("/wait/a") == 1)
            // Each line names the task that fetched the response.
            try await eventually("41 lines") { shared.proxy.events.all("exchange").count == 41 }
            let lines = shared.proxy.events.all("exchange")
            let shares = Set(lines.compactMap { $0["shared"] })
            #expect(shares.count == 1 && lines.filter { $0["shared"] != nil }.count == 40)
            #expect(lines.first { $0["client"] == nil }?["task"] == shares.first)
            // A later request is made again.
            #expect(try await shared.curl("/wait/a").succeeded)
            #expect(try await shared.allRequests("/wait/a") == 2)
        }
    }

    /// Requests with credentials, ranges, conditions or bodies are not shared.
    @Test(arguments: [
        ["-H", "Cookie: a=b"], ["-H", "Authorization: Bearer x"], ["-r", "0-3"], ["-H", "Cache-Control: no-cache"],
        ["-H", "If-None-Match: \"x\""], ["-X", "POST", "-d", "x"],
    ])
    func aRequestForOneIsItsOwn(arguments: [String]) async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            if arguments.first == "-X" {
                for _ in 0..<3 { _ = try await shared.curl("/go/none", "-X", "POST", "-d", "x") }
                #expect(shared.proxy.events.all("exchange").allSatisfy { $0["shared"] == nil })
                return
            }
            let clients = try await shared.begin(3, "/wait/b", [arguments])
            try await eventually("three requests") { shared.requests("/wait/b") == 3 }
            try await shared.go("b")
            _ = try await shared.outputs(of: clients)
        }
    }

    /// An origin may vary its response by any field, named in Vary or not.
    @Test(arguments: [
        "X-Api-Key", "X-Original-URL", "X-HTTP-Method-Override", "Accept", "Accept-Encoding", "Accept-Charset",
        "X-Forwarded-For", "Forwarded",
        "X-Anything", "Referer", "Origin", "From", "Via", "DNT",
    ])
    func requestsThatSayOtherThingsAreOthers(name: String) async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(
                4, "/wait/q",
                [
                    ["-H", "\(name): one"], ["-H", "\(name.uppercased()): one"], ["-H", "\(name): two"],
                    ["-H", "\(name):"],
                ])
            try await eventually("three requests") { shared.requests("/wait/q") == 3 }
            try await shared.go("q")
            _ = try await shared.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/q") == 3)
        }
    }

    /// Unicode's two spellings of one character are different values.
    @Test func valuesThatLookAlikeAreOthers() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(
                3, "/wait/l", [["-H", "X-Key: \u{E9}"], ["-H", "X-Key: e\u{301}"], ["-H", "X-Key: \u{E9}"]])
            try await eventually("two requests") { shared.requests("/wait/l") == 2 }
            try await shared.go("l")
            _ = try await shared.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/l") == 2)
        }
    }

    /// Order matters among fields of one name, not between names.
    @Test func fieldsAreComparedByTheirNames() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let (a, b, other) = (["-H", "X-A: 1"], ["-H", "X-A: 2"], ["-H", "X-B: 3"])
            let clients = try await shared.begin(
                4, "/wait/r", [a + b + other, other + a + b, a + other + b, b + a + other])
            try await eventually("two requests") { shared.requests("/wait/r") == 2 }
            try await shared.go("r")
            _ = try await shared.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/r") == 2)
        }
    }

    /// User agent and language matter only if Vary names them.
    @Test func someFieldsAreIgnored() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(
                4, "/wait/s", [["-A", "one", "-H", "Accept-Language: de"], ["-A", "two"], ["-0"]])
            try await shared.go("s")
            _ = try await shared.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/s") == 1)
        }
    }

    /// The origin restricts its response to one client, or to some.
    @Test(arguments: [
        "Set-Cookie=a%3Db", "Cache-Control=private", "Cache-Control=max-age%3D1%2C%20no-store", "Vary=*",
        "Vary=User-Agent%2C%20Accept",
        "Content-Type=text%2Fevent-stream",
    ])
    func aResponseForOneIsNotShared(field: String) async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(3, "/wait/c?\(field)", [["-A", "a"], ["-A", "b"], ["-A", "c"]])
            try await eventually("one request") { shared.requests("/wait/c") == 1 }
            try await shared.go("c")
            let outputs = try await shared.outputs(of: clients)
            #expect(Set(try outputs.map(Self.number)) == [1, 2, 3])
            #expect(try await shared.allRequests("/wait/c") == 3)
        }
    }

    /// The number of the request that the response answers.
    private static func number(_ output: String) throws -> Int {
        let line = try #require(output.split(separator: "\r\n").first { $0.hasPrefix("X-Number: ") })
        return try #require(Int(line.dropFirst(10)))
    }

    /// The response belonged to the client that left; no other client gets it.
    @Test(arguments: ["Set-Cookie=a%3Db", "Cache-Control=private"]) func whatWasForOneWhoLeftIsForNobody(
        field: String
    )
        async throws
    {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let path = "/wait/t?\(field)"
            var leader: RawConnection? = try await shared.reset(after: path)
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/t" }
            let clients = try await shared.begin(2, path)
            #expect(leader != nil)
            leader = nil
            try await eventually("its line") { shared.proxy.events.all("exchange").count == 1 }
            try await shared.go("t")
            let numbers = try await shared.outputs(of: clients).map(Self.number)
            #expect(Set(numbers) == [2, 3], "\(numbers)")
            #expect(try await shared.allRequests("/wait/t") == 3)
        }
    }

    /// The configuration of AFImageDownloader: each hop gets one request.
    @Test func eachHopIsShared() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(
                bed, session: "{coalesce: true, redirects: follow, follow_to: [other.test], max_active: 4}",
                others: ["other.test": "{coalesce: true, max_active: 1}"])
            let led = "http://other.test:\(shared.origin.port)/wait/u".addingPercentEncoding(
                withAllowedCharacters: .alphanumerics)!
            let clients = try await shared.begin(20, "/moved/\(led)")
            try await shared.go("moved")
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/u" }
            try await eventually("all to wait") {
                try await shared.tasks.list().filter { $0.phase == "waiting for the response" }.count >= 20
            }
            try await shared.go("u")
            for output in try await shared.outputs(of: clients) { #expect(output.hasSuffix("for */*"), "\(output)") }
            #expect(try await shared.allRequests("/moved/\(led)") == 1)
            #expect(shared.requests("/wait/u") == 1)
        }
    }

    /// Shared requests, and requests for the remaining bytes, go through the parent proxy.
    @Test func aParentIsAskedAsAProxyIs() async throws {
        try await withTestBed { bed in
            let parent = try await ProxyProcess(
                in: bed, folder: "parent", trust: nil, hosts: ["origin.test": "127.0.0.1"])
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}", upstream: ["parent: \(parent.url)"])
            let sum = try #require(try await shared.origin.events.first("ready")["sha256"])
            let (slow, fast) = try await slowAndFast(shared, "/file/n")
            #expect(fast.output.hasPrefix(sum), "\(fast)")
            #expect(slow.succeeded && slow.output.hasPrefix(sum), "\(slow)")
            _ = try await shared.allRequests("/file/n")
            // The slow client requested the remaining bytes.
            let asked = shared.origin.events.all("request").filter { $0["target"] == "/file/n" }.compactMap {
                $0["range"]
            }
            #expect(asked.count == 2 && asked[0].isEmpty && asked[1].hasPrefix("bytes="), "\(asked)")
            // The parent got nothing else.
            #expect(parent.events.all("exchange").allSatisfy { $0["status"] == "200" || $0["status"] == "206" })
        }
    }

    /// Vary names a field that is equal in all requests.
    @Test func aResponseForSomeIsSharedByThose() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(
                4, "/wait/d?Vary=accept",
                [["-H", "Accept: text/a", "-A", "one"], ["-H", "Accept: text/a", "-A", "other"]])
            try await shared.go("d")
            for output in try await shared.outputs(of: clients) { #expect(output.hasSuffix("for text/a"), "\(output)") }
            #expect(try await shared.allRequests("/wait/d") == 1)
        }
    }

    @Test func itEndsWithItsLastReaderAndNotBefore() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            var leader: RawConnection? = try await shared.reset(after: "/wait/e")
            let clients = try await shared.begin(2, "/wait/e")
            try await eventually("one request") { shared.requests("/wait/e") == 1 }
            #expect(leader != nil)
            leader = nil
            var other: RawConnection? = try await shared.reset(after: "/wait/e")
            #expect(other != nil)
            other = nil
            try await eventually("their lines") { shared.proxy.events.all("exchange").count == 2 }
            try await shared.go("e")
            for output in try await shared.outputs(of: clients) { #expect(output.hasSuffix("for */*"), "\(output)") }
            #expect(try await shared.allRequests("/wait/e") == 1)

            var last: RawConnection? = try await shared.reset(after: "/wait/f")
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/f" }
            #expect(last != nil)
            last = nil
            let line = try await shared.proxy.events.first("exchange") {
                $0["path"] == "/wait/f" && $0["client"] == nil
            }
            #expect(line["cause"] == "no reader is left", "\(line)")
        }
    }

    /// A stalled client doesn't delay the others. It gets the remaining bytes by another request.
    @Test func aSlowReaderHoldsNobodyUp() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let sum = try #require(try await shared.origin.events.first("ready")["sha256"])
            #expect(try await bed.run(["mkfifo", bed.path("gate")]).succeeded)
            let slow = try await bed.start(
                ["sh", "-c", "curl -sS \(shared.url)/file | { cat gate > gone; sha256sum; }"],
                environment: shared.proxy.clientEnvironment)
            try await eventually("its task") { try await shared.tasks.list().count == 1 }
            let run = try await bed.run(
                ["sh", "-c", "curl -sS \(shared.url)/file | sha256sum"], environment: shared.proxy.clientEnvironment)
            #expect(run.output.hasPrefix(sum), "\(run)")
            #expect(try await bed.run(["sh", "-c", "echo go > gate"]).succeeded)
            #expect(try await slow.ending() == .exited(0))
            #expect(await slow.output.text.hasPrefix(sum))
            // Whether the second client shares depends on timing; the first never requests the whole again.
            _ = try await shared.allRequests("/file")
            let asked = shared.origin.events.all("request").compactMap { $0["range"] }
            #expect(asked.count <= 3 && asked.filter(\.isEmpty).count <= 2, "\(asked)")
        }
    }

    /// The response has no length, and no validator to resume it by.
    @Test(arguments: ["chunked", "close", "length"]) func aResponseOfUnknownLengthIsShared(coding: String) async throws
    {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            // Within the distance allowed between the fastest and the slowest.
            let size = 2 << 20
            let path = "/stream/m?coding=\(coding)&size=\(size)"
            let clients = try await shared.begin(
                4, path, [["-o", "one"], ["-o", "two"], ["-0", "-o", "three"], ["-o", "four"]])
            try await shared.go("m")
            _ = try await shared.outputs(of: clients)
            let whole = try await bed.run(
                ["sh", "-c", "curl -sS '\(shared.url)\(path)' | sha256sum"], environment: shared.proxy.clientEnvironment
            )
            for name in ["one", "two", "three", "four"] {
                // Trailers follow the body.
                let sum = try await bed.run(["sh", "-c", "sed '1,/^\r$/d' \(name) | head -c \(size) | sha256sum"])
                #expect(sum.output == whole.output, "\(name)")
            }
            #expect(try await shared.allRequests("/stream/m") == 2)
        }
    }

    @Test func trailersAreShared() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(
                2, "/stream/t?coding=chunked&size=131072",
                [["-D", "one", "-o", "one.body"], ["-D", "two", "-o", "two.body"]])
            try await shared.go("t")
            _ = try await shared.outputs(of: clients)
            #expect(try await shared.allRequests("/stream/t") == 1)
            // curl writes trailers to what -D names.
            for name in ["one", "two"] { #expect(try bed.contents(name).contains("X-Sum: 12"), "\(name)") }
        }
    }

    private func result(_ name: String, _ client: ChildProcess) async throws -> Run {
        let ending = try await client.ending()
        return Run(
            arguments: [name], ending: ending, output: await client.output.text, errors: await client.errors.text)
    }

    /// Two clients share a response: one reads at once, the other waits until the first is done.
    private func slowAndFast(
        _ shared: SharedFetchBed, _ path: String, meanwhile: () async throws -> Void = {}
    ) async throws -> (slow: Run, fast: Run) {
        let bed = shared.bed
        #expect(try await bed.run(["mkfifo", bed.path("gate")]).succeeded)
        func start(_ then: String) async throws -> ChildProcess {
            try await shared.adding(1) {
                try await bed.start(
                    ["bash", "-o", "pipefail", "-c", "curl -sS '\(shared.url)\(path)' | \(then)"],
                    environment: shared.proxy.clientEnvironment)
            }
        }
        let slow = try await start("{ cat gate > gone; sha256sum; }")
        let fast = try await start("sha256sum")
        try await shared.go("n")
        let first = try await result("fast", fast)
        try await meanwhile()
        #expect(try await bed.run(["sh", "-c", "echo go > gate"]).succeeded)
        return (try await result("slow", slow), first)
    }

    /// The slow client resumes at its position, by its own request.
    @Test(arguments: ["chunked", "close", "length"]) func aSlowReaderFindsItsPlaceAgain(coding: String) async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let sum = try #require(try await shared.origin.events.first("ready")["sha256"])
            let (slow, fast) = try await slowAndFast(shared, "/stream/n?coding=\(coding)")
            #expect(fast.output.hasPrefix(sum), "\(fast)")
            #expect(slow.succeeded && slow.output.hasPrefix(sum), "\(slow)")
            #expect(try await shared.allRequests("/stream/n") == 2)
        }
    }

    /// The origin's next response differs: the two are never mixed.
    @Test(arguments: ["chunked", "close", "length"]) func aSlowReaderIsCutWhereItsPlaceIsGone(
        coding: String
    )
        async throws
    {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let (slow, fast) = try await slowAndFast(shared, "/stream/n?coding=\(coding)&fresh=1")
            #expect(fast.succeeded, "\(fast)")
            #expect(!slow.succeeded && slow.errors.contains("curl: ("), "\(slow)")
            let line = try await shared.proxy.events.first("exchange") { $0["cause"] != nil && $0["client"] != nil }
            #expect(
                line["cause"]?.contains("too slow") == true && line["cause"]?.contains("is another") == true, "\(line)")
        }
    }

    /// A request that the current policy refuses isn't repeated.
    @Test func aSlowReaderIsCutUnderANewPolicy() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            let (slow, fast) = try await slowAndFast(shared, "/stream/n?coding=chunked") {
                try bed.file("proxy/pins.yaml", "hosts:\n  - {match: origin.test, action: deny}\n")
                #expect(try await shared.proxy.reload().name == "config.reload")
            }
            #expect(fast.succeeded && !slow.succeeded, "\(slow)")
            let line = try await shared.proxy.events.first("exchange") { $0["cause"] != nil && $0["client"] != nil }
            #expect(line["cause"]?.contains("configuration has changed") == true, "\(line)")
            #expect(try await shared.allRequests("/stream/n") == 1)
        }
    }

    /// `coalesce_with`: clients with equal values of that field share.
    @Test(arguments: [
        ("authorization", "Authorization: Bearer", ["x", "x", "y"]), ("cookie", "Cookie:", ["a=b", "a=b", "a=c"]),
        ("range", "Range:", ["bytes=0-3", "bytes=0-3", "bytes=0-4"]),
    ])
    func thoseWhoSayTheSameShare(key: String, field: String, values: [String]) async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true, coalesce_with: [\(key)]}")
            let clients = try await shared.begin(3, "/wait/o", values.map { ["-H", "\(field) \($0)"] })
            try await eventually("two requests") { shared.requests("/wait/o") == 2 }
            // The other of these fields still prevents sharing.
            let other = key == "cookie" ? "Authorization: Bearer z" : "Cookie: z=z"
            let single = try await shared.begin(1, "/wait/o", [["-H", "\(field) x", "-H", other]])
            try await eventually("three requests") { shared.requests("/wait/o") == 3 }
            try await shared.go("o")
            _ = try await shared.outputs(of: clients + single)
        }
    }

    /// The connection fails: every client gets the error.
    @Test func aFailureIsEverybodys() async throws {
        try await withTestBed { bed in
            let shared = try await SharedFetchBed(bed, session: "{coalesce: true}")
            shared.origin.process.send(signal: SIGKILL)
            _ = try await shared.origin.process.ending()
            let runs = try await [shared.curl("/wait/g"), shared.curl("/wait/g")]
            for run in runs { #expect(run.output.hasPrefix("HTTP/1.1 502 "), "\(run)") }
            let line = try await shared.proxy.events.first("exchange") { $0["shared"] != nil }
            #expect(line["error"] == "connection_refused", "\(line)")
        }
    }
}
