@testable import Configuration
import EventLoop
import Foundation
import HTTPWire
import Testing

@testable import Proxy

@Suite struct UserVerifierTests {
    private static let file = UserFile(
        path: "users",
        lines: [
            "ann:$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
            "bob:$2b$04$Zbcdefghijklmnopqrstuu7l1RuZ0j0kNQ8HllgcvKJOUX1ZYSEEq",
        ])

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
    private func ask(_ verifier: UserVerifier, _ text: String) throws -> (isGood: Bool, atOnce: Bool) {
        let loop = try EventLoop()
        var answer: Bool?
        verifier.verify(try #require(basic(text)), on: loop) {
            answer = $0
            loop.stop()
        }
        let atOnce = answer != nil
        if !atOnce { loop.run() }
        return (try #require(answer as Bool?), atOnce)
    }

    @Test(arguments: [
        ("ann:correct horse", true), ("bob:tr:ü", true), ("ann:Correct horse", false), ("ann:", false),
        ("bob:correct horse", false), ("eve:correct horse", false), ("ann:correct horse\u{0}x", false),
    ])
    func onlyTheRightPasswordIsGood(_ text: String, _ isGood: Bool) throws {
        #expect(try ask(UserVerifier(file: Self.file), text).isGood == isGood)
    }

    @Test func whatWasRightIsAnsweredAtOnce() throws {
        let verifier = try UserVerifier(file: Self.file)
        #expect(try ask(verifier, "ann:correct horse") == (true, false))
        #expect(try ask(verifier, "ann:correct horse") == (true, true))
        #expect(try ask(verifier, "ann:wrong") == (false, false))
        #expect(try ask(verifier, "ann:wrong") == (false, false))
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

    @Test(arguments: ["ann:$1$abc$def", "ann", "ann:{SHA}x", "ann:$2x$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"])
    func otherHashesAreRefused(_ line: String) {
        #expect(throws: UserFileError.self) { try UserVerifier(file: UserFile(path: "users", lines: [line])) }
    }
}
