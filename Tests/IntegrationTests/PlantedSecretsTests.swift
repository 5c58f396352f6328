import Foundation
import Testing

/// Secrets are planted wherever they can be configured or sent, with traffic that succeeds and fails. Nothing that the
/// proxy shows may contain one, in any form.
@Suite(.timeLimit(.minutes(5)))
struct PlantedSecretsTests {
    private static func secret(_ name: String) -> String { "s3cr3t+\(name)/7f=" }

    /// In separate files, or sent by clients.
    private static let outside = [
        "password", "header", "bearer", "token", "clientcookie", "clientbearer", "clientbasic", "clientquery",
        "clientuser",
        "clientbody", "clientreferer",
    ].map(secret)
    /// Written in the configuration itself. The state directory has a copy of that.
    private static let inside = ["inline", "parameter", "parent", "report"].map(secret)

    /// The forms that a secret may take.
    private static func forms(_ secret: String) -> [String] {
        let percent = secret.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? secret
        // The base64 of any text around the secret contains one of these three.
        let base64 = (0..<3).map { shift in
            let whole = Data((String(repeating: "x", count: shift) + secret).utf8).base64EncodedString()
            return String(whole.dropFirst(4).prefix(12))
        }
        let json = secret.replacingOccurrences(of: "/", with: "\\/")
        return [secret, percent, percent.lowercased(), json] + base64
    }

    private static func expectNone(of secrets: [String], in text: String, _ place: String) {
        #expect(!text.isEmpty, "\(place)")
        for secret in secrets {
            for form in forms(secret) where text.contains(form) { Issue.record("\(place) has \(secret) as \(form)") }
        }
    }

    private static func pins(_ collector: UInt16) -> String {
        """
        hosts:
          - match: \(OriginBed.name)
            pinning: public-key
            pins: [\(String.wrongPin)]
            enforcement: report
            report_uri: "http://127.0.0.1:\(collector)/r?k=\(percent("report"))"
            session: {credentials: {user: build, password_file: password}}
            request:
              set_headers: {X-Secret: {file: header}, X-Inline: "\(secret("inline"))"}
              parameters: {key: "\(secret("parameter"))"}
          - match: plain.test
            session: {credentials: {user: build, password_file: password, allow_http: true}}
            request: {set_headers: {Authorization: {file: bearer}}}
          - {match: wrong.test, pinning: public-key, pins: [\(String.wrongPin)]}
          - {match: denied.test, action: deny}

        """
    }

    private static func percent(_ name: String) -> String {
        secret(name).addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    /// With an unreachable parent everything fails; without a parent, most of it succeeds.
    @Test(arguments: [false, true])
    func nothingThatItShowsHasOne(_ hasParent: Bool) async throws {
        try await withTestBed { bed in
            for name in ["password", "header", "bearer", "token"] {
                try bed.file("proxy/\(name)", Self.secret(name) + "\n")
            }
            var sections: ProxyProcess.Sections = [
                "log": ["level: trace"], "admin": ["listen: 127.0.0.1:0", "token_file: token"],
                "telemetry": ["otlp: http://127.0.0.1:\(try bed.port())", "authorization_file: bearer"],
            ]
            if hasParent {
                sections["upstream"] = ["parent: \"http://ada:\(Self.percent("parent"))@127.0.0.1:\(try bed.port())\""]
            }
            let names = ["plain.test", "wrong.test", "denied.test"]
            let shared = try await OriginBed.prepare(
                bed, pins: Self.pins(try bed.port()), sections: sections,
                hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, "127.0.0.1") }))
            try await ask(shared)

