import Configuration
import Foundation
import Proxy
import TestAuthority
import Testing

@testable import pinproxy

@Suite struct EnvironmentTests {
    /// The variables as a shell that has evaluated the output hands them to programs.
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

    @Test func survivesTheShell() throws {
        // Everything that a shell makes something of.
        let bed = try CommandBed("it's $HOME `x` \"y\" *", configuration: "proxy: {listen: \"[::]:4711\"}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let variables = try evaluated(bed)
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
            #expect(variables[name] == "http://[::1]:4711")
        }
        for name in ["NO_PROXY", "no_proxy"] { #expect(variables[name] == "localhost,127.0.0.1,::1") }
        let replaced = [
            "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE",
            "CARGO_HTTP_CAINFO",
        ]
        for name in replaced { #expect(variables[name] == bed.path("state/pinproxy/ca-bundle.pem")) }
        #expect(variables["NODE_EXTRA_CA_CERTS"] == bed.path("state/pinproxy/authority.pem"))
        #expect(variables["NODE_USE_ENV_PROXY"] == "1")
        #expect(variables["JAVA_TOOL_OPTIONS"]?.contains("-Dhttps.proxyHost=::1 -Dhttps.proxyPort=4711") == true)
    }

    @Test func keepsTheBundleUpToDate() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("env").code == 1)
        #expect(try bed.configured("ca", "create").code == 0)
        #expect(try bed.configured("env").code == 0)
        let first = try bed.read("state/pinproxy/ca-bundle.pem")
        #expect(first.hasSuffix(try bed.read("state/pinproxy/authority.pem")))
        #expect(first.components(separatedBy: "BEGIN CERTIFICATE").count > 2)

        for name in ["authority.pem", "authority.key"] {
            try FileManager.default.removeItem(atPath: bed.path("state/pinproxy/\(name)"))
        }
        #expect(try bed.configured("ca", "create").code == 0)
        #expect(try bed.configured("env").code == 0)
        let second = try bed.read("state/pinproxy/ca-bundle.pem")
        #expect(second != first)
        #expect(second.hasSuffix(try bed.read("state/pinproxy/authority.pem")))
        let files = try FileManager.default.contentsOfDirectory(atPath: bed.path("state/pinproxy"))
        #expect(files.sorted() == ["authority.key", "authority.pem", "ca-bundle.pem"])
    }

    @Test func saysThatThePortIsNotKnown() throws {
        let bed = try CommandBed(configuration: "proxy: {listen: 127.0.0.1:0}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let outcome = try bed.configured("env")
        #expect(outcome.code == 1)
        #expect(outcome.output == ClientEnvironment.failure)
        #expect(outcome.errors.contains("the port of the proxy is chosen when it starts"))
    }

    /// Only a proxy that is up is of use to a shell, whatever somebody is writing into the pin file.
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

    /// `eval "$(pinproxy env)"` must not leave a person in a shell without the proxy who thinks otherwise.
    @Test(arguments: ["bash", "dash"]) func aFailureIsTheShellsToo(shell: String) throws {
        let bed = try CommandBed(configuration: "proxy: {lissen: 127.0.0.1:1}\npins: null\n")
        let outcome = try CommandBed.run(
            ["/bin/\(shell)", "-c", "eval \"$('\(CommandBed.executable)' env --config pinproxy.yaml)\"; echo \"code $?\""],
            in: bed.directory, environment: bed.environment)
        #expect(outcome.output == "code 1\n")
        #expect(outcome.errors.contains("unknown key \"lissen\""))
        #expect(outcome.errors.hasSuffix("this shell does not use the proxy\n"), "\(outcome)")
    }

    /// The URL that is advised is one that can be used.
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

    /// The address is the socket unit's; who may not ask the proxy reads what it has left.
    @Test func theSocketsOfSystemdAreThoseThatTheProxyHasLeft() throws {
        let bed = try CommandBed(configuration: "proxy: {listen: systemd}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let unknown = try bed.configured("env")
        #expect(unknown.code == 1, "\(unknown)")
        #expect(unknown.errors.contains("proxy.listen is systemd, and no proxy has left word of its sockets"), "\(unknown)")
        try bed.write("state/pinproxy/listen", "0.0.0.0:4711\n[::1]:4711\n")
        #expect(try evaluated(bed)["HTTPS_PROXY"] == "http://127.0.0.1:4711")
    }

    @Test(arguments: [
        (nil, ""), ("-Xmx1g", "-Xmx1g "), ("-Dhttps.proxyHost=old -Xss1m -Dhttp.proxyPort=1", "-Xss1m "),
    ]) func keepsOtherOptionsOfJava(_ present: String?, _ kept: String) throws {
        let bed = try CommandBed()
        let snapshot = try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.path("state"))
        let environment = ClientEnvironment(
            proxy: try ProxyURL(snapshot.proxy, inherited: ListenFile(in: snapshot.stateDirectory)), bundle: "b",
            authority: "a", javaOptions: present)
        let options = environment.variables.first { $0.name == "JAVA_TOOL_OPTIONS" }?.value
        #expect(
            options == kept
                + "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=7467 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=7467 -Dhttp.nonProxyHosts=localhost|127.*|[::1]")
    }
}
