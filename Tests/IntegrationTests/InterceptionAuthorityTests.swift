import Foundation
import PinproxyTestAuthority
import Testing

/// The proxy does not trust its own authority, though programs do. Otherwise anyone with its key could impersonate
/// every origin, as with Superfish and eDellRoot.
@Suite(.timeLimit(.minutes(5)))
struct InterceptionAuthorityTests {
    /// A certificate for the host, signed with the key of the proxy's authority.
    private func forge(_ host: String, for proxy: ProxyProcess, in bed: TestBed) async throws -> ServedChain {
        let extensions = try bed.file(
            "forged.cnf",
            """
            basicConstraints = CA:FALSE
            subjectAltName = DNS:\(host)
            extendedKeyUsage = serverAuth
            keyUsage = critical, digitalSignature
            subjectKeyIdentifier = hash
            authorityKeyIdentifier = keyid

            """)
        let key = (proxy.authority as NSString).deletingPathExtension + ".key"
        let run = try await bed.run([
            "/bin/sh", "-ec",
            """
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout forged.key -subj /CN=\(host) \
                -out forged.csr
            openssl x509 -req -in forged.csr -CA \(proxy.authority) -CAkey \(key) -days 10 -extfile \(extensions) \
                -out forged.pem
            """,
        ])
        guard run.succeeded else { throw TestBedError("\(run)") }
        var chain = try TestRoots().chain(host)
        chain.pem = try bed.contents("forged.pem")
        chain.keyPEM = try bed.contents("forged.key")
        return chain
    }

    @Test func itsKeySpeaksForNoOrigin() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let trust = try roots.write(to: bed)
            let proxy = try await ProxyProcess(in: bed, trust: trust, hosts: ["forged.test": "127.0.0.1"])
            let origin = try await OpenSSLServer(in: bed, chain: forge("forged.test", for: proxy, in: bed), ["-www"])
            // The certificate is valid: to a program that trusts the authority, the host is genuine.
            let direct = try await bed.run([
                "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", proxy.authority, "--resolve",
                "forged.test:\(origin.port):127.0.0.1", "https://forged.test:\(origin.port)/",
            ])
            #expect(direct.output == "200", "\(direct)")
            let authority = "forged.test:\(origin.port)"
            Expected.refused(502, "certificate").check(try await proxy.connect(to: authority), host: "forged.test")

            // Not even if it is among the roots, as it is in the system's after `ca install`.
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: "\(trust), \(proxy.authority)")
            #expect(try await proxy.reload().name == "config.reload")
            Expected.refused(502, "certificate").check(try await proxy.connect(to: authority), host: "forged.test")
        }
    }

    /// Superfish had one key for all its users.
    @Test func everyInstallationHasAKeyOfItsOwn() async throws {
        try await withTestBed { bed in
            var pins: Set<String> = []
            for folder in ["one", "other"] {
                let proxy = try await ProxyProcess(in: bed, folder: folder, trust: nil)
                let key = (proxy.authority as NSString).deletingPathExtension + ".key"
                let mode = try FileManager.default.attributesOfItem(atPath: key)[.posixPermissions] as? Int
                #expect(mode == 0o600)
                let run = try await bed.run(["openssl", "x509", "-in", proxy.authority, "-noout", "-pubkey"])
                pins.insert(run.output)
            }
            #expect(pins.count == 2)
        }
    }

    /// A limited authority's key can't impersonate other servers: OpenSSL rejects the certificate.
    @Test func aLimitedAuthorityIsOnlyGoodForItsNames() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["authority": ["name_constraints: [\(OriginBed.name), 10.0.0.0/8]"]],
                hosts: ["forged.test": "127.0.0.1"])
            #expect(try await shared.curl("-o", "/dev/null", "-w", "%{http_code}", shared.url + "/").output == "200")
            let refused = try await shared.proxy.connect(to: "forged.test:\(shared.originPort)")
            Expected.refused(403, "may not sign for forged.test").check(refused, host: "forged.test")
            let line = try await shared.proxy.events.first("exchange") { $0["host"] == "forged.test" }
            #expect(
                line["cause"]?.contains("name constraints of the local authority: forged.test is not permitted")
                    == true, "\(line)")

            let origin = try await OpenSSLServer(
                in: bed, chain: forge("forged.test", for: shared.proxy, in: bed), ["-www"])
            let direct = try await bed.run([
                "curl", "-sS", "-o", "/dev/null", "--cacert", shared.proxy.authority, "--resolve",
                "forged.test:\(origin.port):127.0.0.1", "https://forged.test:\(origin.port)/",
            ])
            #expect(direct.ending == .exited(60) && direct.errors.contains("permitted subtree violation"), "\(direct)")
        }
    }
}
