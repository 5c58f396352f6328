import PinproxyEventLoop
import Testing

@testable import PinproxyIsolation

@Suite struct NamesTests {
    private let one = IPAddress(bytes: [192, 0, 2, 1])!
    private let two = IPAddress(bytes: [192, 0, 2, 2])!

    /// Answers names from a table, and records what was asked.
    private final class Table {
        var answers: [String: NameAnswer] = [:]
        var asked: [String] = []
        var held: [(NameAnswer) -> Void]?
        lazy var names = Names { [unowned self] name, answered in
            asked.append(name)
            if held != nil { held?.append(answered) } else { answered(answers[name] ?? .unknown) }
        }

        func verdict(_ address: IPAddress, _ host: String) -> Names.Verdict? {
            var verdict: Names.Verdict?
            names.check(address, isOf: host) { verdict = $0 }
            return verdict
        }
    }

    @Test func anAddressIsTheNamesIfTheProxySaysSo() {
        let table = Table()
        table.answers = ["a.test": .addresses([one]), "broken.test": .failed("no")]
        #expect(table.verdict(one, "A.test") == .isOfName)
        #expect(table.verdict(two, "a.test") == .isNot([one]))
        #expect(table.verdict(two, "none.test") == .isNot([]))
        #expect(table.verdict(one, "broken.test") == .cannotTell("no"))
        #expect(table.verdict(one, "192.0.2.1") == .isOfName)
        #expect(table.verdict(two, "192.0.2.1") == .isNot([one]))
    }

    /// A program may keep an answer longer than it is valid.
    @Test func whatWasAnsweredStaysTrueForTheRun() {
        let table = Table()
        table.answers = ["a.test.": .addresses([one]), "a.test": .addresses([two])]
        table.names.addresses(of: "a.TEST") { _ in }
        #expect(table.asked == ["a.test."])
        #expect(table.verdict(one, "a.test") == .isOfName)
        #expect(table.verdict(two, "a.test") == .isOfName)
        // Only for that name.
        #expect(table.verdict(one, "b.test") == .isNot([]))
    }

    /// The program is redirected to the proxy, which gives the reason.
    @Test func aRefusedHostIsWhereverTheProgramBelievesItToBe() {
        let table = Table()
        table.answers = ["denied.test.": .refused, "denied.test": .refused]
        var answers: [NameAnswer] = []
        table.names.addresses(of: "denied.test") { answers.append($0) }
        #expect(answers == [.addresses([Names.placeholder])] && "\(Names.placeholder)" == "192.0.0.8")
        #expect(table.verdict(Names.placeholder, "denied.test") == .isOfName)
        #expect(table.verdict(one, "denied.test") == .isOfName)
        #expect(table.verdict(Names.placeholder, "other.test") == .isNot([]))
        // A reload that allows the name keeps the program's earlier answer valid.
        table.answers["denied.test"] = .addresses([one])
        #expect(table.verdict(Names.placeholder, "denied.test") == .isOfName)
    }

    @Test func aNameIsAskedForOnceAtATime() {
        let table = Table()
        table.held = []
        var answers: [NameAnswer] = []
        for _ in 0..<3 { table.names.addresses(of: "a.test") { answers.append($0) } }
        #expect(table.asked == ["a.test."])
        table.held?.first?(.addresses([one]))
        #expect(answers == Array(repeating: .addresses([one]), count: 3))
    }

    @Test func whatIsRememberedIsBounded() {
        let table = Table()
        for number in 0...Names.limit { table.answers["\(number).test."] = .addresses([one]) }
        for number in 0...Names.limit { table.names.addresses(of: "\(number).test") { _ in } }
        #expect(table.verdict(one, "\(Names.limit).test") == .isOfName)
        #expect(table.verdict(one, "0.test") == .isNot([]))
        for number in 0..<255 {
            table.answers["a.test."] = .addresses([IPAddress(bytes: [192, 0, 2, UInt8(number)])!])
            table.names.addresses(of: "a.test") { _ in }
        }
        #expect(table.verdict(IPAddress(bytes: [192, 0, 2, 254])!, "a.test") == .isOfName)
        #expect(table.verdict(one, "a.test") == .isNot([]))
    }
}
