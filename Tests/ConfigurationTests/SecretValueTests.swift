import Testing

@testable import PinproxyConfiguration

/// The secret part of a URL is in no error, wherever in the file it is written.
@Suite struct SecretValueTests {
    private static let secret = "hunter2hunter2"

    /// What users paste: a proxy's URL, with typical mistakes, and a collector's.
    private static let urls = [
        "http://ada:\(secret)@p.test:1/?\(secret)", "http://ada:\(secret)@p.test:x", "ftp://\(secret)@p.test/",
        "http://ada:\(secret)%0a@p.test:1", "https://p.test/x y?token=\(secret)",
        "https://p.test/?m=a@b&token=\(secret)",
        "http://ada:\(secret) x@p.test:3128", "http://ada:\(secret)",
    ]
    /// A file may have such a name.
    private static let pairs = ["ada:\(secret)@p.test:3128"]

    /// Files with the secret where a section, a list or a key belongs.
    private static let daemon = [
        "\"%\": 1\n", "proxy: \"%\"\n", "proxy: [\"%\"]\n", "proxy: {\"%\": 1}\n", "\"%\": 1\n\"%\": 2\n",
        "proxy: {listen: \"%\"\n", "proxy: \"%\" x\n", "upstream: parent: \"%\"\n",
        "admin: \"%\"\nauthority: \"%\"\nupstream: \"%\"\ntimeouts: \"%\"\nlimits: \"%\"\nlog: \"%\"\n",
        "upstream: {parent: [\"%\"]}\n", "proxy: {listen: [127.0.0.1:1, \"%\"]}\n",
    ]
    /// A file with the secret as every value.
    private static let values = """
        proxy: {listen: "%", tls: "%", workers: "%", allow_clients: ["%"], via: "%"}
        authority: {leaf_lifetime: "%"}
        upstream: {parent: "%:y", parnet: "%", block_addresses: ["%"], trust: ca.pem}
        timeouts: {connect: "%"}
        limits: {clients: "%", request_head: "%"}
        log: {level: "%", format: "%", access: "%"}

        """
    private static let paths = """
        proxy: {users: "%", tls: {certificate: "%", private_key: "%"}}
        authority: {certificate: "%", private_key: "%"}
        upstream: {trust: ["%"]}
        pins: "%"

        """
    private static let pins = [
        "hosts: \"%\"\n", "hosts: [\"%\"]\n", "hosts: [{\"%\": 1}]\n", "hosts: [{match: \"%\"}]\n", "defaults: \"%\"\n",
        "defaults: {action: \"%\", min_tls: \"%\", report_uri: \"% y\", max_leaf_lifetime: \"%\"}\n",
    ]
    /// Entries with the secret as one of their values.
    private static let entryValues = [
        "action: \"%\"", "pinning: \"%\"", "pinning: public-key, pins: \"%\"", "pinning: public-key, pins: [\"%\"]",
        "pinning: certificate, pins: [\"%\"]", "position: \"%\"",
        "enforcement: \"%\"", "expires: \"%\"", "on_expiry: \"%\"", "allow_invalid_certificates: \"%\"",
        "client_certificate: \"%\"", "report_uri: \"% y\"", "report_uri: [\"%\"]", "report: \"%\"",
        "session: \"%\"", "session: {timeout: \"%\"}", "session: {base_url: \"% y\"}", "session: {credentials: \"%\"}",
        "request: \"%\"", "request: {headers: {\"%\": a}}", "request: {accept_language: \"%\"}",
        "request: {authorization: \"%\"}", "response: \"%\"", "response: {status: \"%\"}", "rules: \"%\"",
        "rules: [{path: \"%\"}]", "rules: [{methods: [\"%\"]}]",
    ]
    private static let entryPaths = [
        "pinning: public-key, pins: [{file: \"%\"}]", "crl_files: [\"%\"]", "ct_log_list: \"%\"",
        "client_certificate: {certificate: \"%\", private_key: \"%\"}",
    ]

    private func expectSilence(_ bed: ConfigurationBed, _ text: String) {
        let problems = bed.problems()
        // A collector's URL may have a query.
        #expect(!problems.isEmpty || text.contains("report_uri"), "\(text)")
        #expect(!problems.contains { $0.contains(Self.secret) }, "\(text)\(problems)")
    }

    @Test(arguments: urls + pairs) func noProblemOfTheDaemonsFileQuotesIt(_ value: String) throws {
        for template in Self.daemon + [Self.values] + (Self.urls.contains(value) ? [Self.paths] : []) {
            // The system's anchors would be read each time.
            let anchors = template.contains("upstream") ? "" : "upstream: {trust: ca.pem}\n"
            let text = anchors + template.replacing("%", with: value)
            expectSilence(try ConfigurationBed(pins: "hosts: []\n", ["pinproxy.yaml": text]), text)
        }
    }

    @Test(arguments: urls + pairs) func noProblemOfThePinFileQuotesIt(_ value: String) throws {
        let entries = (Self.entryValues + (Self.urls.contains(value) ? Self.entryPaths : [])).enumerated()
            .map { "  - {match: a\($0).test, \($1)}\n" }.joined()
        for template in Self.pins + ["hosts:\n" + entries] {
            let text = template.replacing("%", with: value)
            expectSilence(try ConfigurationBed(pins: text), text)
        }
    }

    /// The secret itself, where the name of its file belongs, or in a header or URL.
    @Test(arguments: [
        "client_certificate: {pkcs12: certs/ca.pem, password_file: \(secret)}",
        "session: {credentials: {user: ada, password_file: \(secret)}}",
        "session: {credentials: {user: 'ada:\(secret)', password_file: certs/ca.pem}}",
        "request: {headers: {'X-Key: \(secret)@x': a}}", "request: {headers: {Authorization: \(secret)}}",
        "session: {base_url: 'https://ada:\(secret)@a.test/'}", "session: {base_url: 'https://a.test/?\(secret)'}",
    ])
    func aPasswordInTheWrongPlaceIsNotQuoted(_ line: String) throws {
        let text = "hosts:\n  - match: a.test\n    \(line)\n"
        expectSilence(try ConfigurationBed(pins: text), text)
    }

    @Test func theReasonIsThatOfTheWholeValue() throws {
        let problems = try ConfigurationBed([
            "pinproxy.yaml": "upstream: {parent: \"http://ada:x@[p]:1\"}\npins: null\n"
        ])
        .problems()
        #expect(problems == ["pinproxy.yaml:1:20: error: parent: \"p\" is not an IPv6 address"])
    }
}
