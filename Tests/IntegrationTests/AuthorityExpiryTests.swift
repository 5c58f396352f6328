import Foundation
import PinproxyTestAuthority
import Testing

/// Expiry of the certificates that clients see: announced in advance, and explained afterwards.
@Suite(.timeLimit(.minutes(5)))
struct AuthorityExpiryTests {
    private static let day: Int64 = 86_400

    /// A proxy with an authority that expires in `days` days, and with an intercepted and a tunnelled host.
    private func prepare(
        _ bed: TestBed, authority days: Int64, tls: (section: String, days: Int64)? = nil
    ) async throws -> SharedBed {
        let now = Int64(Date().timeIntervalSince1970)
        func end(_ template: CertificateTemplate, in days: Int64) -> CertificateTemplate {
            template.with {
                $0.notBefore = now - 100 * Self.day
                $0.notAfter = now + days * Self.day + 3600
            }
        }
        let authority = try HeldCertificate.selfSigned(end(.root("Old Authority"), in: days))
        try bed.file("proxy/state/pinproxy/authority.pem", authority.pem)
        try bed.file("proxy/state/pinproxy/authority.key", authority.keyPEM, mode: 0o600)
        var sections = AdminClient.section
        if let tls {
            let shown = try HeldCertificate.selfSigned(end(.leaf("own.test"), in: tls.days))
            let certificate = try bed.file("own.pem", shown.pem)
            let key = try bed.file("own.key", shown.keyPEM, mode: 0o600)
            sections[tls.section, default: []].append("tls: {certificate: \(certificate), private_key: \(key)}")
        }
        return try await OriginBed.prepare(
            bed, pins: "hosts:\n  - {match: tunnel.test, action: tunnel}\n", sections: sections,
            hosts: ["tunnel.test": "127.0.0.1"])
    }

    private func status(_ shared: SharedBed) async throws -> String {
        try await TaskControl(bed: shared.bed, proxy: shared.proxy).pinproxy("status").output
    }

    @Test func itIsSaidBefore() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, authority: 5)
            let event = try await shared.proxy.events.first("certificate.expiring")
            #expect(
                event["what"] == "authority" && event["days_left"] == "5" && event["level"] == "warning", "\(event)")
            #expect(event["cause"]?.contains("pinproxy ca rotate") == true, "\(event)")
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            let admin = try await AdminClient(shared.proxy)
            #expect(try await admin.ask("GET", "/readyz").status == 200)
            let metrics = try await admin.ask("GET", "/metrics").body
            #expect(
                metrics.contains("pinproxy_expiry_timestamp_seconds{what=\"authority\",name=\"CN=Old Authority\"} "),
                "\(metrics)")
            let text = try await status(shared)
            #expect(text.contains("ends ") && text.contains("authority CN=Old Authority"), "\(text)")
        }
    }

    /// The start warns and succeeds. Requests that need no certificate are served; others are refused before the 200.
    @Test func afterItsEndOnlyInterceptionIsRefused() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, authority: -1)
            let event = try await shared.proxy.events.first("certificate.expired")
            #expect(event["level"] == "error" && event["cause"]?.contains("pinproxy ca rotate") == true, "\(event)")
            #expect(event["effect"]?.contains("503") == true, "\(event)")
            let answer = try await shared.proxy.connect(to: shared.authority)
            #expect(answer.status == 503, "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("proxy_configuration_error") == true, "\(answer)")
            #expect(answer.reason.contains("authority has expired"), "\(answer)")
            #expect(answer.body.contains("pinproxy ca rotate"), "\(answer)")
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)
            let tunnel = try await bed.run([
                "curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}", "--proxy", shared.proxy.url,
                "https://tunnel.test:\(shared.originPort)/echo",
            ])
            #expect(tunnel.output == "200", "\(tunnel)")
            let admin = try await AdminClient(shared.proxy)
            let ready = try await admin.ask("GET", "/readyz")
            #expect(ready.status == 503 && ready.body.contains("the local authority expired"), "\(ready)")
            let text = try await status(shared)
            #expect(text.contains("ended ") && text.contains("authority CN=Old Authority"), "\(text)")
            let check = try await bed.run(
                [ProxyProcess.executable, "check", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(check.succeeded && check.errors.contains("the local authority expired"), "\(check)")

            // A rotation helps at once: the next authority signs instead of the expired one.
            let rotated = try await bed.run(
                [ProxyProcess.executable, "ca", "rotate", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(rotated.succeeded, "\(rotated)")
            #expect(try await shared.proxy.reload().name == "config.reload")
            let next = (shared.proxy.authority as NSString).deletingLastPathComponent + "/authority.next.pem"
            let run = try await bed.run([
                "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--proxy", shared.proxy.url, "--cacert", next,
                shared.url + "/echo",
            ])
            #expect(run.output == "200", "\(run)")
            #expect(try await admin.ask("GET", "/readyz").status == 200)
        }
    }

    @Test(arguments: [("admin", 200), ("proxy", 503)])
    func theCertificatesOfThePortsAreWatched(_ section: String, _ readiness: Int) async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, authority: 100, tls: (section, -1))
            let event = try await shared.proxy.events.first("certificate.expired")
            #expect(
                event["what"] == "\(section) certificate" && event["subject"]?.contains("own.test") == true, "\(event)")
            let text = try await status(shared)
            #expect(text.contains("\(section) certificate CN=own.test"), "\(text)")
            let port = try await AdminClient(shared.proxy).port
            let ready = try await bed.run([
                "curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}",
                "\(section == "admin" ? "https" : "http")://127.0.0.1:\(port)/readyz",
            ])
            #expect(ready.output == "\(readiness)", "\(ready)")
        }
    }
}
