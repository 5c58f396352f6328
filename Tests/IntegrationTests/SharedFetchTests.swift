import Foundation
import Testing

/// `session.coalesce`: identical requests in flight are made once, whoever of many clients and workers asks.
@Suite(.timeLimit(.minutes(5)))
struct SharedFetchTests {
    /// A plain origin that answers when the test says so.
    struct Bed {
        let bed: TestBed
        let proxy: ProxyProcess
        let origin: PythonPeer
        let tasks: TaskControl
        let url: String

        /// - Parameter others: the session rules of other names of the origin.
        init(
            _ bed: TestBed, session: String, workers: Int = 2, others: [String: String] = [:], upstream: [String] = [],
            sections: ProxyProcess.Sections = [:]
        ) async throws {
            self.bed = bed
            origin = try await PythonPeer(in: bed, script: "sharing_origin.py")
            let entries = others.merging(["origin.test": session]) { $1 }
            let pins = "hosts:\n" + entries.map { "  - {match: \($0), pinning: none, session: \($1)}\n" }.joined()
            proxy = try await ProxyProcess(
                in: bed, pins: pins, trust: nil, hosts: entries.mapValues { _ in "127.0.0.1" },
                sections: sections.merging(["proxy": ["workers: \(workers)"], "upstream": upstream]) { $1 })
            tasks = TaskControl(bed: bed, proxy: proxy)
            url = "http://origin.test:\(origin.port)"
        }

        func curl(_ path: String, _ arguments: String...) async throws -> Run {
            try await bed.curl(via: proxy, ["-i"] + arguments + [url + path])
        }

        /// Clients that ask at one time: started, and known to the proxy.
        func begin(_ count: Int, _ path: String, _ arguments: [[String]] = []) async throws -> [ChildProcess] {
            let before = try await tasks.list().count
            var clients: [ChildProcess] = []
            for index in 0..<count {
                let more = arguments.isEmpty ? [] : arguments[index % arguments.count]
                clients.append(
                    try await bed.start(["curl", "-sS", "-i"] + more + [url + path], environment: proxy.clientEnvironment))
            }
            try await eventually("\(count) tasks") { try await tasks.list().count == before + count }
            return clients
        }

        /// A client that asks, and ends with a reset.
        func reset(after path: String) async throws -> RawConnection {
            let count = try await tasks.list().count
            let client = try RawConnection(to: proxy)
            try await client.resetOnClose()
            try await client.send("GET \(url)\(path) HTTP/1.1\r\nHost: origin.test:\(origin.port)\r\nAccept: */*\r\n\r\n")
            try await eventually("its task") { try await tasks.list().count == count + 1 }
            return client
        }

        /// Lets the origin answer.
        func go(_ key: String) async throws {
            let connection = try RawConnection(port: origin.port)
            try await connection.send("POST /go/\(key) HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            _ = try await connection.response()
        }

        /// Those until now, also those that the origin has had and not told of yet.
        func allRequests(_ path: String) async throws -> Int {
            let mark = UUID().uuidString
            try await go(mark)
            _ = try await origin.events.first("go") { $0["key"] == mark }
            return requests(path)
        }

        func requests(_ path: String) -> Int { origin.events.all("request").filter { $0["target"] == path }.count }
    }

    private static func outputs(of clients: [ChildProcess]) async throws -> [String] {
        var outputs: [String] = []
        for client in clients {
            #expect(try await client.ending() == .exited(0))
            outputs.append(await client.output.text)
        }
        return outputs
    }

