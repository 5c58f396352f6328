import Foundation
import PinproxyConfiguration
import PinproxyDaemon
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import pinproxy

@Suite struct EnvironmentTests {
    /// The variables that a shell passes to programs after it has evaluated the output.
    private func evaluated(_ bed: CommandBed) throws -> [String: String] {
        let outcome = try CommandBed.run(
            ["/bin/sh", "-c", "eval \"$('\(CommandBed.executable)' env --config pinproxy.yaml)\"; exec env -0"],
            in: bed.directory, environment: bed.environment)
        #expect(outcome.code == 0)
        var variables: [String: String] = [:]
        for line in outcome.output.split(separator: "\0") {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            variables[String(parts[0])] = String(parts[1])
        }
        return variables
    }

    /// The files of the bed's current authority.
    private func trustFolder(_ bed: CommandBed) throws -> String {
        let authority = try Certificate(derOrPEM: Array(try bed.read("state/pinproxy/authority.pem").utf8))
        return bed.path("state/pinproxy/trust/\(authority.sha256.hex.prefix(16))")
    }

    @Test func survivesTheShell() throws {
        // All characters that are special in a shell.
        let bed = try CommandBed(
            "it's $HOME `x` \"y\" *", configuration: "proxy: {listen: \"[::]:4711\"}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let variables = try evaluated(bed)
        for name in [
            "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "WS_PROXY", "wss_proxy",
        ] {
            #expect(variables[name] == "http://[::1]:4711")
        }
        for name in ["NO_PROXY", "no_proxy"] { #expect(variables[name] == "localhost,127.0.0.1,::1") }
        let replaced = [
            "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE",
            "CARGO_HTTP_CAINFO", "PERL_LWP_SSL_CA_FILE", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
            "NIX_SSL_CERT_FILE",
            "npm_config_cafile",
        ]
        let folder = try trustFolder(bed)
        for name in replaced { #expect(variables[name] == folder + "/ca-bundle.pem") }
        #expect(variables["NODE_EXTRA_CA_CERTS"] == bed.path("state/pinproxy/authority.pem"))
        #expect(variables["NODE_USE_ENV_PROXY"] == "1" && variables["MOJO_PROXY"] == "1")
        #expect(variables["JAVA_TOOL_OPTIONS"]?.contains("-Dhttps.proxyHost=::1 -Dhttps.proxyPort=4711") == true)
    }

    @Test func keepsTheBundleUpToDate() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("env").code == 1)
        #expect(try bed.configured("ca", "create").code == 0)
        #expect(try bed.configured("env").code == 0)
        let first = try trustFolder(bed)
        func bundle(_ folder: String) throws -> String {
            try String(contentsOfFile: folder + "/ca-bundle.pem", encoding: .utf8)
        }
        #expect(try bundle(first).hasSuffix(try bed.read("state/pinproxy/authority.pem")))
        #expect(try bundle(first).components(separatedBy: "BEGIN CERTIFICATE").count > 2)

        for name in ["authority.pem", "authority.key"] {
            try FileManager.default.removeItem(atPath: bed.path("state/pinproxy/\(name)"))
        }
        #expect(try bed.configured("ca", "create").code == 0)
        #expect(try bed.configured("env").code == 0)
        let second = try trustFolder(bed)
        // Another configuration may still use the first.
        #expect(second != first && FileManager.default.fileExists(atPath: first))
        #expect(try bundle(second).hasSuffix(try bed.read("state/pinproxy/authority.pem")))

        // The file was modified.
        try Data("x".utf8).write(to: URL(fileURLWithPath: second + "/ca-bundle.pem"))
        #expect(try bed.configured("env").code == 0)
        #expect(try bundle(second).hasSuffix(try bed.read("state/pinproxy/authority.pem")))
        let files = try FileManager.default.subpathsOfDirectory(atPath: second).sorted()
        #expect(
            files.filter { !$0.hasPrefix("java-") } == [
                "apt.conf", "boto", "ca-bundle.pem", "hgrc", "made", "php", "php/pinproxy.ini", "wgetrc",
            ])
        #expect(files.count { $0.hasPrefix("java-") } == 1)
        for name in files where !name.hasSuffix("php") {
            let mode = try FileManager.default.attributesOfItem(atPath: "\(second)/\(name)")[.posixPermissions] as? Int
            #expect(mode == (name == "wgetrc" ? 0o600 : 0o644), "\(name)")
        }
    }

