import FoundationEssentials
import Logging
import PinproxyHTTPWire
import Synchronization
import Testing

@testable import PinproxyClients
@testable import PinproxyConfiguration

@Suite struct RunTests {
    private func begin(
        _ register: RunRegister, _ token: RunToken = RunToken(), owner: UInt32 = 1000, isOwn: Bool = false,
        grant: Run.Grant = .nothing
    ) throws -> Run {
        try register.begin(token, owner: owner, isOwn: isOwn, grant: grant) {}
    }

    @Test func aRunIsKnownByItsTokenAsLongAsItLasts() throws {
        let (register, token) = (RunRegister(), RunToken())
        #expect(register.isEmpty)
        let run = try begin(register, token)
        #expect(!register.isEmpty)
        #expect(register.run(with: token) === run)
        #expect(register.run(with: RunToken()) == nil)
        #expect(throws: RunRegister.Failure.self) { try begin(register, token) }
        register.end(token)
        register.end(token)
        #expect(register.run(with: token) == nil)
        #expect(register.isEmpty)
    }

    /// No user takes all the space, and the proxy's own user finds space as long as there is any.
    @Test func runsAreBounded() throws {
        let register = RunRegister()
        func count(owner: UInt32, isOwn: Bool) -> Int {
            var count = 0
            while (try? begin(register, owner: owner, isOwn: isOwn)) != nil { count += 1 }
            return count
        }
        #expect(count(owner: 1000, isOwn: false) == RunRegister.limitOfOne)
        #expect(count(owner: 1001, isOwn: false) == RunRegister.limitOfOne)
        #expect(count(owner: 0, isOwn: true) == RunRegister.limit - 2 * RunRegister.limitOfOne)
        #expect(count(owner: 1002, isOwn: false) == 0)
    }

    @Test func aThousandRefusalsAreFewLines() throws {
        let told = Atomic(0)
        let run = try RunRegister().begin(RunToken(), owner: 1, isOwn: true, grant: .nothing) {
            told.add(1, ordering: .relaxed)
        }
        let authority = try Authority.parse("bad.test", defaultPort: 443).get()
        for number in 0..<1000 { run.refused(number.isMultiple(of: 2) ? "even" : "odd", asking: authority) }
        #expect(told.load(ordering: .relaxed) == 2)
        #expect(Array(run.refusals(from: 0)) == ["even", "odd"].map { RunRefusal(host: "bad.test", cause: $0) })
        #expect(run.summary == RunSummary(requests: 0, counts: [500, 500], unlisted: 0))
        for number in 0..<1000 { run.refused("cause \(number)", asking: nil) }
        #expect(run.refusals(from: 0).count == RunRefusals.limit)
        #expect(run.summary.unlisted == 1000 - (RunRefusals.limit - 2))
        #expect(told.load(ordering: .relaxed) == RunRefusals.limit)
    }

