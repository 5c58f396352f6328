import Foundation
import PinproxySecurity
import PinproxySession
import Testing

@testable import PinproxyConfiguration

/// The shipped files must work as they are, and with the lines that users may uncomment.
@Suite struct ShippedFilesTests {
    private static let directory = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("config").path

    private func shipped(_ name: String) throws -> String {
        try String(contentsOfFile: Self.directory + "/" + name, encoding: .utf8)
    }

    @Test func passWithoutAWarning() throws {
        let snapshot = try Snapshot.load(Self.directory + "/pinproxy.yaml", stateDirectory: "/nowhere")
        #expect(snapshot.warnings == [])
        #expect(snapshot.hosts.entries.isEmpty)
    }

    @Test func sayTheDefaults() throws {
        let shipped = try Snapshot.load(Self.directory + "/pinproxy.yaml", stateDirectory: "/nowhere")
        let bed = try ConfigurationBed(["pinproxy.yaml": "pins: null\n"])
        let defaults = try bed.load()
        #expect(shipped.proxy.listen == defaults.proxy.listen)
        #expect(shipped.proxy.allowClients == defaults.proxy.allowClients)
        #expect(shipped.proxy.via == defaults.proxy.via)
        #expect(shipped.authority.leafLifetime == defaults.authority.leafLifetime)
        #expect(shipped.upstream.addresses == defaults.upstream.addresses)
        #expect(shipped.timeouts == defaults.timeouts)
        #expect(shipped.limits == defaults.limits)
        #expect(shipped.log == defaults.log)
        #expect(shipped.defaultAction == defaults.defaultAction)
    }

    /// The example of docs/rules.md, and the lines that are said to explain it.
    @Test func theDocumentedRulesWork() throws {
        let page = try shipped("../docs/rules.md")
        let start = try #require(page.range(of: "```yaml\n")).upperBound
        let end = try #require(page.range(of: "```\n", range: start..<page.endIndex)).lowerBound
        let snapshot = try ConfigurationBed(pins: String(page[start..<end])).load()
        #expect(snapshot.warnings == [])
        let rules = try #require(snapshot.entry(for: "api.example.com", port: 443)?.rules)
        guard case .decided(let choice) = rules.choose(path: "/v1/upload/7", method: "PUT") else {
            Issue.record("the path is ambiguous")
            return
        }
        #expect(
            rules.keys(choice).map { "\($0.name): \($0.value)  (\($0.source), config/pins.yaml:\($0.place.line ?? 0))" }
                .allSatisfy(page.contains))
        #expect(rules.keys(choice).count == 2)
    }

    @Test func haveExamplesThatWorkWhenUncommented() throws {
        let text = try shipped("pins.yaml")
        let start = try #require(text.range(of: "\nhosts:\n")).upperBound
        let examples = text[start...].split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.hasPrefix("#") ? $0.dropFirst() : $0 }.joined(separator: "\n")
        let pins = String(text[..<start]) + examples
        let bed = try ConfigurationBed(["pinproxy.yaml": "pins: pins.yaml\n", "pins.yaml": pins])
        let snapshot = try bed.load()
        #expect(snapshot.warnings == [])
        #expect(snapshot.entry(for: "api.example.com", port: 443)?.policy.mode == .publicKey)
        #expect(snapshot.entry(for: "www.bank.example", port: 443)?.action == .tunnel)
        #expect(snapshot.entry(for: "ads.example.net", port: 443)?.action == .deny)
    }
}
