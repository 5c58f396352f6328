import Foundation
import PinproxyTestAuthority
import Testing

/// Origins that reject the client certificate: who is blamed.
@Suite(.timeLimit(.minutes(5)))
struct ClientCertificateRefusalTests {
    /// The certificate that the proxy presents.
    enum Shown: String, CaseIterable, Sendable {
        case nothing, expired, stranger, right
    }

    struct Case: Sendable, CustomStringConvertible {
        let version: String
        let shown: Shown
        var description: String { "\(shown) in TLS \(version)" }

        static let all = ["1_2", "1_3"].flatMap { version in
            Shown.allCases.map { Case(version: version, shown: $0) }
        }
    }

    private static func certificate(_ shown: Shown, of clients: TestRoots) throws -> HeldCertificate? {
        let template = TestRoots.template(["client.test"]) {
            $0.extendedKeyUsage = [CertificateTemplate.clientAuth]
            if shown == .expired {
                $0.notBefore = TestRoots.now - 30 * 86_400
                $0.notAfter = TestRoots.now - 3 * 86_400
            }
        }
        return switch shown {
        case .nothing: nil
        case .stranger: try TestRoots("Stranger").intermediate.issue(template)
        case .expired, .right: try clients.intermediate.issue(template)
        }
    }

    @Test(arguments: Case.all) func itsPlaceAndItsFaultAreNamed(_ test: Case) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let clients = try TestRoots("Client")
            let server = try await OpenSSLServer(
                in: bed, chain: ServedChain(try roots.leaf("mutual.test")),
                [
                    "-Verify", "3", "-verify_return_error", "-CAfile", try bed.file("clients.pem", clients.root.pem),
                    "-tls\(test.version)", "-www",
                ])
            var entry = "hosts:\n  - match: mutual.test\n"
            if let client = try Self.certificate(test.shown, of: clients) {
                try bed.file("proxy/client.pem", client.chainPEM)
                try bed.file("proxy/client.key", client.keyPEM)
                entry += "    client_certificate: {certificate: client.pem, private_key: client.key}\n"
            }
            let proxy = try await ProxyProcess(
                in: bed, pins: entry, trust: roots.write(to: bed), hosts: ["mutual.test": "127.0.0.1"])
            let words: [String] =
                switch test.shown {
                case .nothing:
                    [
                        "requests a client certificate issued by CN=Client Root", "has no client_certificate",
                        "pins.yaml:2",
                    ]
                case .expired: ["client certificate CN=client.test", "it expired 20", "pins.yaml:2"]
                case .stranger: ["client certificate CN=client.test", "does not trust its issuer", "pins.yaml:2"]
                case .right: []
                }

            // At CONNECT in TLS 1.2. In TLS 1.3 the origin only says so instead of its first response.
            let run = try await bed.curl(via: proxy, ["-v", "https://mutual.test:\(server.port)/"])
            let line = try await proxy.events.first("exchange") { $0["cause"] != nil || $0["status"] == "200" }
            for word in words {
                #expect((run.output + run.errors).contains(word), "\(word): \(run)")
                #expect(line["cause"]?.contains(word) == true, "\(word): \(line)")
            }
            if test.shown == .right {
                #expect(run.output.contains("s_server"), "\(run)")
            } else {
                #expect(line["error"] == "tls_alert_received", "\(line)")
                for blame in ["clock", "ciphers", "unknown)"] {
                    #expect(!(run.output + run.errors).contains(blame), "\(run)")
                }
            }

            let explained = try await bed.run(
                [
                    ProxyProcess.executable, "explain", "mutual.test:\(server.port)", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ], environment: ProxyProcess.environment(in: bed))
            #expect(explained.ending == .exited(test.shown == .right ? 0 : 1), "\(explained)")
            for word in words { #expect(explained.output.contains(word), "\(word): \(explained)") }
            if test.shown == .right {
                #expect(
                    explained.output.contains(
                        "client    the host requests a client certificate issued by CN=Client Root; "
                            + "presented: CN=client.test, valid until"), "\(explained)")
            }
        }
    }

    /// An origin that requests a certificate and accepts everyone anyway.
    @Test func askingIsTold() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let server = try await OpenSSLServer(
                in: bed, chain: ServedChain(try roots.leaf("mutual.test")), ["-verify", "1", "-www"])
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: roots.write(to: bed))
            try bed.file("proxy/hosts", "127.0.0.1 mutual.test\n")
            let explained = try await bed.run(
                [
                    ProxyProcess.executable, "explain", "mutual.test:\(server.port)", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ], environment: ProxyProcess.environment(in: bed))
            #expect(explained.succeeded, "\(explained)")
            #expect(
                explained.output.contains(
                    "client    the host requests a client certificate; none is configured (client_certificate)"),
                "\(explained)")
        }
    }
}
