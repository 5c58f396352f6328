import Foundation
import PinnedSession
import PinproxySecurity
import PinproxySerialization
import Testing

/// Redirects and challenges of a Swift program's tasks: where they lead, what goes with them, and who decides.
@Suite(.timeLimit(.minutes(5)))
struct LibraryRedirectTests {
    @Test func aRedirectIsFollowedAndCredentialsStayBehind() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            var request = try HTTPRequest(bed.redirect(to: bed.otherURL + "/echo"))
            try request.set("Authorization", "Bearer pa55", isSecret: true)
            try request.set("Cookie", "a=pa55")
            try request.set("X-Kept", "1")
            let (body, response) = try await session.data(for: request)
            let echo = try Echo(body)
            #expect(response.url == bed.otherURL + "/echo" && response.metrics.redirects == 1)
            #expect(echo.field("x-kept") == "1" && echo.field("authorization") == nil && echo.field("cookie") == nil)
            // Within the origin they go along.
            request.url = bed.redirect(to: "/echo")
            #expect(try await Echo(session.data(for: request).body).field("authorization") == "Bearer pa55")
        }
    }

    @Test func theConfigurationSaysWhetherRedirectsAreFollowed() async throws {
        try await withLibraryBed { bed in
            let passing = try bed.session { $0.redirects = .pass }
            let passed = try await passing.data(for: HTTPRequest(bed.redirect(to: "http://api.localhost/echo")))
            #expect(passed.response.status == 302 && passed.body == Array("moved".utf8))
            let refusing = try bed.session { $0.redirects = .refuse }
            let looping = try bed.session { $0.maximumRedirects = 3 }
            let loop =
                bed.url + "/raw/" + encoded("HTTP/1.1 302 Found\r\nLocation: ?again\r\nContent-Length: 0\r\n\r\n")
            for (session, url) in [
                (refusing, bed.redirect(to: "/echo")), (looping, loop),
                (looping, bed.redirect(to: "http://api.localhost/")),
                (looping, bed.redirect(to: "ftp://api.localhost/")),
            ] {
                let error = await failure { _ = try await session.data(for: HTTPRequest(url)) }
                guard case .redirect? = error else {
                    Issue.record("\(url): \(String(describing: error))")
                    continue
                }
            }
            #expect(try await bed.targets().count { $0.hasSuffix("?again") } == 3)
        }
    }

    @Test func pinsHoldForThePlaceThatARedirectLeadsTo() async throws {
        try await withLibraryBed { bed in
            let wrong = try Pin(text: "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", for: .publicKey)
            let rule = HostRule(
                try HostPattern("other.localhost"), policy: SecurityPolicy(mode: .publicKey, pins: PinSet([wrong])))
            let session = try bed.session(hosts: [rule])
            let error = await failure {
                _ = try await session.data(for: HTTPRequest(bed.redirect(to: bed.otherURL + "/echo")))
            }
            guard case .pinMismatch(let mismatch)? = error else { return note("\(String(describing: error))") }
            #expect(mismatch.host == "other.localhost")
            #expect(try await !bed.targets().contains("/echo"))
        }
    }

    @Test func aHookDecidesAboutRedirects() async throws {
        try await withLibraryBed { bed in
            let seen = Collected<String>()
            var hooks = SessionHooks()
            let other = bed.url + "/echo/replaced"
            hooks.redirect = { redirect in
                seen.add("\(redirect.method) \(redirect.to)")
                if redirect.to.hasSuffix("/pass") { return .pass }
                if redirect.to.hasSuffix("/refuse") { return .refuse("not there") }
                guard redirect.to.hasSuffix("/replace") else { return .follow }
                return (try? HTTPRequest(other, method: "PUT", body: .text("abc"))).map { .replace($0) } ?? .pass
            }
            let session = try bed.session(hooks: hooks)
            #expect(try await session.data(for: HTTPRequest(bed.redirect(to: "/pass"))).response.status == 302)
            let refused = await failure { _ = try await session.data(for: HTTPRequest(bed.redirect(to: "/refuse"))) }
            #expect(refused?.description.contains("not there") == true)
            let (body, response) = try await session.data(for: HTTPRequest(bed.redirect(to: "/replace")))
            let echo = try Echo(body)
            #expect((echo.method, echo.target, echo.length) == ("PUT", "/echo/replaced", 3))
            #expect(
                response.url == other && response.metrics.redirects == 1 && response.metrics.transactions.count == 2)
            #expect(
                try await session.data(for: HTTPRequest(bed.redirect(to: "/echo"), method: "POST")).response.status
                    == 200)
            #expect(seen.all.map { $0.split(separator: " ")[0] } == ["GET", "GET", "GET", "GET"])
        }
    }

    /// A hook that leads round in circles comes to an end.
    @Test func replacementsAreBounded() async throws {
        try await withLibraryBed { bed in
            let again = try HTTPRequest(bed.redirect(to: "/again"))
            var hooks = SessionHooks()
            hooks.redirect = { _ in .replace(again) }
            let session = try bed.session(hooks: hooks) { $0.maximumRedirects = 4 }
            let error = await failure { _ = try await session.data(for: again) }
            guard case .redirect? = error else { return note("\(String(describing: error))") }
            #expect(try await bed.targets().count == 5)
        }
    }

    @Test func aBodyIsMadeAnewWhereItIsSentAgain() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let url = bed.redirect(to: "/echo/again", status: 307)
            let path = try bed.bed.file("upload", pattern(300_000))
            let made = Collected<Int>()
            let bodies: [RequestBody] = [
                .bytes(pattern(300_000)), .file(path), stream(pattern(300_000), length: 300_000, made: made),
                stream(pattern(300_000), length: nil, made: made),
            ]
            for body in bodies {
                let echo = try await Echo(session.upload(for: HTTPRequest(url, method: "PUT"), from: body).body)
                #expect(echo.length == 300_000 && echo.target == "/echo/again")
            }
            #expect(made.all.count == 4, "each stream is made once for each request")
            let once = Collected<Int>()
            let single = RequestBody.stream {
                once.add(1)
                return once.all.count == 1
                    ? RequestBody.Stream {
                        $0.yield([1])
                        $0.finish()
                    } : nil
            }
            let error = await failure {
                _ = try await session.upload(for: HTTPRequest(url, method: "PUT"), from: single)
            }
            guard case .requestBody(let text)? = error else { return note("\(String(describing: error))") }
            #expect(text.contains("again"))
        }
    }

    private func stream(_ bytes: [UInt8], length: Int?, made: Collected<Int>) -> RequestBody {
        .stream(length: length) {
            made.add(1)
            return RequestBody.Stream { continuation in
                for start in stride(from: 0, to: bytes.count, by: 10_000) {
                    continuation.yield(Array(bytes[start..<min(start + 10_000, bytes.count)]))
                }
                continuation.finish()
            }
        }
    }

    // MARK: Challenges

    @Test func credentialsOfARuleAnswerDigestAndGoToTheirHostAlone() async throws {
        try await withLibraryBed { bed in
            let digest = try await bed.peer("digest_origin.py")
            let credentials = try Credentials(user: "ann", password: Secret("secret"))
            let session = try bed.session(hosts: [HostRule(try HostPattern("api.localhost"), credentials: credentials)])
            let url = "https://api.localhost:\(digest.port)/private"
            let answered = try await session.data(for: HTTPRequest(url, method: "POST", body: .text("hello")))
            #expect(answered.response.status == 200 && String(decoding: answered.body, as: UTF8.self).contains("hello"))
            #expect(answered.response.metrics.transactions.count == 2)
            let elsewhere = "https://other.localhost:\(digest.port)/private"
            #expect(try await session.data(for: HTTPRequest(elsewhere)).response.status == 401)
            let basic = try await session.data(for: HTTPRequest(bed.redirect(to: bed.otherURL + "/login/Basic")))
            #expect(basic.response.status == 401 && basic.response.url.hasSuffix("/login/Basic"))
            #expect(try await session.data(for: HTTPRequest(bed.url + "/login/Basic")).response.status == 200)
        }
    }

    @Test func aHookAnswersChallengesOncePerOrigin() async throws {
        try await withLibraryBed { bed in
            let digest = try await bed.peer("digest_origin.py")
            let asked = Collected<AuthenticationChallenge>()
            let right = try Credentials(user: "ann", password: Secret("secret"))
            let wrong = try Credentials(user: "ann", password: Secret("guess"))
            var hooks = SessionHooks()
            hooks.challenge = { challenge in
                asked.add(challenge)
                return challenge.url.hasSuffix("/right") ? right : challenge.url.hasSuffix("/wrong") ? wrong : nil
            }
            let session = try bed.session(hooks: hooks)
            let url = "https://api.localhost:\(digest.port)"
            for (path, status) in [("/right", 200), ("/wrong", 401), ("/none", 401)] {
                #expect(try await session.data(for: HTTPRequest(url + path)).response.status == status)
            }
            #expect(asked.all.count == 3 && asked.all.first?.offers.map(\.scheme) == ["digest"])
            #expect(asked.all.first?.offers.first?.realm == "peers")
            // A request with its own Authorization answers for itself.
            var own = try HTTPRequest(url + "/right")
            try own.set("Authorization", "Bearer x")
            #expect(try await session.data(for: own).response.status == 401)
            #expect(asked.all.count == 3)
        }
    }
}
