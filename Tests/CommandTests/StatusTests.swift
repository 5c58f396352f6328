import Foundation
import Testing

@testable import pinproxy

@Suite struct StatusTests {
    private static let counts = """
        {"entries": {"api.test": {"since": 1893456000, "accepted": 7, "misses": 2, "lastMiss": 1893459600, \
        "matchesSinceMiss": 3, "pins": {"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=": \
        {"since": 1893456000, "matches": 5, "first": 1893456000, "last": 1893628800}, \
        "sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=": {"since": 1893456000, "matches": 0, \
        "removed": 1893456001}}}}}
        """

    /// A state directory with counts that a proxy left.
    private func bed(_ counts: String) throws -> CommandBed {
        let bed = try CommandBed()
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        try bed.write("state/pinproxy/pins.json", counts)
        return bed
    }

    @Test func saysThatNoProxyIsRunningAndWhatWasCounted() throws {
        let outcome = try bed(Self.counts).configured("status")
        #expect(outcome.code == 1)
        #expect(
            outcome.output.contains(
                """
                api.test: 7 connections met a pin, 2 missed, the last 2030-01-01
                  sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=: 5 matches from 2030-01-01 to 2030-01-03
                  sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=: 0 matches (no longer configured)
                """), "\(outcome)")
        #expect(outcome.output.hasPrefix("not running"))
    }

    @Test func answersPrograms() throws {
        let outcome = try bed(Self.counts).configured("status", "--json")
        #expect(outcome.code == 1)
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        #expect(report["running"] as? Bool == false)
        let entry = try #require((report["entries"] as? [[String: Any]])?.first)
        #expect(entry["last_miss"] as? Int == 1_893_459_600)
        #expect((entry["pins"] as? [[String: Any]])?.first?["matches"] as? Int == 5)
    }

    @Test(arguments: ["", "{", "[]", "{\"entries\": 7}"])
    func namesAFileThatCannotBeRead(_ contents: String) throws {
        let outcome = try bed(contents).configured("status")
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("pins.json"), "\(outcome)")
    }
}
