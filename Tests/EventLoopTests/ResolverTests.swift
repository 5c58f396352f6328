import Glibc
import Testing

@testable import PinproxyEventLoop

private typealias Answer = Result<[IPAddress], ResolutionError>

/// A loop with a scripted name server and a resolver that uses it.
private struct Fixture {
    let loop: EventLoop
    let cache = ResolverCache()
    let server: ScriptedNameServer
    let settings: ResolverChannel.Settings

    init(_ reply: @escaping (String) -> ScriptedNameServer.Reply) throws {
        _ = hostsFile
        loop = try EventLoop()
        server = try ScriptedNameServer(loop, reply: reply)
        settings = ResolverChannel.Settings(
            servers: server.address.description, attemptMilliseconds: 20_000, attempts: 2)
    }

    func resolver(attemptMilliseconds: CInt = 20_000) throws -> Resolver {
        var settings = settings
        settings.attemptMilliseconds = attemptMilliseconds
        return try Resolver(loop: loop, cache: cache, settings: settings)
    }

    /// Resolves the names at once, and runs the loop until all are answered.
    func answers(_ resolver: Resolver, _ names: [String]) -> [Answer] {
        var answers = [Answer?](repeating: nil, count: names.count)
        for (index, name) in names.enumerated() {
            resolver.resolve(name) { answer in
                #expect(answers[index] == nil, "\(name) was answered twice")
                answers[index] = answer
                if !answers.contains(nil) { loop.afterThisTurn { loop.stop() } }
            }
        }
        run(loop)
        return answers.compactMap { $0 }
    }

    func answer(_ resolver: Resolver, _ name: String) -> Answer? {
        answers(resolver, [name]).first
    }
}

private func addresses(_ texts: String...) -> ScriptedNameServer.Reply {
    .addresses(texts.map { ($0, timeToLive: 60) })
}