    @Test func fortyClientsCostOneRequest() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(40, "/wait/a")
            try await shared.go("a")
            for output in try await Self.outputs(of: clients) {
                #expect(output.hasPrefix("HTTP/1.1 200 OK\r\n") && output.hasSuffix("\r\n\r\nfor */*"), "\(output)")
            }
            #expect(try await shared.allRequests("/wait/a") == 1)
            // Each says whose response it had.
            try await eventually("41 lines") { shared.proxy.events.all("exchange").count == 41 }
            let lines = shared.proxy.events.all("exchange")
            let shares = Set(lines.compactMap { $0["shared"] })
            #expect(shares.count == 1 && lines.filter { $0["shared"] != nil }.count == 40)
            #expect(lines.first { $0["client"] == nil }?["task"] == shares.first)
            // Afterwards it is made again.
            #expect(try await shared.curl("/wait/a").succeeded)
            #expect(try await shared.allRequests("/wait/a") == 2)
        }
    }

    /// What says who asks, or from when, is asked for by each.
    @Test(arguments: [
        ["-H", "Cookie: a=b"], ["-H", "Authorization: Bearer x"], ["-r", "0-3"], ["-H", "Cache-Control: no-cache"],
        ["-H", "If-None-Match: \"x\""], ["-X", "POST", "-d", "x"],
    ])
    func aRequestForOneIsItsOwn(arguments: [String]) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            if arguments.first == "-X" {
                for _ in 0..<3 { _ = try await shared.curl("/go/none", "-X", "POST", "-d", "x") }
                #expect(shared.proxy.events.all("exchange").allSatisfy { $0["shared"] == nil })
                return
            }
            let clients = try await shared.begin(3, "/wait/b", [arguments])
            try await eventually("three requests") { shared.requests("/wait/b") == 3 }
            try await shared.go("b")
            _ = try await Self.outputs(of: clients)
        }
    }

    /// An origin may go by any field, whether it says so or not.
    @Test(arguments: [
        "X-Api-Key", "X-Original-URL", "X-HTTP-Method-Override", "Accept", "Accept-Encoding", "Accept-Charset", "X-Forwarded-For", "Forwarded",
        "X-Anything", "Referer", "Origin", "From", "Via", "DNT",
    ])
    func requestsThatSayOtherThingsAreOthers(name: String) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(
                4, "/wait/q", [["-H", "\(name): one"], ["-H", "\(name.uppercased()): one"], ["-H", "\(name): two"], ["-H", "\(name):"]])
            try await eventually("three requests") { shared.requests("/wait/q") == 3 }
            try await shared.go("q")
            _ = try await Self.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/q") == 3)
        }
    }

    /// Unicode's two spellings of one character are two keys.
    @Test func valuesThatLookAlikeAreOthers() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(3, "/wait/l", [["-H", "X-Key: \u{E9}"], ["-H", "X-Key: e\u{301}"], ["-H", "X-Key: \u{E9}"]])
            try await eventually("two requests") { shared.requests("/wait/l") == 2 }
            try await shared.go("l")
            _ = try await Self.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/l") == 2)
        }
    }

    /// The order of fields of one name counts, that of others doesn't.
    @Test func fieldsAreComparedByTheirNames() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let (a, b, other) = (["-H", "X-A: 1"], ["-H", "X-A: 2"], ["-H", "X-B: 3"])
            let clients = try await shared.begin(4, "/wait/r", [a + b + other, other + a + b, a + other + b, b + a + other])
            try await eventually("two requests") { shared.requests("/wait/r") == 2 }
            try await shared.go("r")
            _ = try await Self.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/r") == 2)
        }
    }

    /// What program asks, and for which language, chooses a response only where Vary says so.
    @Test func someFieldsAreIgnored() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(4, "/wait/s", [["-A", "one", "-H", "Accept-Language: de"], ["-A", "two"], ["-0"]])
            try await shared.go("s")
            _ = try await Self.outputs(of: clients)
            #expect(try await shared.allRequests("/wait/s") == 1)
        }
    }

    /// The origin says that its answer is for one, or for some.
    @Test(arguments: [
        "Set-Cookie=a%3Db", "Cache-Control=private", "Cache-Control=max-age%3D1%2C%20no-store", "Vary=*", "Vary=User-Agent%2C%20Accept",
        "Content-Type=text%2Fevent-stream",
    ])
    func aResponseForOneIsNotShared(field: String) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(3, "/wait/c?\(field)", [["-A", "a"], ["-A", "b"], ["-A", "c"]])
            try await eventually("one request") { shared.requests("/wait/c") == 1 }
            try await shared.go("c")
            let outputs = try await Self.outputs(of: clients)
            #expect(Set(try outputs.map(Self.number)) == [1, 2, 3])
            #expect(try await shared.allRequests("/wait/c") == 3)
        }
    }

    /// The number of the request that the response answers.
    private static func number(_ output: String) throws -> Int {
        let line = try #require(output.split(separator: "\r\n").first { $0.hasPrefix("X-Number: ") })
        return try #require(Int(line.dropFirst(10)))
    }

    /// It was for the one who has left, and for nobody else.
    @Test(arguments: ["Set-Cookie=a%3Db", "Cache-Control=private"]) func whatWasForOneWhoLeftIsForNobody(field: String) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let path = "/wait/t?\(field)"
            var leader: RawConnection? = try await shared.reset(after: path)
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/t" }
            let clients = try await shared.begin(2, path)
            #expect(leader != nil)
            leader = nil
            try await eventually("its line") { shared.proxy.events.all("exchange").count == 1 }
            try await shared.go("t")
            let numbers = try await Self.outputs(of: clients).map(Self.number)
            #expect(Set(numbers) == [2, 3], "\(numbers)")
            #expect(try await shared.allRequests("/wait/t") == 3)
        }
    }

    /// As AFImageDownloader is set up: each place is asked once.
    @Test func eachHopIsShared() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(
                bed, session: "{coalesce: true, redirects: follow, follow_to: [other.test], max_active: 4}",
                others: ["other.test": "{coalesce: true, max_active: 1}"])
            let led = "http://other.test:\(shared.origin.port)/wait/u".addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
            let clients = try await shared.begin(20, "/moved/\(led)")
            try await shared.go("moved")
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/u" }
            try await eventually("all to wait") { try await shared.tasks.list().filter { $0.phase == "waiting for the response" }.count >= 20 }
            try await shared.go("u")
            for output in try await Self.outputs(of: clients) { #expect(output.hasSuffix("for */*"), "\(output)") }
            #expect(try await shared.allRequests("/moved/\(led)") == 1)
            #expect(shared.requests("/wait/u") == 1)
        }
    }

    /// The turn is one with the host that is asked now.
    @Test func turnsAreTakenAtEachHop() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(
                bed, session: "{redirects: follow, follow_to: [other.test], max_active: 4}", others: ["other.test": "{max_active: 1}"])
            var clients: [ChildProcess] = []
            for number in 1...3 {
                let led = "http://other.test:\(shared.origin.port)/wait/v\(number)".addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
                clients += try await shared.begin(1, "/moved/\(led)")
            }
            try await shared.go("moved")
            try await eventually("two to wait") { try await shared.tasks.list().filter { $0.phase == "waiting for its turn" }.count == 2 }
            func asked() -> Int { (1...3).reduce(0) { $0 + shared.requests("/wait/v\($1)") } }
            #expect(asked() == 1)
            // The first host has its turns back.
            let free = try await shared.begin(4, "/wait/w")
            try await eventually("four requests") { shared.requests("/wait/w") == 4 }
            for number in 1...3 { try await shared.go("v\(number)") }
            try await shared.go("w")
            _ = try await Self.outputs(of: clients + free)
            #expect(asked() == 3)
        }
    }

    /// Whoever can't share takes a turn of his own.
    @Test func turnsAreTakenByThoseWhoLeaveASharedResponse() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true, max_active: 1}")
            let clients = try await shared.begin(3, "/wait/x?Cache-Control=private")
            try await eventually("one request") { shared.requests("/wait/x") == 1 }
            let blocker = try await shared.begin(1, "/wait/y")
            #expect(shared.requests("/wait/y") == 0)
            try await shared.go("x")
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/y" }
            // Two of the three are asked for again, and wait for that one.
            try await eventually("two to wait") {
                try await shared.tasks.list().filter { $0.path == "/wait/x" && $0.phase == "waiting for its turn" }.count == 2
            }
            #expect(try await shared.allRequests("/wait/x") == 1)
            try await shared.go("y")
            _ = try await Self.outputs(of: clients + blocker)
            #expect(try await shared.allRequests("/wait/x") == 3)
        }
    }

    /// What is shared, and what is asked for again, goes to a parent proxy as its clients ask.
    @Test func aParentIsAskedAsAProxyIs() async throws {
        try await withTestBed { bed in
            let parent = try await ProxyProcess(in: bed, folder: "parent", trust: nil, hosts: ["origin.test": "127.0.0.1"])
            let shared = try await Bed(bed, session: "{coalesce: true}", upstream: ["parent: \(parent.url)"])
            let sum = try #require(try await shared.origin.events.first("ready")["sha256"])
            let (slow, fast) = try await slowAndFast(shared, "/file/n")
            #expect(fast.output.hasPrefix(sum), "\(fast)")
            #expect(slow.succeeded && slow.output.hasPrefix(sum), "\(slow)")
            _ = try await shared.allRequests("/file/n")
            // The slow one asked for the rest.
            let asked = shared.origin.events.all("request").filter { $0["target"] == "/file/n" }.compactMap { $0["range"] }
            #expect(asked.count == 2 && asked[0].isEmpty && asked[1].hasPrefix("bytes="), "\(asked)")
            // Nothing else came to it.
            #expect(parent.events.all("exchange").allSatisfy { $0["status"] == "200" || $0["status"] == "206" })
        }
    }

    /// By Vary they are the same.
    @Test func aResponseForSomeIsSharedByThose() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let clients = try await shared.begin(
                4, "/wait/d?Vary=accept", [["-H", "Accept: text/a", "-A", "one"], ["-H", "Accept: text/a", "-A", "other"]])
            try await shared.go("d")
            for output in try await Self.outputs(of: clients) { #expect(output.hasSuffix("for text/a"), "\(output)") }
            #expect(try await shared.allRequests("/wait/d") == 1)
        }
    }

    @Test func itEndsWithItsLastReaderAndNotBefore() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
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
            for output in try await Self.outputs(of: clients) { #expect(output.hasSuffix("for */*"), "\(output)") }
            #expect(try await shared.allRequests("/wait/e") == 1)

            var last: RawConnection? = try await shared.reset(after: "/wait/f")
            _ = try await shared.origin.events.first("request") { $0["target"] == "/wait/f" }
            #expect(last != nil)
            last = nil
            let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/wait/f" && $0["client"] == nil }
            #expect(line["cause"] == "nobody waits for it any more", "\(line)")
        }
    }

    /// A reader that stands still gets all the same what the others had long before, by a request of its own for the rest.
    @Test func aSlowReaderHoldsNobodyUp() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
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
            // Whether the second came in time to share is chance; the first never was asked for whole again.
            _ = try await shared.allRequests("/file")
            let asked = shared.origin.events.all("request").compactMap { $0["range"] }
            #expect(asked.count <= 3 && asked.filter(\.isEmpty).count <= 2, "\(asked)")
        }
    }

    /// Without a length, or anything to continue it by.
    @Test(arguments: ["chunked", "close", "length"]) func aResponseOfUnknownLengthIsShared(coding: String) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            // No more than may be between the fastest and the slowest.
            let size = 2 << 20
            let path = "/stream/m?coding=\(coding)&size=\(size)"
            let clients = try await shared.begin(4, path, [["-o", "one"], ["-o", "two"], ["-0", "-o", "three"], ["-o", "four"]])
            try await shared.go("m")
            _ = try await Self.outputs(of: clients)
            let whole = try await bed.run(
                ["sh", "-c", "curl -sS '\(shared.url)\(path)' | sha256sum"], environment: shared.proxy.clientEnvironment)
            for name in ["one", "two", "three", "four"] {
                let sum = try await bed.run(["sh", "-c", "sed '1,/^\r$/d' \(name) | sha256sum"])
                #expect(sum.output == whole.output, "\(name)")
            }
            #expect(try await shared.allRequests("/stream/m") == 2)
        }
    }

    private func result(_ name: String, _ client: ChildProcess) async throws -> Run {
        let ending = try await client.ending()
        return Run(arguments: [name], ending: ending, output: await client.output.text, errors: await client.errors.text)
    }

    /// One that shares such a response with a faster one, and stands still until it is told to go on.
    private func slowAndFast(
        _ shared: Bed, _ path: String, meanwhile: () async throws -> Void = {}
    ) async throws -> (slow: Run, fast: Run) {
        let bed = shared.bed
        #expect(try await bed.run(["mkfifo", bed.path("gate")]).succeeded)
        func start(_ then: String) async throws -> ChildProcess {
            let count = try await shared.tasks.list().count
            let client = try await bed.start(
                ["bash", "-o", "pipefail", "-c", "curl -sS '\(shared.url)\(path)' | \(then)"],
                environment: shared.proxy.clientEnvironment)
            try await eventually("its task") { try await shared.tasks.list().count == count + 1 }
            return client
        }
        let slow = try await start("{ cat gate > gone; sha256sum; }")
        let fast = try await start("sha256sum")
        try await shared.go("n")
        let first = try await result("fast", fast)
        try await meanwhile()
        #expect(try await bed.run(["sh", "-c", "echo go > gate"]).succeeded)
        return (try await result("slow", slow), first)
    }

    /// The slow one goes on by a request of its own, from where it was.
    @Test(arguments: ["chunked", "close", "length"]) func aSlowReaderFindsItsPlaceAgain(coding: String) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let sum = try #require(try await shared.origin.events.first("ready")["sha256"])
            let (slow, fast) = try await slowAndFast(shared, "/stream/n?coding=\(coding)")
            #expect(fast.output.hasPrefix(sum), "\(fast)")
            #expect(slow.succeeded && slow.output.hasPrefix(sum), "\(slow)")
            #expect(try await shared.allRequests("/stream/n") == 2)
        }
    }

    /// The origin's next response is another: no mixture of both passes for one.
    @Test(arguments: ["chunked", "close", "length"]) func aSlowReaderIsCutWhereItsPlaceIsGone(coding: String) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            let (slow, fast) = try await slowAndFast(shared, "/stream/n?coding=\(coding)&fresh=1")
            #expect(fast.succeeded, "\(fast)")
            #expect(!slow.succeeded && slow.errors.contains("curl: ("), "\(slow)")
            let line = try await shared.proxy.events.first("exchange") { $0["cause"] != nil && $0["client"] != nil }
            #expect(line["cause"]?.contains("too slow") == true && line["cause"]?.contains("is another") == true, "\(line)")
        }
    }

    /// What the policy in force refuses isn't asked for again.
    @Test func aSlowReaderIsCutUnderANewPolicy() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
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

    /// `coalesce_with`: those who say the same of themselves share.
    @Test(arguments: [
        ("authorization", "Authorization: Bearer", ["x", "x", "y"]), ("cookie", "Cookie:", ["a=b", "a=b", "a=c"]),
        ("range", "Range:", ["bytes=0-3", "bytes=0-3", "bytes=0-4"]),
    ])
    func thoseWhoSayTheSameShare(key: String, field: String, values: [String]) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true, coalesce_with: [\(key)]}")
            let clients = try await shared.begin(3, "/wait/o", values.map { ["-H", "\(field) \($0)"] })
            try await eventually("two requests") { shared.requests("/wait/o") == 2 }
            // Another of these fields still keeps a request to itself.
            let other = key == "cookie" ? "Authorization: Bearer z" : "Cookie: z=z"
            let single = try await shared.begin(1, "/wait/o", [["-H", "\(field) x", "-H", other]])
            try await eventually("three requests") { shared.requests("/wait/o") == 3 }
            try await shared.go("o")
            _ = try await Self.outputs(of: clients + single)
        }
    }

    /// Nobody can be connected to: each is told.
    @Test func aFailureIsEverybodys() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{coalesce: true}")
            shared.origin.process.send(signal: SIGKILL)
            _ = try await shared.origin.process.ending()
            let runs = try await [shared.curl("/wait/g"), shared.curl("/wait/g")]
            for run in runs { #expect(run.output.hasPrefix("HTTP/1.1 502 "), "\(run)") }
            let line = try await shared.proxy.events.first("exchange") { $0["shared"] != nil }
            #expect(line["error"] == "connection_refused", "\(line)")
        }
    }

    // MARK: Turns

    private static func order(_ shared: Bed) -> [String] {
        shared.origin.events.all("request").compactMap { $0["target"] }.filter { $0 != "/wait/first" }
    }

    @Test(arguments: ["fifo", "lifo"]) func turnsAreTakenInTheirOrder(order: String) async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{max_active: 1, order: \(order)}")
            var clients = [
                try await bed.start(["curl", "-sS", shared.url + "/wait/first"], environment: shared.proxy.clientEnvironment)
            ]
            _ = try await shared.origin.events.first("request")
            for key in ["1", "2", "3"] {
                clients.append(
                    try await bed.start(["curl", "-sS", shared.url + "/wait/" + key], environment: shared.proxy.clientEnvironment))
                try await eventually("its wait") {
                    try await shared.tasks.list().filter { $0.phase == "waiting for its turn" }.count == Int(key)
                }
                try await shared.go(key)
            }
            #expect(shared.origin.events.all("request").count == 1)
            try await shared.go("first")
            _ = try await Self.outputs(of: clients)
            try await eventually("all requests") { Self.order(shared).count == 3 }
            #expect(Self.order(shared) == (order == "fifo" ? ["/wait/1", "/wait/2", "/wait/3"] : ["/wait/3", "/wait/2", "/wait/1"]))
        }
    }

    /// Who waited is not let through by what the policy was.
    @Test func aTurnIsNotTakenUnderAnOldPolicy() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{max_active: 1}")
            let clients = try await shared.begin(2, "/wait/k")
            try await eventually("one request") { shared.requests("/wait/k") == 1 }
            try bed.file("proxy/pins.yaml", "hosts:\n  - {match: origin.test, action: deny}\n")
            #expect(try await shared.proxy.reload().name == "config.reload")
            try await shared.go("k")
            let outputs = try await Self.outputs(of: clients).sorted()
            #expect(outputs[0].hasPrefix("HTTP/1.1 200 "), "\(outputs)")
            #expect(outputs[1].hasPrefix("HTTP/1.1 503 ") && outputs[1].contains("configuration has changed"), "\(outputs)")
            #expect(try await shared.allRequests("/wait/k") == 1)
        }
    }

    /// Whoever waits and goes takes nobody's turn; whoever has one and goes gives it on.
    @Test func aTurnIsNotLost() async throws {
        try await withTestBed { bed in
            let shared = try await Bed(bed, session: "{max_active: 2}")
            let clients = try await shared.begin(6, "/wait/h")
            try await eventually("two requests") { shared.requests("/wait/h") == 2 }
            let waiting = try await shared.tasks.list().filter { $0.phase == "waiting for its turn" }
            #expect(waiting.count == 4)
            for task in waiting.prefix(2) { #expect(try await shared.tasks.ask("POST", "/tasks/\(task.id)/cancel").status == 200) }
            let running = try await shared.tasks.list().filter { $0.phase != "waiting for its turn" }
            for task in running { #expect(try await shared.tasks.ask("POST", "/tasks/\(task.id)/cancel").status == 200) }
            try await eventually("two more") { shared.requests("/wait/h") == 4 }
            try await shared.go("h")
            for client in clients { _ = try await client.ending() }
            try await eventually("all lines") { shared.proxy.events.all("exchange").count == 6 }
            #expect(shared.proxy.events.all("exchange").filter { $0["status"] == "200" }.count == 2)
            #expect(try await shared.curl("/wait/h").output.hasPrefix("HTTP/1.1 200 "))
        }
    }
}
