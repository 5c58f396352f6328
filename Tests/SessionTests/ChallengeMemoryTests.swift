import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTLS
import Synchronization
import Testing

@testable import PinproxySession

@Suite struct ChallengeMemoryTests {
    let memory = ChallengeMemory()
    let origin: RequestURL.Origin
    let credentials: AnsweringCredentials

    init() throws {
        origin = try Self.origin("a.test:443")
        credentials = AnsweringCredentials(try DigestAnswerTests.credentials("ada", "geheim"), edition: 1)
    }

    static func origin(_ authority: String, isSecure: Bool = true) throws -> RequestURL.Origin {
        RequestURL.Origin(isSecure: isSecure, authority: try Authority.parse(authority, defaultPort: nil).get())
    }

    func unasked(
        _ target: String = "/", at other: RequestURL.Origin? = nil, _ method: String = "GET"
    ) -> ChallengeAnswer? {
        memory.authorization(
            for: Array(method.utf8), target: Array(target.utf8), at: other ?? origin, credentials: credentials)
    }

    func answer(
        _ challenges: String, _ target: String = "/", after previous: ChallengeAnswer? = nil
    ) -> ChallengeAnswer? {
        if case .answer(let answer) = reply(challenges, target, after: previous) { answer } else { nil }
    }

    func reply(
        _ challenges: String, _ target: String = "/", after previous: ChallengeAnswer? = nil,
        by others: AnsweringCredentials? = nil
    ) -> ChallengeMemory.Reply {
        memory.reply(
            to: DigestAnswerTests.parse(challenges), method: Array("GET".utf8), target: Array(target.utf8), at: origin,
            credentials: others ?? credentials, previous: previous)
    }

    private func isNewRefusal(_ reply: ChallengeMemory.Reply, in realm: String) -> Bool {
        if case .refused(let found) = reply { found == Array(realm.utf8) } else { false }
    }

    func accept(_ answer: ChallengeAnswer, _ target: String = "/", info: String? = nil) {
        memory.accepted(
            answer, target: Array(target.utf8), at: origin, credentials: credentials, info: info.map { Array($0.utf8) })
    }

    static func text(_ answer: ChallengeAnswer?) -> String? { answer.map { String(decoding: $0.value, as: UTF8.self) } }

