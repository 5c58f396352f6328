import Foundation
import Logging
import PinproxyEventLoop
import PinproxyHTTPWire
import Synchronization
import Testing

@testable import PinproxyClients
@testable import PinproxyConfiguration

@Suite struct UserVerifierTests {
    private static let file = UserFile(
        path: "users",
        lines: [
            "ann:$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
            "bob:$2b$04$Zbcdefghijklmnopqrstuu7l1RuZ0j0kNQ8HllgcvKJOUX1ZYSEEq",
        ])

    private static let logger = Logger(label: "none") { _ in SwiftLogNoOpLogHandler() }

    /// Comparisons wait in a queue that doesn't move: excess ones are not reported as wrong.
    @Test func whatCannotWaitIsNotCompared() throws {
        let lines = LoggedEvents()
        let queue = DispatchQueue(label: "comparisons", attributes: .initiallyInactive)
        let verifier = try UserVerifier(
            file: Self.file, logger: Logger(label: "log") { _ in lines.handler }, run: { queue.async(execute: $0) })
        let loop = try EventLoop()
        var answers: [UserVerifier.Ruling] = []
        // No user gets more than a share, and four users fill the queue.
        let (share, total) = (UserVerifier.longestOfOne, UserVerifier.longestQueue)
        for (user, count) in [(1, share + 3), (2, share), (3, share), (4, share), (5, 1)] as [(UInt32, Int)] {
            for number in 0..<count {
                let isRight = user == 1 && number == 0
                verifier.verify(
                    try #require(basic("ann:\(isRight ? "correct horse" : "\(user) \(number)")")), for: .user(user),
                    on: loop
                ) {
                    answers.append($0)
                    if answers.count == total + 4 { loop.stop() }
                }
            }
        }
        let full = UserVerifier.Ruling.notCompared("16 passwords of user 1")
        #expect(answers == [full, full, full, .notCompared("64 passwords")])
        #expect(lines.all == ["warning users.limit"])
        queue.activate()
        loop.run()
        #expect(answers.count { $0 == .right } == 1)
        #expect(answers.count { $0 == .wrong } == total - 1)
        // The end of the shortage is logged once, with the number of passwords not compared.
        #expect(lines.all == ["warning users.limit", "notice users.limit 4"])
    }

    /// Someone who tries many passwords delays another user by one comparison.
    @Test func whoTriesManyWaitsForHisOwn() throws {
        let queue = DispatchQueue(label: "comparisons", attributes: .initiallyInactive)
        let verifier = try UserVerifier(file: Self.file, logger: Self.logger, run: { queue.async(execute: $0) })
        let loop = try EventLoop()
        var order: [UInt32] = []
        func verify(_ text: String, _ user: UInt32) throws {
            verifier.verify(try #require(basic(text)), for: .user(user), on: loop) { _ in
                order.append(user)
                if order.count == 13 { loop.stop() }
            }
        }
        for number in 0..<10 { try verify("ann:\(number)", 1) }
        // The same password, at once, over many connections is one comparison.
        for _ in 0..<3 { try verify("ann:correct horse", 2) }
        queue.activate()
        loop.run()
        #expect(order.prefix(4) == [1, 2, 2, 2] && order.count == 13)
    }

    private func credentials(_ fields: String) -> Credentials? {
        let bytes = Array("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\(fields)\r\n".utf8)
        var parser = HeadParser(limit: 4096)
        var head = RequestHead()
        guard case .complete = parser.parseRequest(bytes.span, into: &head) else { return nil }
        return Credentials(in: head, bytes.span)
    }

    private func basic(_ text: String) -> Credentials? {
        credentials("Proxy-Authorization: Basic \(Data(text.utf8).base64EncodedString())\r\n")
    }

    /// The answer, and whether it came before `verify` returned.
    private func ask(_ verifier: UserVerifier, _ text: String) throws -> (ruling: UserVerifier.Ruling, atOnce: Bool) {
        let loop = try EventLoop()
        var answer: UserVerifier.Ruling?
        verifier.verify(try #require(basic(text)), for: .unknown, on: loop) {
            answer = $0
            loop.stop()
        }
        let atOnce = answer != nil
        if !atOnce { loop.run() }
        return (try #require(answer as UserVerifier.Ruling?), atOnce)
    }

    @Test(arguments: [
        ("ann:correct horse", true), ("bob:tr:ü", true), ("ann:Correct horse", false), ("ann:", false),
        ("bob:correct horse", false), ("eve:correct horse", false), ("ann:correct horse\u{0}x", false),
    ])
    func onlyTheRightPasswordIsGood(_ text: String, _ isGood: Bool) throws {
        #expect(try ask(UserVerifier(file: Self.file, logger: Self.logger), text).ruling == (isGood ? .right : .wrong))
    }

    @Test func whatWasRightIsAnsweredAtOnce() throws {
        let verifier = try UserVerifier(file: Self.file, logger: Self.logger)
        #expect(try ask(verifier, "ann:correct horse") == (.right, false))
        #expect(try ask(verifier, "ann:correct horse") == (.right, true))
        #expect(try ask(verifier, "ann:wrong") == (.wrong, false))
        #expect(try ask(verifier, "ann:wrong") == (.wrong, false))
    }

    @Test(arguments: [
        "", "Proxy-Authorization: Bearer YTpi\r\n", "Proxy-Authorization: Basic\r\n",
        "Proxy-Authorization: Basic !!!!\r\n", "Proxy-Authorization: Basic YWI=\r\n",
        "Proxy-Authorization: Basic YTpi\r\nProxy-Authorization: Basic YTpi\r\n", "Authorization: Basic YTpi\r\n",
    ])
    func otherFieldsAreNoCredentials(_ fields: String) {
        #expect(credentials(fields) == nil)
    }

    @Test func theSchemeHasNoCase() throws {
        let read = try #require(credentials("Proxy-Authorization: bASIC  YTpi\r\n"))
        #expect(read.user == Array("a".utf8) && read.password == Array("b".utf8))
    }

    @Test func credentialsAreNotPrinted() throws {
        let secret = try #require(basic("ann:hunter2"))
        var dumped = ""
        dump(secret, to: &dumped)
        let bytes = "\(Array("hunter2".utf8))"
        for text in ["\(secret)", String(reflecting: secret), dumped] {
            #expect(!text.contains("hunter2") && !text.contains("ann") && !text.contains(bytes))
        }
    }

    @Test(arguments: [
        "ann:$1$abc$def", "ann", "ann:{SHA}x", "ann:$2x$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
    ])
    func otherHashesAreRefused(_ line: String) {
        #expect(throws: UserFileError.self) {
            try UserVerifier(file: UserFile(path: "users", lines: [line]), logger: Self.logger)
        }
    }
}

/// The events of one logger, each with its level and its count if it has one.
private final class LoggedEvents: Sendable {
    private let events = Mutex<[String]>([])
    var all: [String] { events.withLock { $0 } }
    var handler: Handler { Handler(log: self) }

    struct Handler: LogHandler {
        let log: LoggedEvents
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]
        var metadataProvider: Logger.MetadataProvider?

        init(log: LoggedEvents) { self.log = log }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: Logging.LogEvent) {
            let count = event.metadata?["not_compared"].map { " \($0)" } ?? ""
            log.events.withLock { $0.append("\(event.level) \(event.message)\(count)") }
        }
    }
}
