import Foundation
import Testing

@Suite struct ExecTests {
    private func bed() throws -> CommandBed {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "create").code == 0)
        return bed
    }

    @Test func passesArgumentsEnvironmentAndExitCode() throws {
        let bed = try bed()
        let script = "printf '%s|' \"$@\" $https_proxy $SSL_CERT_FILE; echo oops >&2; exit 7"
        let outcome = try bed.configured(
            "exec", rest: ["--", "sh", "-c", script, "sh", "--config", "a b", "--", "--help", ""])
        #expect(outcome.code == 7)
        #expect(
            outcome.output
                == "--config|a b|--|--help||http://127.0.0.1:7467|\(bed.path("state/pinproxy/ca-bundle.pem"))|")
        #expect(outcome.errors == "oops\n")
    }

    @Test func needsNoTerminator() throws {
        let outcome = try bed().configured("exec", rest: ["printenv", "NODE_USE_ENV_PROXY"])
        #expect(outcome == .init(code: 0, output: "1\n", errors: ""))
    }

    @Test func failsAsAShellDoes() throws {
        let bed = try bed()
        let unknown = try bed.configured("exec", rest: ["--", "no-such-command"])
        #expect(unknown == .init(code: 127, output: "", errors: "pinproxy: no-such-command: No such file or directory\n"))
        let unfit = try bed.configured("exec", rest: ["--", "./pinproxy.yaml"])
        #expect(unfit == .init(code: 126, output: "", errors: "pinproxy: ./pinproxy.yaml: Permission denied\n"))
    }
}
