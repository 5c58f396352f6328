import Foundation
import PinproxyTestAuthority
import Testing

/// `session.redirects`: who follows a redirect, how far, and with what.
@Suite(.sharedBed(RedirectBed.prepare), .timeLimit(.minutes(5)))
struct RedirectTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func curl(_ arguments: String...) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, arguments)
    }

    /// A path that answers with a redirect to `location`.
    private static func redirect(to location: String, status: Int = 302, fields: String = "") -> String {
        RuleBed.answer(
            "x", "HTTP/1.1 \(status) Elsewhere\r\nLocation: \(location)\r\n\(fields)Content-Length: 9\r\n\r\nelsewhere")
    }

    @Test func redirectsArePassedUnlessARuleSaysMore() async throws {
        let run = try await curl("-i", "https://\(RedirectBed.passing):\(shared.originPort)/redirect/302/received/x")
        #expect(run.output.hasPrefix("HTTP/1.1 302 ") && run.output.contains("Location: /received/x\r\n"), "\(run)")
        #expect(!run.output.contains("Pinproxy-Location"))
    }

    @Test func redirectsAreRefused() async throws {
        let run = try await curl(
            "-i", "https://\(RedirectBed.refusing):\(shared.originPort)/redirect/302/received/x?token=geheim")
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("session.redirects: refuse"), "\(run)")
        #expect(!run.output.contains("geheim"), "\(run)")
        // A response without Location is not a redirect.
        let none = try await curl(
            "-i",
            "https://\(RedirectBed.refusing):\(shared.originPort)"
                + RuleBed.answer("x", "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"))
        #expect(none.output.hasPrefix("HTTP/1.1 302 "), "\(none)")
    }

    @Test func aRedirectIsFollowedAndSaysWhereItLed() async throws {
        let run = try await curl("-i", shared.url + "/redirect/301,302,307/received/x")
        #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
        #expect(run.output.contains("Pinproxy-Location: \(shared.url)/received/x\r\n"), "\(run)")
        let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/redirect/301,302,307/received/x" }
        #expect(line["status"] == "200")
        #expect(line["location"]?.hasSuffix("/received/x") == true, "\(line)")
        let quiet = try await curl("-i", "https://\(RedirectBed.quiet):\(shared.originPort)/redirect/301/received/x")
        #expect(quiet.output.hasPrefix("HTTP/1.1 200 ") && !quiet.output.contains("Pinproxy-Location"), "\(quiet)")
    }

    /// The last request is what curl itself would send, whatever the chain's statuses.
    @Test func curlComesToTheSame() async throws {
        let seed = UInt64.random(in: 1...1_000_000)
        var random = SplitMix(seed)
        for number in 0..<24 {
            let statuses = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                ["301", "302", "303", "307", "308"].randomElement(using: &random)!
            }
            let path = "/redirect/\(statuses.joined(separator: ","))/received/\(number)?q=\(number)"
            let body = number % 3 == 0 ? [] : ["-d", "name=\(number)"]
            let head = number % 7 == 6 ? ["-H", "Expect: 100-continue"] : []
            let followed = try ReceivedRequest(
                try await shared.bed.curl(via: shared.proxy, body + head + [shared.url + path]))
            let passing = "https://\(RedirectBed.passing):\(shared.originPort)"
            let reference = try ReceivedRequest(
                try await shared.bed.curl(via: shared.proxy, ["-L"] + body + head + [passing + path]))
            #expect(followed.method == reference.method, "seed \(seed): \(statuses)")
            #expect(followed.target == reference.target, "seed \(seed): \(statuses)")
            #expect(followed.body == reference.body, "seed \(seed): \(statuses)")
            #expect(followed.values("Content-Type") == reference.values("Content-Type"), "seed \(seed): \(statuses)")
            #expect(
                followed.values("Content-Length") == reference.values("Content-Length"), "seed \(seed): \(statuses)")
        }
    }

    @Test func manyRedirectsAreBounded() async throws {
        let path = "/redirect/0/loop\(UUID().uuidString)"
        let run = try await curl("-i", shared.url + path)
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("session.max_redirects"), "\(run)")
        let mark = "/received/\(UUID().uuidString)"
        _ = try await curl(shared.url + mark)
        _ = try await shared.origin!.events.first("request") { $0["target"] == mark }
        #expect(shared.origin!.events.all("request").count { $0["target"] == path } == 6)
        let far = try await curl("-i", shared.url + "/redirect/302,302,302,302,302/received/x")
        #expect(far.output.hasPrefix("HTTP/1.1 200 "), "\(far)")
    }

    @Test func credentialsAndCookiesStayWithTheirOrigin() async throws {
        let secrets = ["-H", "Authorization: Bearer t0ken", "-b", "session=geheim"]
        let same = try ReceivedRequest(
            try await shared.bed.curl(via: shared.proxy, secrets + [shared.url + "/redirect/302/received/x"]))
        #expect(
            same.values("Authorization") == ["Bearer t0ken"] && same.values("Cookie") == ["session=geheim"], "\(same)")
        let elsewhere = "https://\(RedirectBed.passing):\(shared.originPort)/received/y"
        let run = try await shared.bed.curl(
            via: shared.proxy, ["-i"] + secrets + [shared.url + Self.redirect(to: elsewhere)])
        let body = try #require(run.output.range(of: "\r\n\r\n"))
        let other = try JSONDecoder().decode(ReceivedRequest.self, from: Data(run.output[body.upperBound...].utf8))
        #expect(other.values("Authorization") == [] && other.values("Cookie") == [], "\(other)")
        #expect(other.values("Host") == ["\(RedirectBed.passing):\(shared.originPort)"])
        // And what the other host sets (cookies, HSTS) isn't set for this one.
        let cookie =
            """
            HTTP/1.1 200 OK\r\nSet-Cookie: evil=1\r\nStrict-Transport-Security: max-age=1\r\nX-Ok: \
            1\r\nContent-Length: 0\r\n\r\n
            """
        let setting = "https://\(RedirectBed.passing):\(shared.originPort)" + RuleBed.answer("x", cookie)
        let answer = try await curl("-i", shared.url + Self.redirect(to: setting))
        #expect(answer.output.contains("X-Ok: 1") && !answer.output.contains("evil"), "\(answer)")
        #expect(!answer.output.contains("Strict-Transport-Security"))
    }

    @Test(arguments: [
        ("ftp://origin.test/x", "has the scheme"), ("javascript:alert(1)", "has the scheme"),
        ("file:///etc/passwd", "has the scheme"),
        ("//", "without a host"), ("http:///x", "without a host"), ("//user:geheim@origin.test/", "user information"),
        ("https://0x7f.1/", "no usable host"), ("/a\tb", "control character"),
        ("/" + String(repeating: "a", count: 10_000), "longer than"),
        ("https://origin.test:99999/", "no usable host"), ("//b\\evil.test/", "no usable host"),
        ("https://b%2etest/", "no usable host"),
        ("http://origin.test/", "from https to http"), ("https://denied.test/", "denied.test"),
        ("https://blocked.test/", "169.254.169.254"), ("https://169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("https://wrong-pin.test:PORT/received/x", "inning"),
    ])
    func hostileLocationsAreRefused(_ location: String, _ reason: String) async throws {
        let path = Self.redirect(to: location.replacingOccurrences(of: "PORT", with: "\(shared.originPort)"))
        let run = try await curl("-i", shared.url + path)
        #expect(run.output.hasPrefix("HTTP/1.1 50") || run.output.hasPrefix("HTTP/1.1 403 "), "\(run)")
        #expect(run.output.contains(reason), "\(run)")
        #expect(!run.output.contains("geheim"))
        // The connection stays open.
        let next = try await curl("-o", "/dev/null", shared.url + path, shared.url + "/received/after")
        #expect(next.output.contains("/received/after"), "\(next)")
    }

    /// The policy refuses a redirect's target as it refuses a direct request.
    @Test(arguments: ["https://denied.test/", "https://blocked.test/", "https://169.254.169.254/latest/meta-data"])
    func aForbiddenPlaceIsForbidden(_ location: String) async throws {
        let run = try await curl("-i", shared.url + Self.redirect(to: location))
        #expect(run.output.hasPrefix("HTTP/1.1 403 "), "\(run)")
        let direct = try await shared.bed.curl(
            via: shared.proxy, ["-o", "/dev/null", "-w", "%{http_connect}", location])
        #expect(direct.output == "403", "\(direct)")
    }

    @Test func severalLocationsAreRefused() async throws {
        let run = try await curl(
            "-i", shared.url + Self.redirect(to: "/received/x", fields: "Location: /received/y\r\n"))
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("more than one Location"), "\(run)")
    }

    /// The proxy sees no requests there: the client follows itself.
    @Test func aTunnelledHostIsTheClients() async throws {
        let location = "https://tunnelled.test:\(shared.originPort)/received/x"
        let run = try await curl("-i", shared.url + Self.redirect(to: location))
        #expect(run.output.hasPrefix("HTTP/1.1 302 ") && run.output.contains("Location: \(location)"), "\(run)")
    }

    @Test func rulesOfTheNextHostHold() async throws {
        let location = "https://\(RedirectBed.quiet):\(shared.originPort)/received/x"
        let received = try ReceivedRequest(try await curl(shared.url + Self.redirect(to: location)))
        #expect(received.values("X-Rule") == ["quiet"], "\(received)")
    }

    @Test(arguments: [100_000, 1_000_000]) func aBodyGoesAgain(_ length: Int) async throws {
        let file = try shared.bed.file("upload-\(length)", String(repeating: "u", count: length))
        for expectation in ["Expect:", "Expect: 100-continue"] {
            let received = try ReceivedRequest(
                try await curl(
                    "-H", expectation, "--data-binary", "@" + file, shared.url + "/redirect/307,308/received/\(length)")
            )
            #expect(received.method == "POST" && received.length == length, "\(received.method) \(received.length)")
        }
    }

    /// The redirect arrives while the body is on its way, and the body is too long to keep.
    @Test func aBodyThatIsNotKeptIsSaid() async throws {
        let file = try shared.bed.file("long", String(repeating: "u", count: 3 << 20))
        let run = try await curl("-i", "-T", file, shared.url + "/redirect/307/received/long")
        #expect(run.output.contains("HTTP/1.1 502 ") && run.output.contains("limits.replay_body"), "\(run)")
        let get = try ReceivedRequest(
            try await curl("--data-binary", "@" + file, shared.url + "/redirect/303/received/short"))
        #expect(get.method == "GET" && get.length == 0)
    }

    @Test func manyAtATime() async throws {
        let run = try await curl(
            "-Z", "--parallel-max", "12", "-o", "/dev/null", "-w", "%{http_code}\n",
            shared.url + "/redirect/302,301/received/[1-120]")
        #expect(run.output.split(separator: "\n") == Array(repeating: "200", count: 120), "\(run)")
    }
}

/// A small seeded generator, so that a failure can be reproduced.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

private enum RedirectBed {
    static let passing = "passing.test"
    static let refusing = "refusing.test"
    static let quiet = "quiet.test"

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let others = [passing, refusing, quiet, "denied.test", "wrong-pin.test", "tunnelled.test"]
        let hosts = """
              - {match: \(refusing), session: {redirects: refuse}}
              - {match: \(quiet), session: {redirects: follow, location_field: false}, request: {headers: {X-Rule: \
            quiet}}}
              - {match: denied.test, action: deny}
              - {match: tunnelled.test, action: tunnel}
              - {match: wrong-pin.test, pinning: public-key, pins: [\(String.wrongPin)]}

            """
        return try await RuleBed.prepare(
            bed, rules: [],
            extra: [
                """
                session: {redirects: follow, max_redirects: 5, follow_to: \
                [\((others + ["blocked.test", "169.254.169.254"]).joined(separator: ", "))]}
                """
            ],
            hosts: hosts,
            names: Dictionary(uniqueKeysWithValues: others.map { ($0, "127.0.0.1") }).merging([
                "blocked.test": "169.254.169.254"
            ]) { $1 })
    }
}
