import Foundation
import PinproxyTestAuthority
import Testing

/// What an entry requires of a server besides its pins, with servers that comply and servers that don't.
struct RequirementCase: Sendable, CustomTestStringConvertible {
    /// What a case is made of.
    struct Parts: Sendable {
        let bed: TestBed
        let roots: TestRoots
        let logs: [TestLog]
        let leaf: HeldCertificate

        /// A file beside the pin file.
        func file(_ name: String, _ bytes: [UInt8]) throws -> String {
            let path = "proxy/\(leaf.pem.hashValue)-\(name)"
            try bed.file(path, bytes)
            return bed.path(path)
        }

        /// nginx's directives that staple a response about the leaf.
        func stapling(_ change: (inout StatusTemplate) -> Void = { _ in }) throws -> String {
            let template = StatusTemplate().with {
                $0.thisUpdate = TestRoots.now - 3600
                $0.nextUpdate = TestRoots.now + 86_400
                change(&$0)
            }
            let path = try file("ocsp.der", try roots.intermediate.statusResponse(for: leaf, template))
            return "ssl_stapling on; ssl_stapling_file \(path);"
        }

        /// The `crl_files` of an entry: the issuer's list.
        func list(_ change: (inout RevocationListTemplate) -> Void = { _ in }) throws -> String {
            let template = RevocationListTemplate().with {
                $0.thisUpdate = TestRoots.now - 3600
                $0.nextUpdate = TestRoots.now + 86_400
                change(&$0)
            }
            return "crl_files: [\(try file("crl.der", try roots.intermediate.revocationList(template)))]"
        }

        /// The `ct_log_list` of an entry: the first two logs.
        func logList() throws -> String {
            "ct_log_list: \(try file("logs.cnf", Array(TestLog.list(Array(logs.prefix(2))).utf8)))"
        }
    }

    let testDescription: String
    let host: String
    let expected: Expected
    var leaf: @Sendable (inout CertificateTemplate, [TestLog]) -> Void = { _, _ in }
    /// nginx's directives.
    var server: @Sendable (Parts) throws -> String = { _ in "" }
    var entry: @Sendable (Parts) throws -> [String] = { _ in [] }

    static let serial: [UInt8] = [0x0A, 0xBC]

    static let all: [RequirementCase] = [
        .init(
            testDescription: "a good response, which is required", host: "stapled.test", expected: .accepted,
            server: { try $0.stapling() }, entry: { _ in ["ocsp: require"] }),
        .init(
            testDescription: "no response, and one is required", host: "unstapled.test",
            expected: .refused(502, "no good OCSP response"), entry: { _ in ["ocsp: require"] }),
        .init(testDescription: "no response, and none is required", host: "plain.test", expected: .accepted),
        .init(
            testDescription: "a response that says revoked, with the defaults", host: "revoked.test",
            expected: .refused(502, "revoked"),
            server: { try $0.stapling { $0.status = .revoked(date: TestRoots.now - 7200, reason: 1) } }),
        .init(
            testDescription: "a response that says revoked, ignored", host: "ignored.test", expected: .accepted,
            server: { try $0.stapling { $0.status = .revoked(date: TestRoots.now - 7200, reason: 1) } },
            entry: { _ in ["ocsp: ignore"] }),
        .init(
            testDescription: "a certificate that promises a response and comes without", host: "must-staple.test",
            expected: .refused(502, "must-staple"),
            leaf: { template, _ in
                template.extensions = [("1.3.6.1.5.5.7.1.24", false, [0x30, 0x03, 0x02, 0x01, 0x05])]
            }),
        .init(
            testDescription: "a list without the certificate", host: "listed.test", expected: .accepted,
            entry: { [try $0.list()] }),
        .init(
            testDescription: "a list with the certificate", host: "listed-revoked.test",
            expected: .refused(502, "revoked"), leaf: { template, _ in template.serial = serial },
            entry: { [try $0.list { $0.revoked = [(serial, TestRoots.now - 7200, 1)] }] }),
        .init(
            testDescription: "a list that is out of date", host: "old-list.test",
            expected: .refused(502, "no current CRL"), entry: { [try $0.list { $0.nextUpdate = TestRoots.now - 60 }] }),
        .init(
            testDescription: "a certificate in two public logs", host: "logged.test", expected: .accepted,
            leaf: { template, logs in
                template.timestamps = logs.prefix(2).map { .init($0, at: TestRoots.now - 3600) }
            }, entry: { [try $0.logList()] }),
        .init(
            testDescription: "a certificate in no public log", host: "unlogged.test",
            expected: .refused(502, "not in public logs"), entry: { [try $0.logList()] }),
        .init(
            testDescription: "a certificate in a log that isn't in the list", host: "strange-log.test",
            expected: .refused(502, "not in public logs"),
            leaf: { template, logs in
                template.timestamps = logs.suffix(2).map { .init($0, at: TestRoots.now - 3600) }
            }, entry: { [try $0.logList()] }),
        .init(
            testDescription: "a leaf that is valid for too long", host: "long.test",
            expected: .refused(502, "valid for too long"), entry: { _ in ["max_leaf_lifetime: 10d"] }),
        .init(
            testDescription: "a leaf that is valid for as long as it may", host: "short.test", expected: .accepted,
            entry: { _ in ["max_leaf_lifetime: 398d"] }),
        .init(
            testDescription: "report-only pins don't soften the rest", host: "report-revoked.test",
            expected: .refused(502, "revoked"),
            server: { try $0.stapling { $0.status = .revoked(date: TestRoots.now - 7200, reason: nil) } },
            entry: { _ in ["pinning: public-key", "pins: [\(String.wrongPin)]", "enforcement: report"] }),
    ]