    @Test func saysThatThePortIsNotKnown() throws {
        let bed = try CommandBed(configuration: "proxy: {listen: 127.0.0.1:0}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let outcome = try bed.configured("env")
        #expect(outcome.code == 1)
        #expect(outcome.output == ShellSyntax.sh.failure)
        #expect(outcome.errors.contains("the port of the proxy is chosen when it starts"))
    }

    /// A broken pin file doesn't keep a shell from using a running proxy.
    @Test func aBrokenPinFileIsNoHindrance() throws {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", "hosts: []\n")
        #expect(try bed.configured("ca", "create").code == 0)
        try bed.write("pins.yaml", "hostz: []\n")
        #expect(try bed.configured("check").code == 78)
        #expect(try evaluated(bed)["HTTPS_PROXY"] == "http://127.0.0.1:7467")
        let run = try bed.configured("exec", rest: ["--", "printenv", "HTTPS_PROXY"])
        #expect(run.code == 0 && run.output == "http://127.0.0.1:7467\n", "\(run)")
        #expect(try bed.configured("ca", "show").code == 0)
    }

    /// `eval "$(pinproxy env)"` must not leave a user in a shell that unknowingly bypasses the proxy.
    @Test(arguments: ["bash", "dash"]) func aFailureIsTheShellsToo(shell: String) throws {
        let bed = try CommandBed(configuration: "proxy: {lissen: 127.0.0.1:1}\npins: null\n")
        let outcome = try CommandBed.run(
            [
                "/bin/\(shell)", "-c",
                "eval \"$('\(CommandBed.executable)' env --config pinproxy.yaml)\"; echo \"code $?\"",
            ],
            in: bed.directory, environment: bed.environment)
        #expect(outcome.output == "code 1\n")
        #expect(outcome.errors.contains("unknown key \"lissen\""))
        #expect(outcome.errors.hasSuffix("this shell does not use the proxy\n"), "\(outcome)")
    }

    /// The suggested URL can be used.
    @Test func credentialsGoIntoTheURLThatIsPrinted() throws {
        let held = try HeldCertificate.root().issue(.leaf("proxy.test"))
        for (tls, scheme) in [("", "http"), (", tls: {certificate: proxy.pem, private_key: proxy.key}", "https")] {
            let bed = try CommandBed(configuration: "proxy: {listen: 127.0.0.1:4711, users: users\(tls)}\npins: null\n")
            try bed.write("proxy.pem", held.chainPEM)
            try bed.write("proxy.key", held.keyPEM)
            try bed.write("users", "me:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC\n")
            for name in ["proxy.key", "users"] { chmod(bed.path(name), 0o600) }
            #expect(try bed.configured("ca", "create").code == 0)
            let outcome = try bed.configured("env")
            #expect(outcome.errors.contains("\(scheme)://NAME:PASSWORD@127.0.0.1:4711\n"), "\(outcome)")
        }
    }

    /// The address is the socket unit's. Users who can't query the proxy read the file that it wrote.
    @Test func theSocketsOfSystemdAreThoseThatTheProxyHasLeft() throws {
        let bed = try CommandBed(configuration: "proxy: {listen: systemd}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let unknown = try bed.configured("env")
        #expect(unknown.code == 1, "\(unknown)")
        #expect(
            unknown.errors.contains("proxy.listen is systemd, and no proxy has left word of its sockets"), "\(unknown)")
        try bed.write("state/pinproxy/listen", "0.0.0.0:4711\n[::1]:4711\n")
        #expect(try evaluated(bed)["HTTPS_PROXY"] == "http://127.0.0.1:4711")
    }

    @Test(arguments: [
        (nil, ""), ("-Xmx1g", "-Xmx1g "), ("-Dhttps.proxyHost=old -Xss1m -Dhttp.proxyPort=1", "-Xss1m "),
    ]) func keepsOtherOptionsOfJava(_ present: String?, _ kept: String) throws {
        let bed = try CommandBed()
        let snapshot = try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.path("state"))
        let environment = ClientEnvironment(
            proxy: try ProxyURL(snapshot.proxy, inherited: ListenFile(in: snapshot.stateDirectory)),
            trust: TrustFiles(bundle: "b", authority: "a"), present: present.map { ["JAVA_TOOL_OPTIONS": $0] } ?? [:])
        let options = environment.variables.first { $0.name == "JAVA_TOOL_OPTIONS" }?.value
        #expect(
            options == kept
                + "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=7467 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=7467 "
                + "-Dhttp.nonProxyHosts=localhost|127.*|[::1]"
        )
    }

    // MARK: The user's own

    @Test(arguments: [
        (nil, nil, "localhost,127.0.0.1,::1"), (".corp, 10.0.0.0/8", nil, ".corp,10.0.0.0/8,localhost,127.0.0.1,::1"),
        ("a", "b,a,localhost", "a,b,localhost,127.0.0.1,::1"), ("", ",,", "localhost,127.0.0.1,::1"),
    ])
    func whatGoesRoundTheProxyStays(_ upper: String?, _ lower: String?, _ merged: String) throws {
        var present: [String: String] = [:]
        present["NO_PROXY"] = upper
        present["no_proxy"] = lower
        let bed = try CommandBed()
        let snapshot = try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: "/nowhere")
        let environment = ClientEnvironment(
            proxy: try ProxyURL(snapshot.proxy, inherited: ListenFile(in: "/nowhere")),
            trust: TrustFiles(bundle: "b", authority: "a"), present: present)
        for name in ["NO_PROXY", "no_proxy"] {
            #expect(environment.variables.first { $0.name == name }?.value == merged)
        }
    }

    /// A user who has excluded all hosts must not believe that they are checked.
    @Test func aBypassIsSaid() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "create").code == 0)
        let outcome = try bed.run("env", "--config", "pinproxy.yaml", environment: ["no_proxy": "*"])
        #expect(outcome.code == 0 && outcome.errors.contains("programs bypass the proxy"), "\(outcome)")
    }

    /// The user's own settings are included, and restored afterwards.
    @Test func whatIsTakenInComesBack() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "create").code == 0)
        try bed.write(".wgetrc", "user_agent = mine\n")
        try bed.write("my-apt.conf", "X \"y\";\n")
        let own = [
            "APT_CONFIG": bed.path("my-apt.conf"), "HGRCPATH": "/a/hgrc:/b", "PHP_INI_SCAN_DIR": "/php:",
            "NO_PROXY": ".corp",
            "JAVA_TOOL_OPTIONS": "-Xmx1g",
        ]
        let script = """
            eval "$('\(CommandBed.executable)' env --config pinproxy.yaml)"
            eval "$('\(CommandBed.executable)' env --config pinproxy.yaml)"
            env | sort; cat "$WGETRC" "$APT_CONFIG"; echo =====
            eval "$('\(CommandBed.executable)' env --unset)"; env | sort
            """
        let outcome = try CommandBed.run(
            ["/bin/sh", "-c", script], in: bed.directory, environment: bed.environment.merging(own) { $1 })
        let parts = outcome.output.components(separatedBy: "=====\n")
        try #require(parts.count == 2, "\(outcome)")
        let folder = try trustFolder(bed)
        for line in [
            "HGRCPATH=/a/hgrc:/b:\(folder)/hgrc\n", "PHP_INI_SCAN_DIR=/php::\(folder)/php\n", "user_agent = mine\n",
            "#include \"\(bed.path("my-apt.conf"))\";\n", "ca_certificate = \(folder)/ca-bundle.pem\n",
        ] { #expect(parts[0].contains(line), "\(line) in \(parts[0])") }
        // A copy is not copied again.
        #expect(parts[0].components(separatedBy: "user_agent").count == 2)
        let after = parts[1].split(separator: "\n").filter { line in
            !["PWD", "_", "OLDPWD", "SHLVL", "ASAN_OPTIONS", "LSAN_OPTIONS"].contains(line.prefix { $0 != "=" })
        }
        let before = bed.environment.merging(own) { $1 }.map { "\($0.key)=\($0.value)" }
        #expect(Set(after.map(String.init)).subtracting(["no_proxy=.corp"]) == Set(before))
    }

    /// Neither an authority nor settings for programs are taken from a place that others can change.
    @Test func nothingIsTakenFromWhereOthersWrite() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "create").code == 0)
        chmod(bed.path("state/pinproxy"), 0o777)
        let outcome = try bed.configured("env")
        #expect(
            outcome.code == 1 && outcome.output == ShellSyntax.sh.failure && outcome.errors.contains("(mode 777)"),
            "\(outcome)")
    }

    /// Root's programs don't take settings from a service.
    @Test(.enabled(if: geteuid() == 0, "needs root, to give files away")) func programFilesAreInADirectoryOfOnesOwn()
        throws
    {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "create").code == 0)
        for name in ["", "/authority.pem", "/authority.key"] {
            #expect(chown(bed.path("state/pinproxy" + name), 1, 1) == 0)
        }
        let outcome = try bed.run(
            "env", "--config", bed.path("pinproxy.yaml"), "--state-directory", bed.path("state/pinproxy"),
            environment: ["XDG_STATE_HOME": bed.path("own")])
        #expect(outcome.output.contains("WGETRC='\(bed.path("own/pinproxy/trust"))"), "\(outcome)")
        #expect(outcome.output.contains("SSL_CERT_FILE='\(bed.path("own/pinproxy/trust"))"), "\(outcome)")
        // Without such a directory there are no such files.
        let without = try bed.run(
            "env", "--config", bed.path("pinproxy.yaml"), "--state-directory", bed.path("state/pinproxy"),
            environment: ["XDG_STATE_HOME": bed.path("state")])
        #expect(without.code == 1 && without.errors.contains("belongs to user 1"), "\(without)")
    }

    /// All characters that are special in a shell, in each shell of this machine.
    @Test(arguments: ShellSyntax.allCases)
    func aValueIsOneWord(shell: ShellSyntax) throws {
        let value = "it's $HOME `x` \"y\" * \\ \\' !! {a,b} %ENV% \u{e9} ; & | < > ~ # \t end"
        let programs: [ShellSyntax: (String, String)] = [
            .sh: ("/bin/sh", "printenv V"), .fish: ("/usr/bin/fish", "printenv V"), .csh: ("/bin/csh", "printenv V"),
            .powershell: ("/usr/bin/pwsh", "printenv V"),
        ]
        let (program, show) = try #require(programs[shell])
        #expect(shell.quoted("plain") == "'plain'")
        guard FileManager.default.isExecutableFile(atPath: program) else { return }
        let bed = try CommandBed()
        let arguments = shell == .powershell ? ["-NoProfile", "-Command"] : ["-c"]
        let outcome = try CommandBed.run(
            [program] + arguments + [shell.set("V", value) + show], in: bed.directory, environment: bed.environment)
        #expect(outcome.output == value + "\n", "\(outcome)")
        let without = try CommandBed.run(
            [program] + arguments + [shell.set("V", value) + shell.unset("V") + show], in: bed.directory,
            environment: bed.environment)
        #expect(without.output == "", "\(without)")
        let failed = try CommandBed.run(
            [program] + arguments + [shell.failure], in: bed.directory, environment: bed.environment)
        #expect(failed.code != 0 && failed.errors.contains("does not use the proxy"), "\(failed)")
    }
}
