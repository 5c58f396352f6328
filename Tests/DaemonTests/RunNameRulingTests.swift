import Foundation
import PinproxyConfiguration
import Testing

@testable import PinproxyDaemon

@Suite struct RunNameRulingTests {
    private func snapshot(_ pins: String) throws -> Snapshot {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "pinproxy-names-\(UUID().uuidString)"
        ).path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try "pins: pins.yaml\n".write(toFile: directory + "/pinproxy.yaml", atomically: false, encoding: .utf8)
        try pins.write(toFile: directory + "/pins.yaml", atomically: false, encoding: .utf8)
        return try Snapshot.load(directory + "/pinproxy.yaml", stateDirectory: directory)
    }

    private static let pin = "sha256/" + String(repeating: "A", count: 43) + "="

    /// A host that the proxy would refuse is not looked up, in any spelling.
    @Test(arguments: [
        ("denied.test", RunNameRuling.refused), ("DENIED.test.", .refused), ("free.test", .lookUp),
        ("free.test.", .lookUp),
        ("a.denied.test", .lookUp), ("x.wild.test", .refused), ("pinned.test", .lookUp), ("plain.test", .lookUp),
        ("secure.test", .lookUp),
        ("nowhere.test", .refused), ("own.test", .lookUp), ("others.test", .refused), ("unit.test", .refused),
        ("pinproxy.test", .own), ("wrong.pinproxy.TEST.", .own),
        ("", .unfit), (".", .unfit), ("a b", .unfit), ("free.test:80", .unfit), ("free.test:443", .lookUp),
        ("127.0.0.1", .unfit),
        ("user@free.test", .unfit), ("free.test/", .unfit), ("*.test", .unfit),
    ])
    func aNameIsJudgedFirst(_ name: String, _ ruling: RunNameRuling) throws {
        let snapshot = try snapshot(
            """
            defaults: {action: deny}
            hosts:
              - {match: denied.test, action: deny}
              - {match: "*.wild.test", action: deny}
              - {match: free.test, action: intercept}
              - {match: a.denied.test, action: tunnel}
              - {match: pinned.test, pinning: public-key, pins: [\(Self.pin)]}
              - {match: "plain.test:443", action: deny}
              - {match: "plain.test:80", action: intercept}
              - {match: "secure.test:443", action: intercept}
              - {match: own.test, action: intercept, clients: {users: [root]}}
              - {match: others.test, action: intercept, clients: {users: [daemon]}}
              - {match: unit.test, action: intercept, clients: {units: [ci.service]}}
            """)
        #expect(RunNameRuling(name, ofUser: 0, isLetIn: true, in: snapshot) == ruling)
    }

    @Test func aRunThatIsNotLetInLooksNothingUp() throws {
        let snapshot = try snapshot("hosts: []\n")
        #expect(RunNameRuling("free.test", ofUser: 0, isLetIn: true, in: snapshot) == .lookUp)
        #expect(RunNameRuling("free.test", ofUser: 0, isLetIn: false, in: snapshot) == .refused)
    }
}
