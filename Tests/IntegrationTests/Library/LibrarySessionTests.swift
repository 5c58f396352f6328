import Foundation
import PinnedSession
import PinproxySecurity
import PinproxySerialization
import Testing

/// Requests of a Swift program: what comes back, whom they go to, and what they are refused for.
@Suite(.timeLimit(.minutes(5)))
struct LibrarySessionTests {
    @Test func aResponseHasItsBodyItsFieldsAndItsMetrics() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            var request = try HTTPRequest(bed.url + "/echo?x=1#part", method: "POST", body: .text("hello"))
            try request.set("X-Mine", "1")
            try request.set("X-Mine", "2")
            let (body, response) = try await session.data(for: request)
            let echo = try Echo(body)
            #expect((echo.method, echo.target, echo.length) == ("POST", "/echo?x=1", 5))
            #expect(echo.field("x-mine") == "2" && echo.field("host") == "api.localhost:\(bed.origin.port)")
            #expect(echo.field("user-agent") == "pinproxy" && echo.field("connection") == nil)
            #expect(
                response.status == 200 && response["content-TYPE"] == "application/json" && response["nothing"] == nil)
            #expect(response.url == bed.url + "/echo?x=1" && response.pinning == .unpinned)
            let first = try #require(response.metrics.transactions.first)
            #expect(response.metrics.transactions.count == 1 && !first.isReused)
            #expect(first.remoteAddress.hasSuffix(":\(bed.origin.port)") && first.networkProtocol == "http/1.1")
            let (sent, answered, ended) = try (
                #require(first.requestSent), #require(first.firstByte), #require(first.ended)
            )
            #expect(first.connect != nil && first.tls != nil && sent <= answered && answered <= ended)
            #expect(ended <= response.metrics.duration)
            // The connection serves again.
            let again = try await session.data(for: HTTPRequest(bed.url + "/echo")).response.metrics.transactions
            #expect(again.map(\.isReused) == [true] && again.first?.tls == nil)
        }
    }

    @Test func aSerializerShapesTheRequestAndJudgesTheResponse() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.baseURL = bed.url + "/v1" }
            var request = try HTTPRequest("echo/users", method: "POST")
            try request.set(["name": "x"], by: JSONRequestSerializer())
            let (value, _) = try await session.value(for: request, by: JSONResponseSerializer())
            #expect(value?["target"] == .string("/v1/echo/users") && value?["length"] == .number("12"))
            let gzip: [UInt8] = [
                31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 74, 84, 178, 138, 54, 212, 49, 138, 173, 5, 0, 132, 219, 214,
                23, 11, 0, 0, 0,
            ]
            let coded =
                """
                HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: \
                \(gzip.count)\r\n\r\n
                """
            let path = "/answer/x/" + RuleBed.encoded(Array(coded.utf8) + gzip)
            let array = try await session.value(for: HTTPRequest(path), by: JSONResponseSerializer()).value
            #expect(array?["a"] == .array([.number("1"), .number("2")]))
            let refused = await failure {
                let missing = encoded("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
                _ = try await session.value(for: HTTPRequest("/answer/x/" + missing), by: JSONResponseSerializer())
            }
            guard case .unacceptable(let error)? = refused else { return note("\(String(describing: refused))") }
            #expect(error.code.rawValue == -1011 && refused?.code == -1011)
        }
    }

    @Test func pinsDecideBeforeARequestIsSent() async throws {
        try await withLibraryBed { bed in
            let right = try await bed.leaf.pin(bed.bed)
            let wrong = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
            func session(_ pin: String, _ enforcement: Enforcement = .enforce) throws -> SessionManager {
                let policy = SecurityPolicy(
                    mode: .publicKey, pins: PinSet([try Pin(text: pin, for: .publicKey)]), enforcement: enforcement)
                return try bed.session(hosts: [HostRule(try HostPattern("api.localhost"), policy: policy)])
            }
            let accepted = try await session(right).data(for: HTTPRequest(bed.url + "/right")).response
            #expect(accepted.pinning == .matched(pin: right))

            let refused = await failure {
                _ = try await session(wrong).data(for: HTTPRequest(bed.url + "/wrong?token=1"))
            }
            guard case .pinMismatch(let mismatch)? = refused else { return note("\(String(describing: refused))") }
            #expect(mismatch.host == "api.localhost" && mismatch.presentedPins.first == right)
            #expect(mismatch.configuredPins == [wrong] && refused?.code == -1202)
            #expect("\(mismatch)".contains(right) && !"\(mismatch)".contains("token"))

            let reported = try await session(wrong, .report).data(for: HTTPRequest(bed.url + "/reported")).response
            guard case .reported(let report) = reported.pinning else { return note("\(reported.pinning)") }
            #expect(report.presentedPins.first == right)
            // The pattern says nothing of the other host.
            let other = try await session(wrong).data(for: HTTPRequest(bed.otherURL + "/other")).response
            #expect(other.pinning == .unpinned)
            #expect(
                try await !bed.targets().contains { $0.hasPrefix("/wrong") },
                "a request was sent to a server that no pin matches")
        }
    }

    @Test func whatIsNotTrustedIsRefused() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.trust = .system }
            let refused = await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/")) }
            guard case .untrusted(let text)? = refused else { return note("\(String(describing: refused))") }
            #expect(text.contains("api.localhost"))
            // 127.0.0.1 isn't among the certificate's names.
            let trusting = try bed.session()
            let renamed = await failure {
                _ = try await trusting.data(for: HTTPRequest("https://127.0.0.1:\(bed.origin.port)/"))
            }
            guard case .untrusted? = renamed else { return note("\(String(describing: renamed))") }
            #expect(try await bed.targets().isEmpty)
        }
    }

    @Test func plainHTTPIsForHostsWithoutPins() async throws {
        try await withTestBed { bed in
            let plain = try await PythonPeer.origin(in: bed, chain: nil)
            let pin = try Pin(text: "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", for: .publicKey)
            var configuration = SessionConfiguration()
            configuration.hosts = [
                HostRule(
                    try HostPattern("pinned.localhost"), policy: SecurityPolicy(mode: .publicKey, pins: PinSet([pin])))
            ]
            let session = try SessionManager(configuration: configuration)
            let (body, response) = try await session.data(
                for: HTTPRequest("http://api.localhost:\(plain.port)/until-close/5"))
            #expect(body == Array("xxxxx".utf8) && response.pinning == .insecure)
            let error = await failure {
                _ = try await session.data(for: HTTPRequest("http://pinned.localhost:\(plain.port)/"))
            }
            guard case .plainToPinnedHost? = error else { return note("\(String(describing: error))") }
            configuration.baseURL = "http://pinned.localhost:\(plain.port)"
            #expect(throws: SessionError.self) { try SessionManager(configuration: configuration) }
        }
    }

    @Test func aConfigurationThatCannotHoldIsRefused() async throws {
        func refusal(_ change: (inout SessionConfiguration) throws -> Void) throws -> String {
            var configuration = SessionConfiguration()
            try change(&configuration)
            do {
                _ = try SessionManager(configuration: configuration)
                return "accepted"
            } catch { return "\(error)" }
        }
        #expect(try refusal { $0.trust = .files(["/nowhere.pem"]) }.hasPrefix("trust: /nowhere.pem: "))
        #expect(try refusal { $0.baseURL = "api.example.com" }.hasPrefix("baseURL: the URL has no scheme"))
        #expect(try refusal { $0.baseURL = "ftp://a.test" }.contains("only http and https"))
        #expect(try refusal { $0.proxy = ProxyServer(host: "a b", port: 1) }.hasPrefix("proxy: "))
        #expect(try refusal { $0.userAgent = "a\r\nb: c" }.hasPrefix("userAgent: "))
        let rule = HostRule(try HostPattern("a.test"))
        #expect(try refusal { $0.hosts = [rule, rule] } == "a.test has two rules: write one")
        let contradiction = HostRule(try HostPattern("a.test"), policy: SecurityPolicy(mode: .publicKey))
        #expect(try refusal { $0.hosts = [contradiction] }.contains("there are no pins"))
    }

    @Test(arguments: [
        "", "api.localhost", "/path", "ftp://a.localhost/", "https://", "https://user:pa55@a.localhost/?pa55",
        "https://a.localhost/\u{1}", "https://a b.localhost/", "https://a.localhost:99999/",
    ])
    func aRequestThatCannotBeSentFails(_ url: String) async throws {
        let session = try SessionManager()
        let error = await failure { _ = try await session.data(for: HTTPRequest(url)) }
        guard case .invalidRequest(let text)? = error else { return note("\(String(describing: error))") }
        #expect(!text.contains("pa55"))
    }

    @Test func whatBelongsToTheConnectionCannotBeSet() throws {
        var request = try HTTPRequest("https://a.test/?secret=1")
        for name in ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Upgrade", "a b", ""] {
            #expect(throws: SessionError.self) { try request.set(name, "x") }
        }
        #expect(throws: SessionError.self) { try request.set("X", "a\r\nB: c") }
        #expect(throws: SessionError.self) { try HTTPRequest("https://a.test/", method: "CONNECT") }
        try request.set("Authorization", "Bearer pa55", isSecret: true)
        #expect(!"\(request)".contains("secret=1") && !"\(request.fields)".contains("pa55"))
    }

    @Test func whatCannotBeReachedSaysWhy() async throws {
        let session = try SessionManager()
        let port = try ReservedPort()
        let refused = await failure { _ = try await session.data(for: HTTPRequest("http://127.0.0.1:\(port.number)/")) }
        guard case .cannotConnect? = refused else { return note("\(String(describing: refused))") }
        let metadata = await failure { _ = try await session.data(for: HTTPRequest("http://169.254.169.254/")) }
        guard case .cannotConnect? = metadata else { return note("\(String(describing: metadata))") }
    }

    @Test func whoDoesNotAnswerIsNotWaitedForForever() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.responseTimeout = .milliseconds(100) }
            let error = await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/silent/")) }
            guard case .timedOut(let text)? = error else { return note("\(String(describing: error))") }
            #expect(text.contains("responseTimeout") && error?.code == -1001)
        }
    }

    /// A request's own timeout, for a server that doesn't answer and for one that stops in the middle.
    @Test(arguments: ["/silent/", "/held-gone/it"]) func aRequestHasATimeout(of its: String) async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            var request = try HTTPRequest(bed.url + its)
            request.timeout = .milliseconds(100)
            let error = await failure { _ = try await session.data(for: request) }
            guard case .timedOut(let text)? = error else { return note("\(String(describing: error))") }
            #expect(text.contains("0.1 seconds") && error?.code == -1001, "\(text)")
            var patient = try HTTPRequest(bed.url + "/echo")
            patient.timeout = .seconds(Int64.max)
            #expect(try await session.data(for: patient).response.status == 200)
            // Others keep the session's.
            #expect(try await session.data(for: HTTPRequest(bed.url + "/echo")).response.status == 200)
        }
    }

    @Test func aProxyIsTunnelledThroughAndItsCredentialsStayWithIt() async throws {
        try await withLibraryBed { bed in
            let parent = try await PythonPeer(in: bed.bed, script: "parent.py")
            let credentials = try Credentials(user: "ann", password: Secret("pa55"))
            let session = try bed.session {
                $0.proxy = ProxyServer(host: "127.0.0.1", port: parent.port, credentials: credentials)
            }
            // This machine's own names don't go through it.
            _ = try await session.data(for: HTTPRequest(bed.url + "/direct"))
            #expect(parent.events.all("connect").isEmpty)
            let error = await failure {
                _ = try await session.data(for: HTTPRequest("https://127.0.0.1:\(bed.origin.port)/through"))
            }
            // 127.0.0.1 isn't among the certificate's names; the tunnel was made.
            guard case .untrusted? = error else { return note("\(String(describing: error))") }
            let connect = try await parent.events.first("connect")
            #expect(connect["lines"]?.contains("Proxy-Authorization: Basic YW5uOnBhNTU=") == true, "\(connect)")
            #expect(!"\(session) \(credentials) \(String(describing: error))".contains("pa55"))
        }
    }

    /// Complete bodies belong to the program; failed ones have been released.
    @Test func bodiesThatAreCollectedAtOneTimeAreLimitedTogether() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.maximumBodiesLength = 1 << 20 }
            func length(_ count: Int) async throws -> Int {
                try await session.data(for: HTTPRequest(bed.url + "/large/\(count)")).body.count
            }
            for _ in 0..<5 {
                #expect(try await length(900_000) == 900_000)
                let error = await failure { _ = try await length(1_100_000) }
                guard case .bodiesTooLong(let limit)? = error else { return note("\(String(describing: error))") }
                #expect(limit == 1 << 20 && error?.code == -1103)
                #expect(error?.description.contains("maximumBodiesLength") == true)
            }
            let path = bed.bed.path("got")
            #expect(try await session.download(for: HTTPRequest(bed.url + "/large/3000000"), to: path).status == 200)
        }
    }

    @Test func responsesThatAreNotWholeFail() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.maximumBodyLength = 1000 }
            for path in ["/truncated/length", "/truncated/chunked", "/truncated/close", "/truncated/head", "/die"] {
                let error = await failure { _ = try await session.data(for: HTTPRequest(bed.url + path)) }
                guard case .connectionLost? = error else {
                    Issue.record("\(path): \(String(describing: error))")
                    continue
                }
            }
            let raw = bed.url + "/raw/" + encoded("HTP/1.1 200 OK\r\n\r\n")
            let malformed = await failure { _ = try await session.data(for: HTTPRequest(raw)) }
            guard case .badResponse? = malformed else { return note("\(String(describing: malformed))") }
            for path in ["/large/1001", "/endless/", "/array/a/chunked/2000"] {
                let error = await failure { _ = try await session.data(for: HTTPRequest(bed.url + path)) }
                guard case .bodyTooLong(limit: 1000)? = error else {
                    Issue.record("\(path): \(String(describing: error))")
                    continue
                }
            }
            #expect(try await session.data(for: HTTPRequest(bed.url + "/large/1000")).body.count == 1000)
            #expect(try await session.data(for: HTTPRequest(bed.url + "/chunked")).body == Array("hello, world".utf8))
            #expect(try await session.data(for: HTTPRequest(bed.url + "/hints")).body == Array("hinted\n".utf8))
            let head = try await session.data(for: HTTPRequest(bed.url + "/head-length", method: "HEAD"))
            #expect(head.body.isEmpty && head.response["content-length"] == "1234")
        }
    }

    @Test func aHundredRequestsAtOnce() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let lengths = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        let body = [UInt8](repeating: UInt8(number), count: number * 100)
                        let request = try HTTPRequest(bed.url + "/echo/\(number)", method: "POST")
                        let echo = try Echo(try await session.upload(for: request, from: .bytes(body)).body)
                        return echo.length == body.count && echo.target == "/echo/\(number)"
                    }
                }
                return try await group.reduce(into: [Bool]()) { $0.append($1) }
            }
            #expect(lengths.count == 100 && lengths.allSatisfy { $0 })
        }
    }

    /// A request that may not be sent twice isn't, also where its body is kept for redirects.
    @Test func aPOSTIsNotSentAgainOverAnotherConnection() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            _ = try await session.data(for: HTTPRequest(bed.url + "/die-when-reused"))
            let error = await failure {
                _ = try await session.data(
                    for: HTTPRequest(bed.url + "/die-when-reused", method: "POST", body: .text("x")))
            }
            guard case .connectionLost? = error else { return note("\(String(describing: error))") }
            _ = try await bed.targets()
            #expect(bed.origin.events.all("request").count { $0["method"] == "POST" } == 1)
            _ = try await session.data(for: HTTPRequest(bed.url + "/die-when-reused"))
            // A GET is.
            #expect(
                try await session.data(for: HTTPRequest(bed.url + "/die-when-reused")).response.metrics.transactions
                    .count == 2)
        }
    }
}
