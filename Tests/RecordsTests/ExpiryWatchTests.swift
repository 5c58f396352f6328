import Foundation
import PinproxyConfiguration
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyRecords

/// What expires soon, by a clock that the test sets.
@Suite final class ExpiryWatchTests {
    private static let now = CertificateTemplate.now
    private static let day: Int64 = 86_400
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private let directory: String

    init() throws {
        directory = NSTemporaryDirectory() + "pinproxy-expiry-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    @discardableResult
    private func write(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
        let path = directory + "/" + name
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    private func findings(_ entries: String, at time: Int64 = now) throws -> [ExpiryWatch.Finding] {
        try write("pins.yaml", "hosts:\n" + entries)
        let file = try write("pinproxy.yaml", "pins: pins.yaml\n")
        return ExpiryWatch.findings(in: try Snapshot.load(file, stateDirectory: directory), at: time)
    }

    private func certificate(_ name: String, endingIn days: Int64) throws -> HeldCertificate {
        let held = try HeldCertificate.selfSigned(
            .leaf("\(name).test").with { $0.notAfter = Self.now + days * Self.day })
        try write("\(name).pem", held.pem)
        try write("\(name).key", held.keyPEM)
        return held
    }

    /// The clock is at the beginning of 2030-01-01.
    @Test(
        arguments: [
            ("2030-02-01", nil), ("2030-01-31", 30), ("2030-01-11", 10), ("2030-01-02", 1), ("2030-01-01", 0),
            ("2029-12-31", -1), ("2029-01-01", -365), ("2030-01-01T12:00:00Z", 0), ("2029-12-31T12:00:00Z", -1),
        ] as [(String, Int64?)]) func anEntryIsNamedFromThirtyDaysBefore(expires: String, daysLeft: Int64?) throws
    {
        let found = try findings(
            "  - match: a.test\n    pinning: public-key\n    pins: [\(Self.pin)]\n    expires: \(expires)\n")
        #expect(found.map(\.daysLeft) == (daysLeft.map { [$0] } ?? []))
        #expect(found.allSatisfy { $0.subject == .entry && $0.entry == "a.test" && $0.name == nil })
        #expect(found.allSatisfy { $0.location == "\(directory)/pins.yaml:2" })
    }

    @Test(arguments: ["public-key", "certificate"])
    func aPinnedCertificateIsNamedAlsoWhereOnlyItsKeyIsPinned(mode: String) throws {
        _ = try certificate("soon", endingIn: 10)
        _ = try certificate("late", endingIn: 31)
        _ = try certificate("gone", endingIn: -3)
        let found = try findings(
            """
              - match: a.test
                pinning: \(mode)
                pins: [{file: late.pem}, {file: soon.pem}, {file: gone.pem}]

            """)
        // The most urgent first.
        #expect(found.map(\.name) == ["file: gone.pem", "file: soon.pem"])
        #expect(found.map(\.daysLeft) == [-3, 10])
        #expect(found.allSatisfy { $0.subject == .pin })
    }

    @Test func aPinThatComesFromNoCertificateHasNoEnd() throws {
        let held = try certificate("key", endingIn: 1)
        try write("key.pub", held.key.publicKeyPEM)
        #expect(
            try findings(
                "  - match: a.test\n    pinning: public-key\n    pins: [\(Self.pin), {file: key.pub}]\n"
            ).isEmpty)
    }

    @Test func theClientCertificateIsNamed() throws {
        _ = try certificate("client", endingIn: 5)
        let found = try findings(
            "  - match: a.test\n    client_certificate: {certificate: client.pem, private_key: client.key}\n")
        #expect(found.map(\.subject) == [.clientCertificate])
        #expect(found.map(\.daysLeft) == [5])
        #expect(found.first?.name?.contains("client.test") == true)
    }
}
