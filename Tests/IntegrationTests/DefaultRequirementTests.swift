import Foundation
import PinproxyTestAuthority
import Testing

/// Requirements of the pin file besides pins, in the running proxy: by `defaults` for a host that has
/// no entry, and taken back by an entry.
@Suite(.timeLimit(.minutes(5)))
struct DefaultRequirementTests {
    struct Requirement: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The line below `defaults`.
        let line: @Sendable (TestBed, TestRoots, HeldCertificate) throws -> String
        /// The line of the entry that does without.
        let takenBack: String
        /// In the reason phrase.
        let cause: String
    }

    static let requirements = [
        Requirement(
            testDescription: "a leaf on its issuer's list",
            line: { bed, roots, leaf in
                let list = RevocationListTemplate().with {
                    $0.thisUpdate = TestRoots.now - 60
                    $0.nextUpdate = TestRoots.now + 3600
                    $0.revoked = [(serial, TestRoots.now - 1000, nil)]
                }
                return "crl_files: [\(try bed.file("list.crl", roots.intermediate.revocationList(list)))]"
            }, takenBack: "crl_files: []", cause: "revoked"),
        Requirement(
            testDescription: "no OCSP response where one is asked for", line: { _, _, _ in "ocsp: require" },
            takenBack: "ocsp: if-stapled", cause: "no good OCSP response"),
        Requirement(
            testDescription: "a leaf that is not in public logs",
            line: { bed, _, _ in
                "ct_log_list: \(try bed.file("logs.cnf", TestLog.list([TestLog("one"), TestLog("two")])))"
            }, takenBack: "ct_log_list: null", cause: "not in public logs"),
        Requirement(
            testDescription: "a leaf that is valid for too long", line: { _, _, _ in "max_leaf_lifetime: 30d" },
            takenBack: "max_leaf_lifetime: 61d", cause: "valid for too long"),
        Requirement(
            testDescription: "an origin that only speaks TLS 1.2", line: { _, _, _ in "min_tls: 1.3" },
            takenBack: "min_tls: 1.2", cause: "TLS"),
    ]

    private static let serial: [UInt8] = [0x11, 0x22, 0x33]

    @Test(arguments: requirements)
    func whatTheDefaultsAskOfAnOriginAnEntryTakesBack(_ requirement: Requirement) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("asked.test", "excused.test") { $0.serial = Self.serial }
            let server = try await OpenSSLServer(in: bed, chain: ServedChain(leaf), ["-www", "-tls1_2"])
            let pins = """
                defaults:
                  \(try requirement.line(bed, roots, leaf))
                hosts:
                  - match: excused.test
                    \(requirement.takenBack)

                """
            let proxy = try await ProxyProcess(
                in: bed, pins: pins, trust: roots.write(to: bed),
                hosts: ["asked.test": "127.0.0.1", "excused.test": "127.0.0.1"])
            let refused = try await proxy.connect(to: "asked.test:\(server.port)")
            #expect(refused.status == 502, "\(refused)")
            #expect(refused.reason.contains(requirement.cause), "\(refused)")
            #expect(try await proxy.connect(to: "excused.test:\(server.port)").status == 200)
        }
    }
}