    /// The first request is named, and others refused for the same reason are counted.
    @Test func refusalsByRulesNameTheFirstRequest() throws {
        let run = try begin(RunRegister(), RunToken())
        let authority = try Authority.parse("rule.test", defaultPort: 443).get()
        for path in ["/a", "/b"] {
            run.refused("no", asking: authority, options: ExplainCommandLine.options(method: "PUT", path: path))
        }
        let refusals = Array(run.refusals(from: 0))
        #expect(
            refusals == [RunRefusal(host: "rule.test", cause: "no", options: ["--path", "/a", "--method", "PUT"])])
        #expect(run.summary.counts == [2])
        run.refused("long", asking: authority, options: ["--path", "/" + String(repeating: "x", count: 512)])
        #expect(Array(run.refusals(from: 1)) == [RunRefusal(host: "rule.test", cause: "long")])
    }

    /// The reason phrase of some refusals ends with the details.
    @Test(arguments: [
        ("Request not sent: no form", "no form", "Request not sent: no form"),
        ("Request not sent", "Request not sent: no form", "Request not sent: no form"),
        ("Request not sent", "a.test: no form", "Request not sent: no form"),
    ]) func aCauseIsSaidOnce(reasonPhrase: String, details: String, said: String) throws {
        let run = try begin(RunRegister(), RunToken())
        let report = RefusalReport(
            status: 400, reasonPhrase: reasonPhrase, proxyStatusError: "http_request_error", details: details,
            title: "Request not sent", body: [], host: "a.test")
        run.refused(report, asking: nil)
        #expect(Array(run.refusals(from: 0)) == [RunRefusal(host: nil, cause: said)])
    }

    // MARK: Questions

    private final class Answers: Sendable {
        private let heard = Mutex<[Bool]>([])
        var all: [Bool] { heard.withLock { $0 } }
        func add(_ answer: Bool) { heard.withLock { $0.append(answer) } }
    }

    @Test func aQuestionIsAnsweredOnceAndOnlyOnceItWasAsked() throws {
        let (questions, answers) = (RunQuestions(), Answers())
        func received(_ number: UInt64, _ isHeld: Bool) -> Bool {
            questions.received(RunAnswer(number: number, isHeld: isHeld))
        }
        #expect(!received(0, true) && !received(1, true))
        let first = try #require(questions.ask(about: 7) { answers.add($0) })
        // It can be guessed, and wasn't sent.
        #expect(!received(first, true) && answers.all == [])
        #expect(questions.takeUnsent() == [RunQuestion(number: first, socket: 7)])
        #expect(questions.takeUnsent() == [])
        #expect(!received(first + 1, true) && received(first, true) && !received(first, false))
        #expect(answers.all == [true])
    }

    /// A run that is stopped, or doesn't answer, is not waited for a second time.
    @Test func aRunThatOwesAnAnswerIsNotAsked() throws {
        let (questions, answers) = (RunQuestions(), Answers())
        let first = try #require(questions.ask(about: 1) { answers.add($0) })
        _ = questions.takeUnsent()
        let second = try #require(questions.ask(about: 2) { answers.add($0) })
        // It was never sent, which is not the run's fault.
        questions.giveUp(second)
        #expect(questions.takeUnsent() == [])
        #expect(questions.ask(about: 3) { answers.add($0) } != nil)
        questions.giveUp(first)
        #expect(questions.ask(about: 4) { answers.add($0) } == nil)
        #expect(questions.received(RunAnswer(number: first, isHeld: true)) && answers.all == [])
        #expect(questions.ask(about: 5) { answers.add($0) } != nil)
        questions.end()
        #expect(answers.all == [false, false])
        #expect(questions.ask(about: 6) { answers.add($0) } == nil)
    }

    @Test func questionsAreBounded() {
        let (questions, answers) = (RunQuestions(), Answers())
        var asked = 0
        while questions.ask(about: 1, { answers.add($0) }) != nil { asked += 1 }
        #expect(asked == RunQuestions.limit)
    }

    @Test func runsAreAskedByTheirUser() throws {
        let register = RunRegister()
        let runs = try [1000, 1001, 1000].map { try begin(register, owner: $0) }
        #expect(register.runs(of: 1000).map(\.number) == [runs[0].number, runs[2].number])
        #expect(register.runs(of: 0).isEmpty)
    }

    /// A program that sends the token on request was not refused.
    @Test func whatIsAskedForAPasswordIsToldAtTheEnd() throws {
        let run = try begin(RunRegister())
        let (one, other) = (
            try Authority.parse("one.test", defaultPort: 443).get(),
            try Authority.parse("other.test:80", defaultPort: nil).get()
        )
        for authority in [one, other, other] { run.challenged(asking: authority) }
        #expect(run.hasChallenges && run.refusals(from: 0).isEmpty)
        run.answeredChallenge(asking: one)
        run.settle()
        #expect(run.refusals(from: 0).map(\.host) == ["other.test:80"] && run.summary.counts == [2])
        for number in 0..<1000 { run.challenged(asking: try Authority.parse("\(number).test", defaultPort: 443).get()) }
        #expect(run.refusals(from: 0).count == RunRefusals.limit)
        run.settle()
        #expect(run.summary.unlisted + run.summary.counts.count == 1001)
    }

    // MARK: Refusals

    /// Text that a client sent reaches a terminal in the end.
    @Test func aRefusalIsOneLineOfPrintableASCII() throws {
        let run = try begin(RunRegister())
        run.refused("a\u{1B}[2Jb\r\nc\u{202E}\(String(repeating: "x", count: 5000))", asking: nil)
        let cause = try #require(run.refusals(from: 0).first?.cause)
        #expect(cause.hasPrefix("a?[2Jb  c?xx") && cause.utf8.count == 512)
    }

    @Test func aTokenShowsNothingAndIsReadWhole() throws {
        let token = RunToken()
        #expect(
            "\(token) \(String(reflecting: token)) \(Mirror(reflecting: token).children.count)"
                == "a run's token a run's token 0")
        #expect(token.text.utf8.count == 64 && RunToken().text != token.text)
        #expect(RunToken(token.text)?.text == token.text)
        for length in 0..<64 { #expect(RunToken(token.text.prefix(length)) == nil) }
        for wrong in [token.text + "0", String(token.text.dropLast()) + "g", String(token.text.dropLast()) + "é"] {
            #expect(RunToken(wrong) == nil, "\(wrong)")
        }
    }

    // MARK: proxy.users

    private static func users(_ hash: String) throws -> UserVerifier {
        try UserVerifier(
            file: UserFile(path: "users", lines: ["ann:\(hash)"]),
            logger: Logger(label: "none") { _ in SwiftLogNoOpLogHandler() })
    }

    private static let hash = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
    private static let another = "$2b$04$Zbcdefghijklmnopqrstuu7l1RuZ0j0kNQ8HllgcvKJOUX1ZYSEEq"

    /// A token grants only the access of the user who began the run.
    @Test func aTokenGrantsWhatItsBearerHadShown() throws {
        let users = try Self.users(Self.hash)
        let ann = try #require(users.user(named: Array("ann".utf8)))
        let register = RunRegister()
        #expect(try !begin(register).isLetIn(by: users))
        #expect(try begin(register, grant: .user(ann)).isLetIn(by: users))
        // The password has changed.
        #expect(try !begin(register, grant: .user(ann)).isLetIn(by: Self.users(Self.another)))
        let token = RunToken()
        let own = try begin(register, token, isOwn: true, grant: .owner)
        #expect(own.isLetIn(by: users))
        register.end(token)
        #expect(!own.isLetIn(by: users))
        #expect(!ClientIdentity().isLetIn(by: users))
        #expect(ClientIdentity(user: ann).isLetIn(by: users))
        // The user of a connection doesn't count as the run's.
        #expect(try !ClientIdentity(user: ann, run: begin(register)).isLetIn(by: users))
    }
}