    /// One nginx with a site for each case, one proxy with an entry for each.
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let logs = try ["Argon", "Boron", "Carbon"].map { try TestLog($0) }
        var sites: [NginxOrigin.Site] = []
        var pins = "hosts:\n"
        for test in all {
            let leaf = try roots.leaf(test.host) { test.leaf(&$0, logs) }
            let parts = Parts(bed: bed, roots: roots, logs: logs, leaf: leaf)
            sites.append(.init(name: test.host, chain: ServedChain(leaf), directives: try test.server(parts)))
            pins += (["- match: \(test.host)"] + (try test.entry(parts)).map { "  \($0)" }).map { "  \($0)\n" }.joined()
        }
        let nginx = try await NginxOrigin(in: bed, sites: sites)
        let hosts = Dictionary(uniqueKeysWithValues: all.map { ($0.host, "127.0.0.1") })
        let proxy = try await ProxyProcess(in: bed, pins: pins, trust: roots.write(to: bed), hosts: hosts)
        return SharedBed(bed: bed, proxy: proxy, originPort: nginx.port)
    }
}

@Suite(.sharedBed(RequirementCase.prepare), .timeLimit(.minutes(5)))
struct RequirementTests {
    @Test(arguments: RequirementCase.all)
    func isAskedFor(_ test: RequirementCase) async throws {
        let shared = try sharedBed()
        // Twice: nginx may resume the first one's session for the second.
        for _ in 1...2 {
            let answer = try await shared.proxy.connect(to: "\(test.host):\(shared.originPort)")
            test.expected.check(answer, host: test.host)
        }
    }
}

/// A host that requires a client certificate.
@Suite(.timeLimit(.minutes(5)))
struct ClientCertificateTests {
    private struct Bed {
        let proxy: ProxyProcess
        let nginx: NginxOrigin
        let roots: TestRoots
    }

    /// An nginx that reports the client's name, with a separate root for clients.
    private func prepare(_ bed: TestBed, _ entry: (HeldCertificate) async throws -> String) async throws -> Bed {
        let roots = try TestRoots()
        let clients = try TestRoots("Client")
        let directives = """
            ssl_client_certificate \(try bed.file("clients.pem", clients.root.pem));
            ssl_verify_client on; ssl_verify_depth 3;
            location /who { return 200 "$ssl_client_verify $ssl_client_s_dn\\n"; }
            """
        let nginx = try await NginxOrigin(
            in: bed, sites: [.init(name: "mutual.test", chain: try roots.chain("mutual.test"), directives: directives)])
        let client = try clients.intermediate.issue(
            TestRoots.template(["client.test"]) { $0.extendedKeyUsage = [CertificateTemplate.clientAuth] })
        let pins = "hosts:\n  - match: mutual.test\n\(try await entry(client))"
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed), hosts: ["mutual.test": "127.0.0.1"])
        return Bed(proxy: proxy, nginx: nginx, roots: roots)
    }

    private func who(_ bed: TestBed, _ parts: Bed) async throws -> Run {
        try await bed.curl(via: parts.proxy, ["https://mutual.test:\(parts.nginx.port)/who"])
    }

    @Test func aCertificateAndItsKeyAreShown() async throws {
        try await withTestBed { bed in
            let parts = try await prepare(bed) { client in
                try bed.file("proxy/client.pem", client.chainPEM)
                try bed.file("proxy/client.key", client.keyPEM)
                return "    client_certificate: {certificate: client.pem, private_key: client.key}\n"
            }
            let run = try await who(bed, parts)
            #expect(run.output == "SUCCESS CN=client.test", "\(run)")
        }
    }

    @Test func aFileOfPKCS12DoesAsWell() async throws {
        try await withTestBed { bed in
            let parts = try await prepare(bed) { client in
                let certificate = try bed.file("client.pem", client.chainPEM)
                let key = try bed.file("client.key", client.keyPEM)
                // Created before openssl writes to it, so that it is private from the beginning.
                let file = try bed.file("proxy/client.p12", "")
                let made = try await bed.run([
                    "openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-out", file, "-passout",
                    "pass:s3cret",
                ])
                #expect(made.succeeded, "\(made)")
                try bed.file("proxy/password", "s3cret\n")
                return "    client_certificate: {pkcs12: client.p12, password_file: password}\n"
            }
            let run = try await who(bed, parts)
            #expect(run.output == "SUCCESS CN=client.test", "\(run)")
        }
    }

    @Test func withoutOneTheHostSaysSoItself() async throws {
        try await withTestBed { bed in
            let parts = try await prepare(bed) { _ in "    pinning: none\n" }
            let run = try await who(bed, parts)
            #expect(run.output.contains("No required SSL certificate was sent"), "\(run)")
        }
    }

    /// A certificate removed by a reload is not presented on kept connections.
    @Test func aReloadTakesTheCertificateAway() async throws {
        try await withTestBed { bed in
            let parts = try await prepare(bed) { client in
                try bed.file("proxy/client.pem", client.chainPEM)
                try bed.file("proxy/client.key", client.keyPEM)
                return "    client_certificate: {certificate: client.pem, private_key: client.key}\n"
            }
            #expect(try await who(bed, parts).output == "SUCCESS CN=client.test")
            try bed.file("proxy/pins.yaml", "hosts:\n  - match: mutual.test\n")
            #expect(try await parts.proxy.reload().name == "config.reload")
            let run = try await who(bed, parts)
            #expect(run.output.contains("No required SSL certificate was sent"), "\(run)")
        }
    }
}