    static func field(_ name: String, of answer: ChallengeAnswer?) -> String? {
        guard let answer,
            let parameters = DigestAnswerTests.parse(String(decoding: answer.value, as: UTF8.self)).first?.parameters
        else { return nil }
        return parameters[name].map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func basicIsSentWhereItWasAccepted() throws {
        #expect(unasked("/a/b") == nil)
        let first = try #require(answer("Basic realm=x", "/a/b?c"))
        #expect(Self.text(first) == "Basic YWRhOmdlaGVpbQ==")
        // It isn't sent unasked until it was accepted.
        #expect(unasked("/a/b") == nil)
        accept(first, "/a/b?c")
        for target in ["/a/b", "/a/", "/a/c/d?e", "/a/?/../x"] { #expect(unasked(target) != nil, "\(target)") }
        for target in ["/", "/a", "/b/a/", "/aa/b", "*", ""] { #expect(unasked(target) == nil, "\(target)") }
        #expect(unasked("/a/b", at: try Self.origin("a.test:444")) == nil)
        #expect(unasked("/a/b", at: try Self.origin("b.test:443")) == nil)
        #expect(unasked("/a/b", at: try Self.origin("a.test:443", isSecure: false)) == nil)
    }

    @Test func basicIsSentOnce() throws {
        let first = try #require(answer("Basic realm=w", "/a/"))
        #expect(answer("Basic realm=w", "/a/", after: first) == nil)
        // Nor for another realm in the same exchange.
        let second = try #require(answer("Basic realm=x", "/a/"))
        #expect(answer("Basic realm=y", "/a/", after: second) == nil)
        accept(try #require(answer("Basic realm=z", "/a/")), "/a/")
        // Sent unasked and refused: the same would be sent again.
        let guess = try #require(unasked("/a/x"))
        #expect(answer("Basic realm=z", "/a/x", after: guess) == nil)
        #expect(unasked("/a/x") == nil)
    }

    @Test(arguments: [
        ("Basic realm=x, Digest realm=x, nonce=n, qop=auth", "MD5"),
        (
            "Digest realm=x, nonce=n, qop=auth, Digest realm=x, nonce=n, qop=auth, algorithm=SHA-256, Basic realm=x",
            "SHA-256"
        ),
        (
            """
            Digest realm=x, nonce=n, qop=auth, algorithm=SHA-512-256, Digest realm=x, nonce=n, qop=auth, \
            algorithm=SHA-256
            """,
            "SHA-512-256"
        ),
        (
            """
            Digest realm=x, nonce=n, qop=auth, algorithm=SHA-256-sess, Digest realm=x, nonce=m, qop=auth, \
            algorithm=SHA-256
            """,
            "SHA-256-sess"
        ),
        ("Digest realm=x, nonce=n, qop=auth-int, algorithm=SHA-256, Digest realm=x, nonce=n, qop=auth", "MD5"),
    ])
    func theStrongestIsAnswered(_ challenges: String, _ algorithm: String) throws {
        #expect(answer(challenges)?.description == "Digest (\(algorithm)) •••")
    }

    @Test(arguments: [
        "", "Negotiate", "Bearer realm=x", "Digest realm=x, nonce=n, qop=auth-int", "NTLM, Digest realm=x",
        "Basic abc=",
    ])
    func whatIsUnknownIsNotAnswered(_ challenges: String) {
        #expect(answer(challenges) == nil)
    }

    @Test func aNonceIsCounted() throws {
        let text = #"Digest realm="x", nonce="n", qop="auth", opaque="o""#
        let first = try #require(answer(text))
        #expect(Self.field("nc", of: first) == "00000001")
        #expect(unasked() == nil)
        accept(first)
        let second = unasked("/elsewhere", "POST")
        #expect(Self.field("nc", of: second) == "00000002")
        #expect(Self.field("uri", of: second) == "/elsewhere")
        #expect(Self.field("opaque", of: second) == "o")
        #expect(Self.field("cnonce", of: second) != Self.field("cnonce", of: first))
        // Another exchange gets a challenge with the same nonce.
        #expect(Self.field("nc", of: answer(text)) == "00000003")
        #expect(Self.field("nc", of: unasked()) == "00000004")
    }

    func unasked(_ target: String, _ method: String) -> ChallengeAnswer? { unasked(target, at: nil, method) }

    @Test func aSessionKeepsItsClientNonce() throws {
        let first = try #require(answer("Digest realm=x, nonce=n, qop=auth, algorithm=MD5-sess"))
        accept(first)
        let second = try #require(unasked())
        #expect(Self.field("cnonce", of: second) == Self.field("cnonce", of: first))
        #expect(Self.field("nc", of: second) == "00000002")
        #expect(Self.field("response", of: second) != Self.field("response", of: first))
    }

    @Test func aRefusedPasswordIsNotSentAgain() throws {
        func first(_ realm: String) throws -> ChallengeAnswer {
            try #require(answer("Digest realm=\(realm), nonce=n, qop=auth"))
        }
        #expect(try answer("Digest realm=a, nonce=n, qop=auth", after: first("a")) == nil)
        #expect(try answer("Digest realm=b, nonce=m, qop=auth", after: first("b")) == nil)
        #expect(try answer("Digest realm=c, nonce=m, qop=auth, stale=false", after: first("c")) == nil)
        // The password itself never goes to a server that has seen its digest.
        #expect(try answer("Basic realm=d", after: first("d")) == nil)
        #expect(try answer("Digest realm=e, nonce=m, qop=auth, stale=TRUE", after: first("e")) != nil)
    }

    /// A refused password isn't sent again by any client, so that the account isn't locked.
    @Test(arguments: [
        "Basic realm=x", "Digest realm=x, nonce=n, qop=auth", "Digest realm=x, nonce=n, qop=auth, Basic realm=x",
    ])
    func aRefusalIsRememberedForItsRealm(_ challenge: String) throws {
        let first = try #require(answer(challenge, "/a/b"))
        #expect(isNewRefusal(reply(challenge, "/a/b", after: first), in: "x"))
        #expect(unasked("/a/b") == nil)
        let again =
            challenge.hasPrefix("Basic")
            ? ["Basic realm=x", "Basic realm=\"x\", charset=UTF-8"] : ["Digest realm=x, nonce=m, qop=auth"]
        for other in again { #expect(answer(other, "/elsewhere") == nil, "\(other)") }
        // Reported once, even when two exchanges find out at the same time.
        #expect(!isNewRefusal(reply(challenge, "/a/b", after: first), in: "x"))
        // Another realm is another protection space, and a rewritten file may hold another password.
        #expect(answer("Basic realm=y") != nil)
        #expect(answer("\(challenge), Basic realm=z")?.realm == Array("z".utf8))
        let later = AnsweringCredentials(credentials.credentials, edition: 2)
        if case .answer = reply(challenge, by: later) {} else { Issue.record("not answered by the new file") }
        // An answer that was already in flight doesn't undo this.
        accept(first, "/a/b")
        #expect(unasked("/a/b") == nil)
    }

    @Test func whatWasAcceptedIsRefusedOnce() throws {
        accept(try #require(answer("Basic realm=x", "/a/")), "/a/")
        accept(try #require(answer("Basic realm=x", "/b/")), "/b/")
        accept(try #require(answer("Basic realm=y", "/c/")), "/c/")
        let guess = try #require(unasked("/a/1"))
        #expect(isNewRefusal(reply("Basic realm=x", "/a/1", after: guess), in: "x"))
        #expect(unasked("/a/1") == nil && unasked("/b/1") == nil && answer("Basic realm=x", "/b/1") == nil)
        #expect(unasked("/c/1") != nil)
        // A digest that was a guess is followed by one try.
        let digest = try #require(answer("Digest realm=z, nonce=n, qop=auth"))
        accept(digest)
        let unaskedDigest = try #require(unasked())
        let again = try #require(answer("Digest realm=z, nonce=m, qop=auth", after: unaskedDigest))
        #expect(isNewRefusal(reply("Digest realm=z, nonce=o, qop=auth", after: again), in: "z"))
        #expect(unasked() == nil && answer("Digest realm=z, nonce=p, qop=auth") == nil)
    }

    /// Credentials that come from the program and not from a file are not remembered as refused.
    @Test func aProgramsCredentialsAreItsOwn() throws {
        let given = AnsweringCredentials(credentials.credentials, edition: nil)
        let first = reply("Basic realm=x", by: given)
        guard case .answer(let first) = first else {
            Issue.record("not answered")
            return
        }
        if case .none = reply("Basic realm=x", after: first, by: given) {
        } else {
            Issue.record("answered, or remembered")
        }
        if case .answer = reply("Basic realm=x", by: given) {} else { Issue.record("not answered again") }
    }

    @Test func refusalsAreBounded() throws {
        for number in 0..<100 {
            let realm = String(repeating: "r", count: number) + String(repeating: "z", count: 10_000)
            let first = try #require(answer("Basic realm=\(realm)"))
            #expect(isNewRefusal(reply("Basic realm=\(realm)", after: first), in: realm))
            #expect(answer("Basic realm=\(realm)") == nil)
        }
        #expect(answer("Basic realm=\(String(repeating: "z", count: 10_000))") != nil)
    }

    /// A1 keeps the values of the first nonces (RFC 7616 section 3.4.2).
    @Test func aSessionOutlivesItsNonce() throws {
        let first = try #require(answer("Digest realm=x, nonce=n, qop=auth, algorithm=SHA-256-sess"))
        accept(first, info: #"nextnonce="m""#)
        let second = try #require(unasked("/b"))
        #expect(Self.field("nonce", of: second) == "m" && Self.field("nc", of: second) == "00000001")
        #expect(Self.field("cnonce", of: second) == Self.field("cnonce", of: first))
        let clientNonce = try #require(Self.field("cnonce", of: first))
        func hash(_ parts: String...) throws -> String {
            let digest = try #require(MessageDigest.sha256.hex(of: Array(parts.joined(separator: ":").utf8)))
            return String(decoding: digest, as: UTF8.self)
        }
        let secret = try hash(try hash("ada", "x", "geheim"), "n", clientNonce)
        #expect(
            Self.field("response", of: second)
                == (try hash(secret, "m", "00000001", clientNonce, "auth", try hash("GET", "/b"))))
        // The same holds from nonce to nonce.
        accept(second, "/b", info: #"nextnonce="l""#)
        let third = try #require(unasked("/b"))
        #expect(
            Self.field("response", of: third)
                == (try hash(secret, "l", "00000001", clientNonce, "auth", try hash("GET", "/b"))))
    }

    @Test func whoCallsEveryNonceStaleIsLeft() throws {
        var previous: ChallengeAnswer?
        var answers = 0
        while let next = answer("Digest realm=x, nonce=n\(answers), qop=auth, stale=true", after: previous) {
            previous = next
            answers += 1
            try #require(answers < 10)
        }
        #expect(answers == 3)
    }

    @Test func aGuessThatIsRefusedIsFollowedByAnAnswer() throws {
        accept(try #require(answer("Digest realm=x, nonce=n, qop=auth")))
        let guess = try #require(unasked())
        // A server that has been restarted knows nothing of the nonce, and doesn't call it stale.
        let second = try #require(answer("Digest realm=x, nonce=m, qop=auth", after: guess))
        #expect(Self.field("nonce", of: second) == "m")
        #expect(unasked() == nil)
        accept(second)
        #expect(Self.field("nonce", of: unasked()) == "m")
        // The same nonce again: the password is refused, not the nonce.
        let again = try #require(unasked())
        #expect(answer("Digest realm=x, nonce=m, qop=auth", after: again) == nil)
    }

    @Test func theNextNonceIsUsedNext() throws {
        accept(try #require(answer("Digest realm=x, nonce=n, qop=auth, opaque=o")), info: #"nextnonce="m", qop=auth"#)
        let next = try #require(unasked())
        #expect(Self.field("nonce", of: next) == "m")
        #expect(Self.field("nc", of: next) == "00000001")
        #expect(Self.field("opaque", of: next) == "o")
        // The same nonce again continues its count.
        accept(next, info: #"nextnonce="m""#)
        #expect(Self.field("nc", of: unasked()) == "00000002")
        for info in [
            "nextnonce=\"", "nextnonce=\"\"", "nextnonce=a, nextnonce=b", "", "Digest nextnonce=z",
            "nextnonce=\"\(String(repeating: "z", count: 5000))\"",
        ] {
            accept(next, info: info)
            #expect(Self.field("nonce", of: unasked()) == "m", "\(info.prefix(20))")
        }
    }

    @Test func aDomainBoundsTheSpace() throws {
        accept(
            try #require(
                answer(
                    #"""
                    Digest realm="x", nonce="n", qop="auth", domain="/a https://a.test/b/ https://b.test/c \#
                    ftp://a.test/"
                    """#,
                    "/a")))
        for target in ["/a", "/a/x", "/b/", "/b/c?d"] { #expect(unasked(target) != nil, "\(target)") }
        for target in ["/", "/b", "/c", "*"] { #expect(unasked(target) == nil, "\(target)") }
    }

    /// Every use of a nonce has a distinct count, even with many threads at once.
    @Test func countsAreUniqueAcrossThreads() async throws {
        let text = "Digest realm=x, nonce=n, qop=auth"
        accept(try #require(answer(text)))
        let counts = await withTaskGroup(of: [String].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<250).compactMap { index in
                        Self.field("nc", of: index % 5 == 0 ? answer(text) : unasked())
                    }
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(counts.count == 2000)
        #expect(Set(counts) == Set((2...2001).map { String(String($0 + 0x1_0000_0000, radix: 16).dropFirst()) }))
    }

    @Test func whatServersSayIsBounded() throws {
        for index in 0..<2000 {
            accept(try #require(answer("Digest realm=x\(index), nonce=n\(index), qop=auth")))
            accept(try #require(answer("Basic realm=x")), "/\(index)/")
            _ = memory.reply(
                to: DigestAnswerTests.parse("Digest realm=x, nonce=n, qop=auth"), method: Array("GET".utf8),
                target: Array("/".utf8),
                at: try Self.origin("h\(index).test:443"), credentials: credentials, previous: nil)
        }
        #expect(memory.spaceCount <= ChallengeMemory.mostSpaces)
        #expect(Self.field("nonce", of: unasked()) == "n1999")
    }

    @Test func nothingShowsThePassword() throws {
        for answer in [answer("Basic realm=x"), answer("Digest realm=x, nonce=n, qop=auth")] {
            let answer = try #require(answer as ChallengeAnswer?)
            var dumped = ""
            dump(answer, to: &dumped)
            for text in ["\(answer)", String(reflecting: answer), dumped, "\([answer])"] {
                #expect(!text.contains("YWRh") && !text.contains("geheim") && !text.contains("response"), "\(text)")
            }
        }
    }
}
