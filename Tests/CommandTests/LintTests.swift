import Foundation
import PinproxySecurity
import PinproxyTestAuthority
import Testing

@testable import pinproxy

/// `pinproxy lint --offline`: what the files alone show, on a day that the test sets.
@Suite(.serialized) struct LintTests {
    static let pins = ["A", "B", "C"].map { "sha256/\(String(repeating: $0, count: 42))A=" }
    static let today = "2030-01-01"

    /// A finding of lint in a pin file, as `LINE:COLUMN severity rule` with the message.
    struct Finding: Decodable {
        let rule: String
        let severity: String
        let file: String
        let line: Int?
        let column: Int?
        let entry: String?
        let message: String
        let fix: String

        var summary: String { "\(line ?? 0):\(column ?? 0) \(severity) \(rule)" }
    }

    static func lint(_ bed: CommandBed, at date: String = today) throws -> [Finding] {
        let outcome = try bed.configured("lint", rest: ["--offline", "--json", "--at", date])
        guard outcome.code == 0 else { throw Failed(outcome: outcome) }
        return try JSONDecoder().decode([Finding].self, from: Data(outcome.output.utf8))
    }

    struct Failed: Error { let outcome: CommandBed.Outcome }

    static func bed(_ pins: String) throws -> CommandBed {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", pins)
        return bed
    }

    static func entry(_ pattern: String, pins: Int = 2, _ more: String = "") -> String {
        let list = Self.pins.prefix(pins).joined(separator: ", ")
        return "  - {match: \"\(pattern)\", pinning: public-key, pins: [\(list)]\(more)}\n"
    }

    @Test func hasNothingToSayOfWhatIsRight() throws {
        let bed = try Self.bed("hosts:\n" + Self.entry("api.test") + "  - {match: b.test, action: deny}\n")
        #expect(try Self.lint(bed).isEmpty)
        let outcome = try bed.configured("lint", rest: ["--offline", "--strict"])
        #expect(outcome == .init(code: 0, output: "0 warnings, 0 notes\n", errors: ""))
    }

    @Test func asksForABackup() throws {
        let found = try Self.lint(Self.bed("hosts:\n" + Self.entry("api.test", pins: 1)))
        #expect(found.map(\.summary) == ["2:13 warning no-backup"])
        #expect(found[0].entry == "api.test")
        #expect(found[0].file.hasSuffix("/pins.yaml"))
        #expect(!found[0].fix.isEmpty)
        // Two spellings of one pin are one pin.
        let pin = Self.pins[0]
        let twice = "hosts: [{match: a.test, pinning: public-key, pins: [\(pin), \(pin.replacing("/", with: "//"))]}]\n"
        #expect(try Set(Self.lint(Self.bed(twice)).map(\.rule)) == ["configuration", "no-backup"])
    }

