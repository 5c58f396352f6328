import PinproxyEventLoop
import Testing

@testable import PinproxyIsolation

@Suite struct NameMessageTests {
    static func question(_ name: String, type: UInt8, flags: [UInt8] = [1, 0], count: UInt8 = 1) -> [UInt8] {
        let labels = name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        return [0xAB, 0xCD] + flags + [0, count, 0, 0, 0, 0, 0, 0] + labels + [0, 0, type, 0, 1]
    }

    private func addresses(_ texts: String...) throws -> [IPAddress] { try texts.map { try #require(IPAddress($0)) } }

    private func message(_ bytes: [UInt8]) throws -> NameMessage {
        guard case .question(let message) = NameMessage.parse(bytes) else { throw NotAQuestion() }
        return message
    }

    private struct NotAQuestion: Error {}

    @Test func addressesOfTheFamilyThatWasAskedFor() throws {
        let (four, six) = ("192.0.2.7", "2001:db8::7")
        let all = try addresses(four, six)
        let first = try message(Self.question("Api.test", type: 1))
        #expect(first.name == "Api.test" && first.kind == .ipv4)
        let start: [UInt8] = [0xAB, 0xCD, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]
        let name: [UInt8] = [3] + Array("Api".utf8) + [4] + Array("test".utf8) + [0]
        #expect(
            first.answer(all, longest: 512)
                == start + name + [0, 1, 0, 1, 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 10, 0, 4, 192, 0, 2, 7])
        let second = try message(Self.question("Api.test", type: 28)).answer(all, longest: 512)
        #expect(second.suffix(18) == [0, 16] + (try addresses(six))[0].bytes)
        // The name exists, though without such a record: the answer isn't NXDOMAIN.
        #expect(
            try message(Self.question("Api.test", type: 65)).answer(all, longest: 512)[3...7] == [0x80, 0, 1, 0, 0])
    }

    @Test func whatIsTooLongIsAskedForOverTCP() throws {
        let many = (0..<40).compactMap { IPAddress("192.0.2.\($0)") }
        let question = try message(Self.question("many.test", type: 1))
        let short = question.answer(many, longest: 512)
        #expect(short.count < 512 && short[2] & 2 == 2 && short[7] == 0)
        let long = question.answer(many, longest: 65535)
        #expect(long[2] & 2 == 0 && long[7] == 40 && long.count == short.count + 40 * 16)
    }

    @Test(arguments: [(NameMessage.Status.unknownName, UInt8(3)), (.failed, 2), (.refused, 5)])
    func errors(status: NameMessage.Status, code: UInt8) throws {
        let answer = try message(Self.question("a.test", type: 1)).answer(status)
        #expect(answer[3] == 0x80 | code && answer.suffix(12) == Self.question("a.test", type: 1).suffix(12))
    }

    /// The code of an answer to it; nil: there is no answer.
    private func code(_ bytes: [UInt8]) -> UInt8? {
        guard case .answer(let answer) = NameMessage.parse(bytes) else { return nil }
        return answer[3] & 15
    }

    @Test func whatCannotBeAnsweredIsSaid() {
        #expect(NameMessage.parse([1, 2, 3]) == .nothing)
        // An answer, which must not be answered.
        #expect(NameMessage.parse(Self.question("a.test", type: 1, flags: [0x81, 0])) == .nothing)
        // TXT, PTR, a status request, a question with two names, none.
        #expect(code(Self.question("a.test", type: 16)) == 4)
        #expect(code(Self.question("1.2.0.192.in-addr.arpa", type: 12)) == 4)
        #expect(code(Self.question("a.test", type: 1, flags: [0x11, 0])) == 4)
        #expect(code(Self.question("a.test", type: 1, count: 2)) == 1)
        #expect(code(Self.question("a.test", type: 1, count: 0)) == 1)
        // A pointer, and a name with a dot or a space in a label.
        #expect(code(Array(Self.question("", type: 1).prefix(12)) + [0xC0, 12, 0, 1, 0, 1]) == 1)
        #expect(code(Self.question("a b.test", type: 1)) == 3)
        #expect(code(Self.question("\u{0}.test", type: 1)) == 3)
    }

    @Test func everyPrefixIsTakenForNoQuestion() {
        let whole = Self.question("a.long.name.test", type: 1)
        for length in 0..<whole.count {
            if case .question = NameMessage.parse(Array(whole[..<length])) { Issue.record("\(length) bytes") }
        }
    }

    /// A resolver adds information after the question (EDNS).
    @Test func whatFollowsIsPassedOver() throws {
        let edns: [UInt8] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
        var bytes = Self.question("a.test", type: 1) + edns
        bytes[11] = 1
        #expect(try message(bytes).answer([], longest: 512).count == bytes.count - edns.count)
    }
}
