import Foundation
import PinproxyTestAuthority
import Testing

/// The files of `crl_files`: the proxy warns before they cut hosts off, and rereads them automatically.
@Suite(.timeLimit(.minutes(5)))
struct RevocationListFileTests {
    private func list(_ issuer: HeldCertificate, from begin: Int64, to end: Int64) throws -> [UInt8] {
        try issuer.revocationList(
            RevocationListTemplate().with {
                $0.thisUpdate = TestRoots.now + begin
                $0.nextUpdate = TestRoots.now + end
            })
    }

    private func pinproxy(_ bed: TestBed, _ arguments: String...) async throws -> Run {
        try await bed.run(
            [ProxyProcess.executable] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed))
    }

    private static let (hour, day): (Int64, Int64) = (3600, 86_400)

    @Test func aStaleListIsAnnouncedAndAFreshOneTakenUp() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("listed.test"))
            let host = "listed.test:\(origin.port)"
            let file = bed.path("proxy/corp.crl")
            try bed.file("proxy/corp.crl", list(roots.intermediate, from: -8 * Self.day, to: -5 * Self.hour))
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n  - match: \(host)\n    crl_files: [corp.crl]\n", trust: roots.write(to: bed),
                hosts: ["listed.test": "127.0.0.1"])

            let warning = try await proxy.events.first("crl.expiring")
            #expect(
                warning["file"] == file && warning["days_left"] == "-1" && warning["level"] == "warning", "\(warning)")
            #expect(warning["issuer"]?.contains("CN=Test Intermediate") == true)
            let refused = try await proxy.connect(to: host)
            Expected.refused(502, "no current CRL").check(refused, host: "listed.test")
            #expect(refused.body.contains("the CRL of CN=Test Intermediate"), "\(refused)")
            #expect(refused.body.contains("corp.crl"), "\(refused)")
            let check = try await pinproxy(bed, "check")
            #expect(check.errors.contains("pins.yaml:2:12: warning: listed.test:"), "\(check)")
            #expect(check.errors.contains("(\(file)) expired"), "\(check)")
            #expect(check.errors.contains(", 5 hours ago: every host"), "\(check)")
            let lint = try await pinproxy(bed, "lint")
            #expect(
                lint.output.contains(
                    "5 hours ago: every host with a certificate of this issuer is refused [crl-expires]"), "\(lint)")
            #expect(lint.output.contains("[refused-now]"), "an entry without pins is asked too: \(lint)")
            let stale = try await pinproxy(bed, "explain", host)
            #expect(stale.output.contains("\(file): list of CN=Test Intermediate, expired"), "\(stale)")

            // A half-edited pin file doesn't get in the way.
            try bed.file("proxy/pins.yaml", "hosts:\n  - match: half an ent")
            try bed.file("proxy/corp.crl", list(roots.intermediate, from: -Self.hour, to: 30 * Self.day))
            #expect(try await proxy.events.first("crl.reload")["files"] == file)
            #expect(try await proxy.connect(to: host).status == 200)

            // A broken list changes nothing.
            try bed.file("proxy/corp.crl", "nonsense")
            let failed = try await proxy.events.first("crl.failed")
            #expect(failed["cause"]?.contains("corp.crl: not a PEM or DER CRL") == true, "\(failed)")
            #expect(try await proxy.connect(to: host).status == 200)
            // Nor does a list that revokes another certificate.
            let revoking = try roots.intermediate.revocationList(
                RevocationListTemplate().with {
                    $0.thisUpdate = TestRoots.now - 60
                    $0.nextUpdate = TestRoots.now + Self.day
                    $0.revoked = [(serial: [0x7F, 1], date: TestRoots.now - 60, reason: nil)]
                })
            try bed.file("proxy/corp.crl", revoking)
            _ = try await proxy.events.first("crl.reload", number: 2)
            #expect(try await proxy.connect(to: host).status == 200)
        }
    }

    /// A list's expiry is reported in the last quarter of its validity. `lint --at` knows earlier.
    @Test func theEndIsToldBeforeIt() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            try bed.file("proxy/corp.crl", list(roots.intermediate, from: -4 * Self.day, to: 4 * Self.day))
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "defaults:\n  crl_files: [corp.crl]\nhosts: []\n",
                trust: roots.write(to: bed))
            func lint(_ days: Int64) async throws -> Run {
                let day = Date(timeIntervalSince1970: TimeInterval(TestRoots.now + days * Self.day))
                return try await pinproxy(bed, "lint", "--offline", "--at", day.formatted(.iso8601))
            }
            #expect(try await !lint(1).output.contains("crl-expires"))
            let soon = try await lint(3)
            #expect(soon.output.contains("will then be refused [crl-expires]"), "\(soon)")
            #expect(soon.output.contains("pins.yaml: warning: the CRL of CN=Test Intermediate"), "\(soon)")
            #expect(try await lint(5).output.contains("1 day ago: every host"))
            #expect(try await pinproxy(bed, "check").errors == "")
        }
    }

    /// Which list was used, until when it is valid, and which issuer has no list.
    @Test func explainNamesTheLists() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("listed.test"))
            try bed.file("proxy/corp.crl", list(roots.intermediate, from: -Self.hour, to: 30 * Self.day))
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "defaults:\n  crl_files: [corp.crl]\nhosts: []\n",
                trust: roots.write(to: bed))
            try bed.file("proxy/hosts", "127.0.0.1 listed.test\n")
            let run = try await pinproxy(bed, "explain", "listed.test:\(origin.port)", "--verbose")
            #expect(run.succeeded, "\(run)")
            #expect(run.output.contains("corp.crl: list of CN=Test Intermediate, valid until 20"), "\(run)")
            #expect(run.output.contains("no list for CN=Test Root: its certificates are not checked"), "\(run)")
        }
    }
}
