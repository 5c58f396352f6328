import Foundation
import PinproxySerialization
import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration

/// `telemetry` in pinproxy.yaml.
@Suite struct TelemetrySectionTests {
    private func bed(_ telemetry: String, token: String = "Bearer abc", mode: Int = 0o600) throws -> ConfigurationBed {
        let bed = try ConfigurationBed([
            "pinproxy.yaml": "telemetry: \(telemetry)\npins: null\nupstream: {trust: ca.pem}\n",
            "ca.pem": try HeldCertificate.root().pem, "token": token + "\n",
        ])
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: bed.path("token"))
        return bed
    }

    @Test func nothingIsSentWithoutIt() throws {
        #expect(try bed("null").load().telemetry == nil)
        #expect(try ConfigurationBed(["pinproxy.yaml": "pins: null\n"]).load().telemetry == nil)
    }

    @Test func defaultsAndAllThatCanBeSaid() throws {
        let plain = try #require(try bed("{otlp: \"https://collector.test:4318\"}").load().telemetry)
        #expect(plain.url(of: .metrics).address == "https://collector.test:4318/v1/metrics")
        #expect(plain.interval == .seconds(60) && plain.signals == [.metrics, .logs] && plain.attributes == [:])
        #expect(plain.authorization == nil)
        let whole = try #require(
            try bed(
                "{otlp: \"http://127.0.0.1:9090/api/v1/otlp/\", authorization_file: token, interval: 10s, "
                    + "signals: [logs], attributes: {site: Berlin, rack.row: 7}}"
            ).load().telemetry)
        #expect(whole.url(of: .logs).address == "http://127.0.0.1:9090/api/v1/otlp/v1/logs")
        #expect("\(whole.url(of: .logs))" == "http://127.0.0.1:9090/api/v1/otlp/v1/logs")
        #expect(whole.authorization?.text == "Bearer abc" && "\(whole)".contains("abc") == false)
        #expect(whole.attributes == ["site": "Berlin", "rack.row": "7"])
        #expect(whole.interval == .seconds(10) && whole.signals == [.logs])
    }

    @Test(arguments: [
        "https://[2001:db8::1]", "http://127.8.9.1:4318", "http://[::1]:4318", "http://localhost:4318",
    ])
    func urlsThatWillDo(_ url: String) throws {
        #expect(try bed("{otlp: \"\(url)\"}").problems() == [])
    }

    @Test(arguments: [
        ("{}", "telemetry: \"otlp\" is missing"), ("{otlp: null}", "\"otlp\" has no value"),
        ("{otlp: \"http://collector.test:4318\"}", "otlp: http:// is for a collector on this machine"),
        ("{otlp: \"http://127.0.0.1.test\"}", "otlp: http:// is for a collector on this machine"),
        ("{otlp: \"grpc://collector.test\"}", "metrics and logs can't be sent to grpc:"),
        ("{otlp: collector.test}", "is not a valid URL"),
        ("{otlp: \"https://u:p@collector.test\"}", "credentials in the URL are not sent"),
        ("{otlp: \"https://collector.test/?key=1\"}", "a token belongs into authorization_file"),
        ("{otlp: \"https://collector.test/v1/logs\"}", "leave out /v1/logs: the proxy appends it"),
        ("{otlp: \"https://c.test\", interval: 9s}", "from 10s to 1h"),
        ("{otlp: \"https://c.test\", interval: 2h}", "from 10s to 1h"),
        ("{otlp: \"https://c.test\", signals: traces}", "unknown value \"traces\"; write metrics or logs"),
        ("{otlp: \"https://c.test\", signals: []}", "signals: the list is empty"),
        ("{otlp: \"https://c.test\", sginals: logs}", "did you mean \"signals\"?"),
        ("{otlp: \"https://c.test\", attributes: [a]}", "takes a mapping"),
        ("{otlp: \"https://c.test\", attributes: {service.name: x}}", "service.name is set by the proxy"),
        ("{otlp: \"https://c.test\", attributes: {host.name: x}}", "host.name is set by the proxy"),
        ("{otlp: \"https://c.test\", attributes: {\"Ä\": x}}", "is not a name"),
        ("{otlp: \"https://c.test\", attributes: {site: \"\"}}", "a value has 1 to 256 bytes"),
        ("{otlp: \"https://c.test\", attributes: {site: [a]}}", "takes a single value"),
        ("{otlp: \"https://c.test\", authorization_file: nothing}", "there is no such file"),
    ])
    func whatIsWrongIsSaid(_ telemetry: String, _ cause: String) throws {
        let problems = try bed(telemetry).problems()
        #expect(
            problems.count == 1 && problems[0].hasPrefix("pinproxy.yaml:1:") && problems[0].contains("error: ")
                && problems[0].contains(cause), "\(problems)")
    }

    @Test func attributesAreFew() throws {
        let many = (0..<17).map { "a\($0): x" }.joined(separator: ", ")
        let problems = try bed("{otlp: \"https://c.test\", attributes: {\(many)}}").problems()
        #expect(problems.count == 1 && problems[0].contains("there are 17; 16 at most are sent"), "\(problems)")
    }

    @Test(arguments: ["", " Bearer x9", "Bearer é", "Bearer a\tb", String(repeating: "a", count: 4097)])
    func theTokenIsTheValueOfAField(_ token: String) throws {
        let problems = try bed("{otlp: \"https://c.test\", authorization_file: token}", token: token).problems()
        #expect(problems.count == 1 && problems[0].contains("not the value of a header field"), "\(problems)")
        #expect(token.isEmpty || !problems[0].contains(token))
    }

    @Test func theTokenIsPrivate() throws {
        let problems = try bed("{otlp: \"https://c.test\", authorization_file: token}", mode: 0o644).problems()
        #expect(problems.count == 1 && problems[0].contains("error: authorization_file: "), "\(problems)")
    }
}
