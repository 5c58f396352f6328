import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Certificate Transparency, with logs of the test.
@Suite struct TransparencyTests {
    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day

    let directory: TemporaryDirectory
    let root: HeldCertificate
    let issuer: HeldCertificate
    /// Four logs; the list has three of them.
    let known: [TestLog]
    let logs: TransparencyLogs

    init() throws {
        directory = try TemporaryDirectory()
        root = try HeldCertificate.root()
        issuer = try root.issue(.intermediate("Issuer"))
        known = try ["Argon", "Boron", "Carbon", "Stranger"].map { try TestLog($0) }
        logs = try TransparencyLogs.load(directory.file("logs.cnf", TestLog.list(Array(known.prefix(3)))))
    }

    /// Indices of the logs that issued the certificate's timestamps, its lifetime in days, and whether they are enough.
    static let amounts: [([Int], Int64, Bool)] = [
        ([], 90, false), ([0], 90, false), ([0, 1], 90, true), ([0, 0], 90, false), ([0, 3], 90, false),
        ([3, 0, 1], 90, true), ([0, 1], 180, true), ([0, 1], 181, false), ([0, 1, 2], 181, true),
        ([0, 1, 1], 398, false),
    ]

    @Test(arguments: amounts)
    func embedded(_ indices: [Int], _ days: Int64, _ isEnough: Bool) throws {
        let leaf = try leaf(days: days, indices.map { TestLog.Promise(known[$0]) })
        let (result, passed) = check(leaf)
        #expect(passed == isEnough)
        #expect(result.timestamps.count == indices.count)
        #expect(result.neededEmbedded == (days <= 180 ? 2 : 3))
    }