            let secrets = Self.outside + Self.inside
            try await expectNoneShown(of: secrets, by: shared)
            let commands = [
                ["explain", OriginBed.name, "--path", "/x"], ["explain", OriginBed.name, "--path", "/x", "--json"],
                ["explain", "plain.test:80", "--path", "/x"],
            ]
            // Anyone who reads pins.yaml sees its values; secrets belong in files (docs/rules.md).
            try await expectNone(of: Self.outside + Array(Self.inside.suffix(2)), in: commands, of: shared)
            try expectNone(of: Self.outside, inStateOf: shared)
        }
    }

    /// Users' passwords, right and wrong, and private keys. No line of a key may show.
    @Test func neitherPasswordsOfUsersNorKeys() async throws {
        try await withTestBed { bed in
            let hash = try await AuthenticationBed.usersFile(in: bed, folder: "proxy", password: Self.secret("user"))
            let client = try TestRoots().chain("client.test")
            try bed.file("proxy/client.pem", client.pem)
            try bed.file("proxy/client.key", client.keyPEM)
            let shared = try await OriginBed.prepare(
                bed,
                pins:
                    """
                    hosts:\n  - {match: certified.test, client_certificate: {certificate: client.pem, private_key: \
                    client.key}}\n
                    """,
                sections: ["proxy": ["users: users"], "log": ["level: trace"]], hosts: ["certified.test": "127.0.0.1"])
            for (name, password) in [("ada", "user"), ("ada", "wrong"), ("eve", "stranger")] {
                for url in [shared.url, shared.plainURL, "https://certified.test:\(shared.originPort)"] {
                    _ = try await shared.curl("--proxy-user", "\(name):" + Self.secret(password), url + "/echo")
                }
            }
            try await eventually("the log's lines") { shared.proxy.events.all("exchange").count >= 6 }
            func lines(_ pem: String) -> [String] {
                pem.split(separator: "\n").filter { !$0.hasPrefix("-") }.map(String.init)
            }
            let key = try bed.contents("proxy/state/pinproxy/authority.key")
            let secrets = ["user", "wrong", "stranger"].map(Self.secret) + [hash] + lines(client.keyPEM) + lines(key)
            try await expectNoneShown(of: secrets, by: shared)
            try await expectNone(
                of: secrets, in: [["explain", "certified.test"], ["ca", "show", "--pem"]], of: shared)
            try expectNone(of: secrets, inStateOf: shared, except: "authority.key")
        }
    }

    /// Checks what the proxy and its commands show, and the log.
    private func expectNoneShown(of secrets: [String], by shared: SharedBed) async throws {
        for path in ["/config", "/tasks", "/status", "/", "/metrics"] {
            let run = try await shared.bed.run([
                "curl", "-sS", "--noproxy", "*", "--unix-socket", shared.bed.path("proxy/state/pinproxy/control.sock"),
                "http://localhost\(path)",
            ])
            Self.expectNone(of: secrets, in: run.output, path)
        }
        try await expectNone(
            of: secrets, in: [["status"], ["status", "--json"], ["lint"], ["check"], ["tasks", "list"]], of: shared)
        for line in shared.proxy.events.lines.lines { Self.expectNone(of: secrets, in: line, "log") }
    }

    private func expectNone(of secrets: [String], in commands: [[String]], of shared: SharedBed) async throws {
        for command in commands {
            let run = try await shared.bed.run(
                [ProxyProcess.executable] + command + ["--config", shared.bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: shared.bed))
            Self.expectNone(of: secrets, in: run.output + run.errors + "\n", command.joined(separator: " "))
        }
    }

    private func expectNone(of secrets: [String], inStateOf shared: SharedBed, except own: String = "") throws {
        let state = shared.bed.path("proxy/state/pinproxy")
        let files = try FileManager.default.contentsOfDirectory(atPath: state).filter { !$0.hasSuffix(".sock") }
        #expect(files.contains("authority.key"))
        for file in files where file != own {
            let data = FileManager.default.contents(atPath: state + "/" + file) ?? Data()
            Self.expectNone(of: secrets, in: String(decoding: data, as: UTF8.self) + "\n", file)
        }
    }

    /// Requests with clients' secrets, to hosts that answer, refuse, or don't exist.
    private func ask(_ shared: SharedBed) async throws {
        let plain = "http://plain.test:\(shared.secondOriginPort)"
        let urls = [
            shared.url + "/echo", shared.url + "/login/Basic", shared.url + "/die", plain + "/echo",
            plain + "/login/Basic",
            plain + "/truncated/length", "https://wrong.test:\(shared.originPort)/echo", "http://denied.test/echo",
            "https://nowhere.onion/echo",
        ]
        for url in urls {
            let parts = url.components(separatedBy: "://")
            _ = try await shared.curl(
                "-H", "Cookie: a=\(Self.secret("clientcookie"))", "-H",
                "Authorization: Bearer \(Self.secret("clientbearer"))",
                "-H", "Referer: http://a.test/?\(Self.percent("clientreferer"))", "--data", Self.secret("clientbody"),
                url + "?k=" + Self.percent("clientquery"))
            _ = try await shared.curl(
                parts[0] + "://" + Self.percent("clientuser") + ":" + Self.percent("clientbasic") + "@" + parts[1])
        }
        try await eventually("the log's lines") { shared.proxy.events.all("exchange").count >= urls.count * 2 - 4 }
    }
}
