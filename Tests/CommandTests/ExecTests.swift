import Foundation
import Testing

@testable import pinproxy

@Suite struct ExecTests {
    /// The warning that no proxy runs, which comes first.
    private func warning(_ bed: CommandBed, _ command: String) -> String {
        "pinproxy: no proxy is running with the state directory \(bed.path("state/pinproxy")), and nothing listens on "
            + "127.0.0.1:1: requests of \(command) will fail; start it with pinproxy run\n"
    }

    private func bed() throws -> CommandBed {
        let bed = try CommandBed(configuration: "proxy: {listen: 127.0.0.1:1}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        try bed.write("state/pinproxy/\(SaidOnce.name)", CommandTrust.given + "\n")
        return bed
    }

    @Test func passesArgumentsEnvironmentAndExitCode() throws {
        let bed = try bed()
        let script = "printf '%s|' \"$@\" $https_proxy $SSL_CERT_FILE; echo oops >&2; exit 7"
        let outcome = try bed.configured(
            "exec", rest: ["--", "sh", "-c", script, "sh", "--config", "a b", "--", "--help", ""])
        #expect(outcome.code == 7)
        let start = "--config|a b|--|--help||http://127.0.0.1:1|\(bed.path("state/pinproxy/trust"))/"
        #expect(outcome.output.hasPrefix(start) && outcome.output.hasSuffix("/ca-bundle.pem|"), "\(outcome)")
        #expect(outcome.errors == warning(bed, "sh") + "oops\n")
    }

    @Test func needsNoTerminator() throws {
        let bed = try bed()
        let outcome = try bed.configured("exec", rest: ["printenv", "NODE_USE_ENV_PROXY"])
        #expect(outcome == .init(code: 0, output: "1\n", errors: warning(bed, "printenv")))
    }

    @Test func failsAsAShellDoes() throws {
        let bed = try bed()
        let unknown = try bed.configured("exec", rest: ["--", "no-such-command"])
        #expect(
            unknown
                == .init(
                    code: 127, output: "",
                    errors: warning(bed, "no-such-command") + "pinproxy: no-such-command: No such file or directory\n"))
        let unfit = try bed.configured("exec", rest: ["--", "./pinproxy.yaml"])
        #expect(
            unfit
                == .init(
                    code: 126, output: "",
                    errors: warning(bed, "./pinproxy.yaml") + "pinproxy: ./pinproxy.yaml: Permission denied\n"))
    }

    /// Run as execvp(3) and the shells run it.
    @Test func aScriptWithoutAFirstLineIsRun() throws {
        let bed = try bed()
        try bed.write("unmarked", "echo \"$0 $1\"; exit 3\n")
        chmod(bed.path("unmarked"), 0o755)
        let outcome = try bed.configured("exec", rest: ["--", "./unmarked", "one"])
        #expect(outcome.code == 3 && outcome.output == "./unmarked one\n", "\(outcome)")
        let found = try bed.run(
            "exec", "--config", "pinproxy.yaml", "--", "unmarked", "one", environment: ["PATH": "/bin:\(bed.directory)"]
        )
        #expect(found.code == 3 && found.output == "\(bed.path("unmarked")) one\n", "\(found)")
    }
}