    @Test func whatIsWrongIsSaid() throws {
        let leaf = try leaf(
            days: 90,
            [
                TestLog.Promise(known[0]), TestLog.Promise(known[1], isBroken: true),
                TestLog.Promise(known[2], at: Self.now + 1), TestLog.Promise(known[3]),
            ])
        let (result, passed) = check(leaf)
        #expect(!passed)
        #expect(result.timestamps.map(\.outcome) == [.valid, .badSignature, .fromTheFuture, .unknownLog])
        #expect(result.timestamps.map(\.log) == ["Argon", "Boron", "Carbon", nil])
        #expect(result.timestamps[0].description == "Argon, 2029-12-31, in the certificate: valid")
        #expect(result.timestamps[3].description.hasSuffix("the log is not in the list"))
        #expect(
            TransparencyFailure(result: result).description
                == "too few certificate timestamps (Certificate Transparency): valid timestamps of 1 different logs in "
                + "the certificate (2 needed) and of 0 in the handshake (2 would do)")
    }

    @Test func broughtByTheHandshake() throws {
        let leaf = try leaf(days: 398, [])
        let two = try TestLog.timestamps([.init(known[0]), .init(known[1])], for: leaf)
        #expect(check(leaf, PeerEvidence(timestamps: two)).passed)
        #expect(!check(leaf, PeerEvidence(timestamps: [two[0]])).passed)
        #expect(!check(leaf, PeerEvidence(timestamps: [two[0], two[0]])).passed)
        // Half of the timestamps are in the OCSP response.
        let response = try issuer.statusResponse(for: leaf, StatusTemplate().with { $0.timestamps = [two[1]] })
        let both = PeerEvidence(ocspResponse: response, timestamps: [two[0]])
        #expect(check(leaf, both).passed)
        #expect(check(leaf, both).result.timestamps.map(\.source) == [.handshake, .ocspResponse])
        // Timestamps of another certificate.
        let other = try self.leaf(days: 398, [])
        #expect(!check(other, PeerEvidence(timestamps: two)).passed)
    }

    @Test func evidenceThatCantBeReadIsNone() throws {
        let leaf = try leaf(days: 90, [.init(known[0]), .init(known[1])])
        let nonsense = PeerEvidence(ocspResponse: [1, 2, 3], timestamps: [[], [0], [0xFF, 1, 2]])
        #expect(check(leaf, nonsense).passed)
        let bare = try issuer.issue(
            .leaf("api.test").with { $0.extensions = [("1.3.6.1.4.1.11129.2.4.2", false, [0x04, 0x01, 0x00])] })
        #expect(!check(bare, nonsense).passed)
        let full = try TestLog.timestamps([.init(known[0])], for: leaf)[0]
        for count in 0..<full.count { #expect(!check(bare, PeerEvidence(timestamps: [Array(full[..<count])])).passed) }
    }

    @Test func manyTimestampsAreNotAllLookedAt() throws {
        let leaf = try leaf(days: 90, [])
        let one = try TestLog.timestamps([.init(known[0])], for: leaf)[0]
        let many = [[UInt8]](repeating: one, count: 500)
        #expect(check(leaf, PeerEvidence(timestamps: many)).result.timestamps.count == 16)
    }

    @Test func withoutAnIssuer() throws {
        let leaf = try leaf(days: 90, [.init(known[0]), .init(known[1])])
        let chain = VerifiedChain(certificates: [try Certificate(der: leaf.der)])
        guard case .failure(let failure) = chain.checkTransparency(nil, logs: logs, at: Self.now) else {
            Issue.record("it passed")
            return
        }
        #expect(failure.result.timestamps.map(\.outcome) == [.noIssuer, .noIssuer])
    }

    // MARK: Files

    @Test func digests() throws {
        let same = try TransparencyLogs.load(
            directory.file("same.cnf", "# a comment\n" + TestLog.list(Array(known.prefix(3).reversed()))))
        #expect(same.digest == logs.digest)
        let fewer = try TransparencyLogs.load(directory.file("fewer.cnf", TestLog.list([known[0]])))
        #expect(fewer.digest != logs.digest)
    }

    static let broken: [(String, String)] = [
        ("", "it enables no log (enabled_logs = NAME, …)"),
        ("enabled_logs = a\n", "log a: there is no section [a] with a description"),
        ("enabled_logs = a\n[a]\ndescription = A\n", "log a: it has no key"),
        ("enabled_logs = a\n[a]\ndescription = A\nkey = %%%\n", "log a: its key is not base64"),
        ("enabled_logs = a\n[a]\ndescription = A\nkey = AAAA\n", "log a: its key is not a key: "),
        ("enabled_logs = a,,b\n[a]\ndescription = A\nkey = AAAA\n", "log a: "),
    ]

    @Test(arguments: broken)
    func filesThatCantBeUsed(_ text: String, _ message: String) throws {
        let path = try directory.file("bad.cnf", text)
        let error = #expect(throws: TransparencyLogsError.self) { try TransparencyLogs.load(path) }
        #expect(error?.description.hasPrefix("\(path): \(message)") == true, "\(String(describing: error))")
    }

    @Test func brokenSyntaxSaysWhere() throws {
        let path = try directory.file("bad.cnf", "# logs\n[a\n")
        let error = #expect(throws: TransparencyLogsError.self) { try TransparencyLogs.load(path) }
        #expect(error?.description.hasPrefix("\(path):2: ") == true, "\(String(describing: error))")
        let missing = "\(directory.path)/missing"
        #expect(throws: TransparencyLogsError.unreadable(path: missing, .system(2))) {
            try TransparencyLogs.load(missing)
        }
    }

    // MARK: Bed

    private func leaf(days: Int64, _ promises: [TestLog.Promise]) throws -> HeldCertificate {
        try issuer.issue(
            .leaf("api.test").with {
                $0.notBefore = Self.now - Self.day
                $0.notAfter = $0.notBefore + days * Self.day
                $0.timestamps = promises
            })
    }

    private func check(
        _ leaf: HeldCertificate, _ evidence: PeerEvidence? = nil
    ) -> (
        result: TransparencyResult, passed: Bool
    ) {
        do {
            let chain = VerifiedChain(certificates: try ([leaf] + leaf.issuers).map { try Certificate(der: $0.der) })
            switch chain.checkTransparency(evidence, logs: logs, at: Self.now) {
            case .success(let result): return (result, true)
            case .failure(let failure): return (failure.result, false)
            }
        } catch {
            Issue.record(error)
            return (TransparencyResult(timestamps: [], neededEmbedded: 0, neededDelivered: 0), false)
        }
    }
}