    @Test func tellsWhatExpires() throws {
        let text = { (more: String) in "hosts:\n" + Self.entry("api.test", ", expires: 2030-01-21\(more)") }
        func message(_ date: String, _ more: String) throws -> String? {
            let found = try Self.lint(Self.bed(text(more)), at: date)
            #expect(found.allSatisfy { $0.rule == "entry-expires" && $0.severity == "warning" })
            return found.first?.message
        }
        #expect(try message("2029-12-21", "") == nil)
        #expect(
            try message("2029-12-22", "")
                == "api.test: the pins expire 2030-01-21, in 30 days; they will still be enforced")
        let soon = try #require(try message("2030-01-20", ", on_expiry: deny"))
        #expect(soon.hasSuffix("in 1 day; the host will then be refused"))
        #expect(
            try message("2030-01-21", ", on_expiry: deny")?.hasSuffix(
                "expired 2030-01-21, less than a minute ago; the host is refused") == true)
        let late = try #require(try message("2030-01-31", ", on_expiry: report"))
        #expect(late.hasSuffix("10 days ago; a mismatch is only reported now"))
    }

    @Test func tellsWhichCertificatesEnd() throws {
        let bed = try Self.bed(
            "hosts: [{match: api.test, pinning: public-key, pins: [{file: leaf.pem}, \(Self.pins[0])]}]\n")
        // Valid until 2030-01-31.
        try bed.write("leaf.pem", try HeldCertificate.root().issue(.leaf("api.test")).pem)
        #expect(try Self.lint(bed, at: "2029-12-31").isEmpty)
        let found = try Self.lint(bed, at: "2030-01-11")
        #expect(found.map(\.rule) == ["certificate-expires"])
        #expect(found[0].message.contains("file: leaf.pem expires 2030-01-31, in 20 days"))
    }

    @Test(arguments: [
        ("b.api.test", ", enforcement: report", "**.api.test"), ("b.api.test", "", nil),
        ("*.b.api.test", ", enforcement: report", "**.api.test"),
        ("**.b.api.test", ", enforcement: report", "**.api.test"),
        ("b.api.test:8443", ", enforcement: report", "**.api.test"), ("b.other.test", ", enforcement: report", nil),
        ("badapi.test", ", enforcement: report", nil), ("b.one.test", ", enforcement: report", "*.one.test"),
        ("a.b.one.test", ", enforcement: report", nil), ("b.port.test", ", enforcement: report", nil),
        ("b.port.test:8443", ", enforcement: report", "*.port.test:8443"),
        ("b.near.api.test", ", enforcement: report", "*.near.api.test"),
    ]) func findsEntriesInTheShadow(_ pattern: String, _ more: String, _ wildcard: String?) throws {
        let wildcards = ["**.api.test", "*.one.test", "*.port.test:8443", "*.near.api.test"]
        let bed = try Self.bed("hosts:\n" + wildcards.map { Self.entry($0) }.joined() + Self.entry(pattern, more))
        let found = try Self.lint(bed).filter { $0.rule == "shadowed" }
        #expect(found.map(\.entry) == (wildcard == nil ? [] : [pattern]))
        if let wildcard { #expect(found.first?.message.contains("the pins of \(wildcard) (line ") == true) }
    }

    @Test(arguments: ["action: tunnel", "pinning: none", "action: deny", "action: intercept"])
    func namesWhatIsWeaker(_ weakness: String) throws {
        let bed = try Self.bed("hosts:\n" + Self.entry("**.test") + "  - {match: a.test, \(weakness)}\n")
        #expect(try Self.lint(bed).map(\.summary) == (weakness == "action: deny" ? [] : ["3:13 warning shadowed"]))
    }

    @Test(arguments: [
        ("a.test", "", true), ("a.test", ", clients: {users: [root]}", false), ("a.test", ", action: deny", false),
        ("a.other", "", false),
    ]) func findsEntriesThatAreForEverybody(_ pattern: String, _ more: String, _ isFound: Bool) throws {
        let bed = try Self.bed(
            "hosts:\n  - {match: \"**.test\", clients: {users: [root]}}\n  - {match: \(pattern)\(more)}\n")
        let found = try Self.lint(bed)
        #expect(found.map(\.rule) == (isFound ? ["shadowed"] : []), "\(found)")
        #expect(
            !isFound || found.first?.message.contains("the clients of **.test (line 2) do not apply here") == true,
            "\(found)")
    }

    @Test func saysThatProgramsAloneAreNoBoundary() throws {
        let bed = try Self.bed(
            "hosts:\n  - {match: a.test, clients: {executables: [/bin/sh]}}\n"
                + "  - {match: b.test, clients: {executables: [/bin/sh], users: [root]}}\n")
        #expect(try Self.lint(bed).map(\.summary) == ["2:13 note weak-clients"])
    }

    @Test func repeatsWhatCheckWarnsOf() throws {
        let bed = try Self.bed(
            "hosts:\n  - {match: \"*.co.uk\", validates_domain_name: false}\n"
                + Self.entry("a.test", ", enforcement: report"))
        let found = try Self.lint(bed)
        #expect(found.map(\.rule) == ["public-suffix", "insecure", "report-only"])
        #expect(found.map(\.line) == [2, 2, 3])
        #expect(Set(found.map(\.fix)).count == 3)
        let check = try bed.configured("check")
        for finding in found where finding.rule != "report-only" { #expect(check.errors.contains(finding.message)) }
    }

    @Test func isStrictIfAsked() throws {
        let bed = try Self.bed("hosts:\n" + Self.entry("api.test", pins: 1))
        let outcome = try bed.configured("lint", rest: ["--offline", "--strict"])
        #expect(outcome.code == 1)
        #expect(outcome.errors == "")
        #expect(outcome.output.contains("pins.yaml:2:13: warning: api.test: there is one pin and no backup"))
        #expect(outcome.output.contains("[no-backup]\n    fix: add the pin of a spare key"))
        #expect(outcome.output.hasSuffix("1 warning, 0 notes\n"))
        #expect(try bed.configured("lint", rest: ["--offline", "--at", "yesterday"]).code == 2)
        try bed.write("pins.yaml", "hostz: []\n")
        let wrong = try bed.configured("lint", rest: ["--offline"])
        #expect(wrong.code == 78)
        #expect(wrong.errors.contains("pins.yaml:1:1: error: unknown key \"hostz\""))
    }

    @Test func itsHelpNamesEveryRule() throws {
        let help = try CommandBed().run("lint", "--help").output
        for rule in LintFinding.Rule.allCases { #expect(help.contains("\n  \(rule.rawValue) ")) }
    }
}
