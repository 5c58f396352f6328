import Foundation
import PinproxySecurity
import PinproxySerialization
import PinproxySession
import Testing

@testable import PinproxyConfiguration

/// The man pages of the files name every key that the readers know.
@Suite struct ManualPageTests {
    private static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    /// The page that `make manual` makes, without the roff escapes of its text.
    private func page(_ name: String) throws -> String {
        let bed = try ConfigurationBed()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-B", "docs/manual.py", "config/\(name)", bed.directory]
        process.currentDirectoryURL = URL(fileURLWithPath: Self.repository)
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return try String(contentsOfFile: bed.path("\(name).5"), encoding: .utf8)
            .replacingOccurrences(of: "\\-", with: "-").replacingOccurrences(of: "\\&", with: "")
    }

    /// The sections with unknown-key errors, each with the keys that are known there.
    private func knownKeys(_ bed: ConfigurationBed) throws -> [String: Set<String>] {
        var known: [String: Set<String>] = [:]
        for problem in bed.problems() where problem.contains("unknown key \"qqqqqqqqqqqqqqqq\"") {
            let keys = try #require(problem.components(separatedBy: "known here: ").last, "\(problem)")
            let place = problem.components(separatedBy: " in \"").dropFirst().first?.prefix { $0 != "\"" } ?? ""
            known[String(place), default: []].formUnion(keys.components(separatedBy: ", "))
        }
        return known
    }

    private func missing(_ keys: Set<String>, in page: String) -> [String] {
        keys.filter { key in page.range(of: "(?m)(^|[^a-z_])\(key)(:|, | and )", options: .regularExpression) == nil }
            .sorted()
    }

    @Test func pinsNameEveryKey() throws {
        let unknown = "qqqqqqqqqqqqqqqq: 1"
        let rules = """
            session: {\(unknown), credentials: {\(unknown)}}, request: {\(unknown), authorization: {\(unknown)}, \
            convert_body: {\(unknown)}, throttle: {\(unknown)}, parts: [{\(unknown)}]}, response: {\(unknown)}
            """
        let bed = try ConfigurationBed(
            pins: """
                \(unknown)
                defaults: {\(unknown)}
                hosts:
                  - {match: a.example.com, pinning: public-key, pins: [{\(unknown)}], client_certificate: {\(unknown)},
                     clients: {\(unknown)}, \(unknown), \(rules), rules: [{path: /x, \(unknown)}]}
                  - {match: b.example.com, client_certificate: {pkcs12: none.p12, \(unknown)}}
                """)
        let known = try knownKeys(bed)
        #expect(
            known.keys.sorted()
                == [
                    "", "authorization", "clients", "client_certificate", "convert_body", "credentials", "defaults",
                    "hosts", "parts", "pins",
                    "request", "response", "rules", "session", "throttle",
                ].sorted(), "\(bed.problems())")
        #expect(
            known["hosts"]?.contains("max_leaf_lifetime") == true
                && known["session"]?.count == SessionRules.Key.allCases.count)
        let page = try page("pins.yaml")
        for (section, keys) in known { #expect(missing(keys, in: page) == [], "\(section)") }
    }

    @Test func settingsNameEveryKey() throws {
        let sections = ["proxy", "admin", "authority", "upstream", "timeouts", "limits", "log"]
        let lines = sections.map { "\($0): {qqqqqqqqqqqqqqqq: 1}\n" }.joined()
        let bed = try ConfigurationBed(["pinproxy.yaml": "qqqqqqqqqqqqqqqq: 1\n" + lines])
        let known = try knownKeys(bed)
        #expect(known.keys.sorted() == ([""] + sections).sorted(), "\(bed.problems())")
        let page = try page("pinproxy.yaml")
        for (section, keys) in known { #expect(missing(keys, in: page) == [], "\(section)") }
    }

    /// The list of all keys in docs/rules.md, which is in the man page too.
    @Test func theListOfRulesShowsTheDefaults() throws {
        let page = try String(contentsOfFile: Self.repository + "/docs/rules.md", encoding: .utf8)
        let list = try #require(page.components(separatedBy: "\n## All keys\n").last?.components(separatedBy: "```")[1])
        let snapshot = try ConfigurationBed(pins: String(list.dropFirst("yaml\n".count))).load()
        #expect(snapshot.warnings == [])
        let rules = try #require(snapshot.entry(for: "api.example.com", port: 443)?.rules?.entry)
        func expectDefaults<Rules: RuleTable>(_ table: WrittenTable<Rules>) {
            for key in Rules.Key.allCases {
                #expect(table.places[key] != nil, "\(Rules.name).\(key.rawValue) is missing")
                #expect(table.isDefault(key), "\(Rules.name).\(key.rawValue) is not the default")
            }
        }
        expectDefaults(rules.own.session)
        expectDefaults(rules.own.request)
        expectDefaults(rules.own.response)
        #expect(rules.rules.count == 1)
    }
}