private func texts(_ answer: Answer?) throws -> Set<String> {
    Set(try #require(answer).get().map(\.description))
}

@Suite struct ResolverTests {
    @Test func bothFamiliesAreAskedFor() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1", "192.0.2.2", "2001:db8::1") }
        let answer = fixture.answer(try fixture.resolver(), "both.test")
        #expect(try texts(answer) == ["192.0.2.1", "192.0.2.2", "2001:db8::1"])
        #expect(fixture.server.count("both.test") == 2)
    }

    @Test func oneFamilyIsEnough() throws {
        let fixture = try Fixture { name in name == "four.test" ? addresses("192.0.2.1") : addresses("2001:db8::1") }
        let answers = fixture.answers(try fixture.resolver(), ["four.test", "six.test"])
        #expect(try texts(answers[0]) == ["192.0.2.1"])
        #expect(try texts(answers[1]) == ["2001:db8::1"])
    }

    // MARK: One family before the other (RFC 8305 section 3)

    /// Each question has a deadline of 20 s, so waiting for the dropped one would show.
    @Test(arguments: [ScriptedNameServer.Kind.a, .aaaa])
    func aServerThatDropsOneOfTheQuestionsKeepsNobodyFromBeginning(dropped: ScriptedNameServer.Kind) throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1", "2001:db8::1") }
        fixture.server.dropped = dropped
        let resolver = try fixture.resolver()
        let known = [try #require(IPAddress(dropped == .aaaa ? "192.0.2.1" : "2001:db8::1"))]
        var begun: [[IPAddress]] = []
        var answers = 0
        resolver.resolve("half.test") { addresses in
            begun.append(addresses)
            fixture.loop.afterThisTurn { fixture.loop.stop() }
        } completion: { _ in
            answers += 1
        }
        run(fixture.loop)
        #expect(begun == [known])
        #expect(answers == 0)
        // A later query needn't wait either.
        resolver.resolve("half.test") {
            begun.append($0)
        } completion: { _ in
            answers += 1
        }
        #expect(begun == [known, known])
        // The dropped query fails with the resolver; the other's result stays.
        fixture.server.dropped = nil
    }

    @Test func theAddressesOfAFamilyWhoseServerFailsAreEnough() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        fixture.server.dropped = .aaaa
        let answer = fixture.answer(try fixture.resolver(attemptMilliseconds: 20), "four.test")
        #expect(try texts(answer) == ["192.0.2.1"])
    }

    @Test func bothFamiliesComeWithTheCompletionTheBetterOneFirst() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1", "2001:db8::1") }
        let answer = try #require(fixture.answer(try fixture.resolver(), "both.test")).get()
        #expect(answer.map(\.description) == ["2001:db8::1", "192.0.2.1"])
    }

    @Test func thatANameDoesntExistNeedsOneAnswer() throws {
        let fixture = try Fixture { _ in .noSuchName }
        fixture.server.dropped = .aaaa
        #expect(fixture.answer(try fixture.resolver(), "none.test") == .failure(.notFound("none.test")))
    }

    // MARK: localhost (RFC 6761 section 6.3)

    @Test(arguments: ["localhost", "LocalHost", "localhost.", "app.localhost", "a.b.LOCALHOST."])
    func localhostIsLoopbackAndNobodyIsAsked(name: String) throws {
        let fixture = try Fixture { _ in addresses("192.0.2.66") }
        var answer: Answer?
        try fixture.resolver().resolve(name) { answer = $0 }
        #expect(try texts(answer) == ["::1", "127.0.0.1"])
        #expect(fixture.server.questions.isEmpty)
    }

    @Test(arguments: ["localhost.test", "notlocalhost", "localhos", "xlocalhost.", "ocalhost", "LOCALHOSt.a"])
    func whatOnlyLooksLikeLocalhostIsLookedUp(name: String) throws {
        let fixture = try Fixture { _ in addresses("192.0.2.66") }
        #expect(try texts(fixture.answer(try fixture.resolver(), name)) == ["192.0.2.66"])
    }

    // MARK: Descriptors

    @Test func aLackOfDescriptorsIsToldAsSuch() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        var settings = fixture.settings
        settings.openSocket = { _, _, _ in
            errno = EMFILE
            return -1
        }
        let starved = try Resolver(loop: fixture.loop, cache: fixture.cache, settings: settings)
        let answer = fixture.answer(starved, "many.test")
        #expect(answer == .failure(.noDescriptors("many.test")))
        guard case .failure(let error)? = answer else { return }
        #expect(error.description == "many.test: out of file descriptors: no name server can be asked")
        // It says nothing about the name.
        #expect(fixture.cache.answer(for: "many.test", at: .now()) == nil)
    }

    @Test func callersOfTheSameNameShareAQuestionWhateverItsCase() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        let answers = fixture.answers(try fixture.resolver(), ["one.test", "ONE.test", "one.TEST", "two.test"])
        #expect(answers.count == 4)
        for answer in answers { #expect(try texts(answer) == ["192.0.2.1"]) }
        #expect(fixture.server.questions == ["one.test": 2, "two.test": 2])
    }

    @Test func anAnswerIsRememberedForTheResolversOfOtherLoopsToo() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        _ = fixture.answer(try fixture.resolver(), "known.test")
        var answer: Answer?
        // The loop doesn't run, so the answer must come from the cache at once.
        try fixture.resolver().resolve("known.test") { answer = $0 }
        #expect(try texts(answer) == ["192.0.2.1"])
        #expect(fixture.server.count("known.test") == 2)
    }

    @Test func theShortestTimeToLiveCounts() throws {
        let fixture = try Fixture { _ in
            .addresses([("192.0.2.1", timeToLive: 3000), ("192.0.2.2", timeToLive: 40), ("192.0.2.3", timeToLive: 900)])
        }
        _ = fixture.answer(try fixture.resolver(), "short.test")
        let now = MonotonicTime.now()
        #expect(fixture.cache.answer(for: "short.test", at: now) != nil)
        #expect(fixture.cache.answer(for: "short.test", at: now.advanced(byNanoseconds: 40_000_000_000)) == nil)
    }

    @Test func anUnknownNameANameWithoutAddressesAndAFailingServerAreToldApart() throws {
        let fixture = try Fixture { name in
            switch name {
            case "unknown.test": .noSuchName
            case "empty.test": .addresses([])
            default: .failure
            }
        }
        let resolver = try fixture.resolver()
        let answers = fixture.answers(resolver, ["unknown.test", "empty.test", "broken.test"])
        #expect(answers[0] == .failure(.notFound("unknown.test")))
        #expect(answers[1] == .failure(.noAddresses("empty.test")))
        guard case .failure(.serverFailure(name: "broken.test", let reason)) = answers[2] else {
            Issue.record("not a server's failure: \(answers[2])")
            return
        }
        #expect(!reason.isEmpty)
        #expect(fixture.cache.answer(for: "unknown.test", at: .now()) != nil)
        #expect(fixture.cache.answer(for: "broken.test", at: .now()) == nil)
    }

    @Test func aDeadServerEndsInATimeOut() throws {
        let fixture = try Fixture { _ in .silence }
        #expect(
            fixture.answer(try fixture.resolver(attemptMilliseconds: 20), "dead.test")
                == .failure(.timedOut("dead.test")))
        #expect(fixture.server.count("dead.test") >= 4, "A and AAAA, each twice")
    }

    @Test func aLostQuestionIsAskedAgain() throws {
        var lost = 0
        let fixture = try Fixture { _ in
            lost += 1
            return lost <= 2 ? .silence : addresses("192.0.2.1")
        }
        let answer = fixture.answer(try fixture.resolver(attemptMilliseconds: 100), "again.test")
        #expect(try texts(answer) == ["192.0.2.1"])
    }

    @Test func anIPLiteralIsAnsweredAtOnceWithoutAQuestion() throws {
        let fixture = try Fixture { _ in .failure }
        for literal in ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"] {
            var answer: Answer?
            try fixture.resolver().resolve(literal) { answer = $0 }
            #expect(try answer?.get() == [try #require(IPAddress(literal))])
        }
        #expect(fixture.cache.count == 0)
    }

    @Test(arguments: [
        "", ".", "..", "a..test", ".test", "a.test..", "nul\0.test", "192.0.2.1\0.test",
        String(repeating: "x", count: 64) + ".test",
        Array(repeating: String(repeating: "x", count: 63), count: 4).joined(separator: "."),
    ])
    func whatCantBeAHostNameIsRefusedAtOnce(name: String) throws {
        let fixture = try Fixture { _ in .failure }
        var answer: Answer?
        try fixture.resolver().resolve(name) { answer = $0 }
        #expect(answer == .failure(.invalidName(name)))
        #expect(fixture.server.questions.isEmpty)
    }

    @Test func theLongestNameThereCanBeIsAskedFor() throws {
        let label = String(repeating: "x", count: 63)
        let name = [label, label, label, String(label.dropFirst(2))].joined(separator: ".")
        #expect(name.utf8.count == 253)
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        #expect(try texts(fixture.answer(try fixture.resolver(), name)) == ["192.0.2.1"])
    }

    @Test func aCancelledResolutionIsNeverToldItsQuestionContinuesForOthers() throws {
        final class Capture {}
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        let resolver = try fixture.resolver()
        weak var gone: Capture?
        do {
            let capture = Capture()
            gone = capture
            let cancelled = resolver.resolve("shared.test") { _ in
                _ = capture
                Issue.record("a cancelled resolution was told")
            }
            cancelled.cancel()
        }
        #expect(gone == nil)
        #expect(try texts(fixture.answer(resolver, "shared.test")) == ["192.0.2.1"])
        #expect(fixture.server.count("shared.test") == 2)
    }

    @Test func whenTheResolverGoesThoseWhoWaitAreToldAndLateAnswersDoNoHarm() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        var answers: [Answer] = []
        do {
            let resolver = try fixture.resolver()
            for _ in 0..<2 { resolver.resolve("gone.test") { answers.append($0) } }
            resolver.resolve("away.test") { answers.append($0) }
            #expect(answers.isEmpty)
        }
        #expect(answers == Array(repeating: .failure(.cancelled), count: 3))
        settle(fixture.loop)
        #expect(answers.count == 3)
    }

    @Test func theResolverMayBeReleasedInACompletionWhileOthersStillWait() throws {
        let fixture = try Fixture { name in name == "first.test" ? addresses("192.0.2.1") : .silence }
        var resolver: Resolver? = try fixture.resolver()
        var answers: [Answer] = []
        resolver?.resolve("first.test") {
            answers.append($0)
            resolver = nil
            fixture.loop.afterThisTurn { fixture.loop.stop() }
        }
        resolver?.resolve("second.test") { answers.append($0) }
        run(fixture.loop)
        #expect(answers.count == 2)
        #expect(try texts(answers.first) == ["192.0.2.1"])
        #expect(answers.last == .failure(.cancelled))
    }

    @Test func aCompletionMayAskTheNextQuestion() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        let resolver = try fixture.resolver()
        var answers: [Answer] = []
        resolver.resolve("next0.test") { answer in
            answers.append(answer)
            resolver.resolve("next1.test") { answer in
                answers.append(answer)
                fixture.loop.stop()
            }
        }
        run(fixture.loop)
        #expect(answers.count == 2)
    }

    @Test func aReloadForgetsWhatWasKnownAndAsksAgainForWhatIsBeingLookedUp() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        let resolver = try fixture.resolver()
        var answers: [String: Answer] = [:]
        func told(_ name: String) -> (Answer) -> Void {
            { answer in
                answers[name] = answer
                if answers.count == 3 { fixture.loop.stop() }
            }
        }
        fixture.cache.store(
            .failure(.notFound("known.test")), for: "known.test", timeToLive: 1, epoch: fixture.cache.epoch, at: .now())
        resolver.resolve("flying.test", completion: told("old"))
        try resolver.reload()
        #expect(fixture.cache.count == 0)
        #expect(answers.isEmpty)
        // It waits for the repeated look-up.
        resolver.resolve("flying.test", completion: told("new"))
        resolver.resolve("known.test", completion: told("known"))
        run(fixture.loop)
        for name in ["old", "new", "known"] { #expect(try texts(answers[name]) == ["192.0.2.1"]) }
        #expect(fixture.server.questions == ["flying.test": 4, "known.test": 2])
    }

    /// The old servers may be unreachable: a reload doesn't wait for them.
    @Test func aLookUpThatNobodyAnswersIsAskedAgainAfterAReloadAndEndsOnce() throws {
        var isSilent = true
        let fixture = try Fixture { _ in isSilent ? .silence : addresses("192.0.2.1") }
        let resolver = try fixture.resolver()
        var answers: [Answer] = []
        for _ in 0..<2 {
            resolver.resolve("moved.test") { answer in
                answers.append(answer)
                if answers.count == 2 { fixture.loop.afterThisTurn { fixture.loop.stop() } }
            }
        }
        try resolver.reload()
        isSilent = false
        try resolver.reload()
        run(fixture.loop)
        #expect(answers.count == 2)
        for answer in answers { #expect(try texts(answer) == ["192.0.2.1"]) }
        #expect(try texts(fixture.cache.answer(for: "moved.test", at: .now())?.map(\.addresses)) == ["192.0.2.1"])
    }

    /// c-ares has had a cache since 1.31, which remembers missing names for an hour.
    @Test func whatIsKnownIsKnownToTheCacheAlone() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        let channel = try ResolverChannel(loop: fixture.loop, settings: fixture.settings)
        var counts: [Int] = []
        func ask() {
            channel.lookUp("again.test", begun: { _ in }) { _, _ in
                counts.append(fixture.server.count("again.test"))
                fixture.loop.afterThisTurn { if counts.count < 2 { ask() } else { fixture.loop.stop() } }
            }
        }
        ask()
        run(fixture.loop)
        #expect(counts == [2, 4])
        channel.close()
    }

    @Test func theHostsFileComesBeforeDNSAndLocalhostIsThereWithoutEither() throws {
        let fixture = try Fixture { _ in .failure }
        let resolver = try fixture.resolver()
        var answers: [Answer] = []
        for name in ["file.test", "other-name.test", "localhost", "file.test."] {
            resolver.resolve(name) { answers.append($0) }
        }
        #expect(answers.count == 4, "the hosts file needs no waiting")
        #expect(try texts(answers.first) == ["192.0.2.77", "2001:db8::77"])
        // c-ares 1.34 joins a name's lines, and assigns all their values to each name in them.
        #expect(try texts(answers[1]).isSubset(of: ["192.0.2.77", "2001:db8::77"]))
        #expect(try texts(answers[1]).contains("192.0.2.77"))
        #expect(try texts(answers[2]).isSubset(of: ["127.0.0.1", "::1"]))
        #expect(try texts(answers[3]) == ["192.0.2.77", "2001:db8::77"])
        #expect(fixture.server.questions.isEmpty)
        // A changed file is noticed soon: its answers have no time to live.
        #expect(
            fixture.cache.answer(for: "file.test", at: MonotonicTime.now().advanced(byNanoseconds: 1_000_000_000))
                == nil)
    }

    @Test func anAnswerSaysWhereItComesFrom() throws {
        let fixture = try Fixture { _ in addresses("192.0.2.1") }
        let resolver = try fixture.resolver()
        var sources: [String] = []
        func ask(_ name: String, then next: @escaping () -> Void) {
            resolver.answer(to: name) { answer in
                sources.append((try? answer.get().source).map { "\($0)" } ?? "none")
                fixture.loop.afterThisTurn(next)
            }
        }
        ask("asked.test") {
            ask("asked.test") {
                ask("file.test") { ask("localhost") { ask("192.0.2.9") { fixture.loop.stop() } } }
            }
        }
        run(fixture.loop)
        let server = "DNS server \(fixture.server.address)"
        #expect(
            sources == [server, "cache (\(server))", "hosts file", "localhost, without a query", "literal address"])
    }

    @Test func lookUpsLeaveNoDescriptorBehindCancelledAndAbandonedOnesNeither() throws {
        let before = openDescriptorCount()
        for round in 0..<50 {
            let fixture = try Fixture { name in name.hasPrefix("dead") ? .silence : addresses("192.0.2.1") }
            let resolver = try fixture.resolver()
            resolver.resolve("dead\(round).test") { _ in }
            resolver.resolve("dead\(round).test") { _ in }.cancel()
            #expect(try texts(fixture.answer(resolver, "alive\(round).test")) == ["192.0.2.1"])
            try resolver.reload()
        }
        // Other tests open a few meanwhile; a leak would be at least 50.
        #expect(openDescriptorCount() < before + 50)
    }
}

private func openDescriptorCount() -> Int {
    (0..<4096).count { fcntl($0, F_GETFD) >= 0 }
}

/// The hosts file for c-ares, named in the environment. It is set once for the process, before the first look-up:
/// changing the environment while other threads read it isn't safe.
private let hostsFile: String = {
    var path = Array("/tmp/pinproxy-hosts-XXXXXX".utf8CString)
    let descriptor = mkstemp(&path)
    let content = "192.0.2.77 file.test other-name.test\n2001:db8::77 file.test\n"
    _ = content.withCString { write(descriptor, $0, content.utf8.count) }
    _ = close(descriptor)
    let name = String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    setenv("CARES_HOSTS", name, 1)
    atexit { if let name = getenv("CARES_HOSTS") { unlink(name) } }
    return name
}()
