import Testing

/// Errors in rules point at the rule, however far it is below its host.
@Suite struct CheckRulesTests {
    /// Text below `request:` or `rules:`. The wrong line begins with `!`. Its column counts from 0.
    private static let wrong: [(rules: String, text: String, column: Int, error: String)] = [
        ("request", "  set_headers:\n!    Bad Name: x", 4, "set_headers: \"Bad Name\""),
        ("request", "  set_headers:\n    X-A: a\n!    Host: b.test", 4, "set_headers: Host"),
        ("request", "  remove_headers:\n    - X-A\n!    - Content-Length", 6, "remove_headers: Content-Length"),
        ("request", "  accept_language:\n    - de\n!    - de_AT", 6, "accept_language: \"de_AT\""),
        ("request", "  set_headers:\n    X-A: a\n!  authorization: secret", 17, "\"authorization\""),
        ("request", "!  cookies: drop", 11, "cookies: unknown value \"drop\""),
        ("request", "!  serializer: xml", 14, "serializer: unknown value \"xml\""),
        ("request", "  serializer: property-list\n  parameters:\n!    a: [null]", 4, "parameters: a[]"),
        ("request", "  query_methods:\n    - GET\n!    - get", 6, "query_methods: methods"),
        ("request", "  convert_body:\n    from: form\n!    to: xml", 8, "to: unknown value \"xml\""),
        (
            "request", "  serializer: multipart\n  parts:\n    - name: a\n      value: b\n!      type: csv", 12,
            "type: \"csv\""
        ),
        ("request", "  throttle:\n!    packet: 0\n    delay: 1s", 12, "packet: 0 is out of range"),
        ("request", "!  upgrade_insecure: on", 20, "upgrade_insecure: \"on\""),
        ("request", "!  set_header: {X-A: a}", 2, "unknown key \"set_header\""),
        (
            "rules", "  - path: /a\n    request: {cookies: strip}\n  - path: /b\n    request:\n!      cookies: drop",
            15, "cookies"
        ),
        ("rules", "  - path: /a\n!    methods: get\n    request: {cookies: strip}", 13, "methods: methods"),
    ]

    @Test func eachErrorNamesTheLineOfItsRule() throws {
        let indentation = "    "
        var lines = ["hosts:", "  - match: right.test", "    pinning: none"]
        var expected: [String] = []
        for (index, wrong) in Self.wrong.enumerated() {
            lines += ["  - match: host\(index).test", "    pinning: none", "    \(wrong.rules):"]
            for line in wrong.text.split(separator: "\n") {
                lines.append(indentation + line.drop { $0 == "!" })
                guard line.hasPrefix("!") else { continue }
                expected.append("\(lines.count):\(indentation.count + wrong.column + 1): error: \(wrong.error)")
            }
        }
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", lines.joined(separator: "\n") + "\n")
        let outcome = try bed.configured("check")
        #expect(outcome.code == 78)
        let found = outcome.errors.split(separator: "\n")
        #expect(found.count == expected.count, "\(outcome.errors)")
        for (found, expected) in zip(found, expected) {
            #expect(found.hasPrefix("\(bed.path("pins.yaml")):\(expected)"), "\(found) is not \(expected)")
        }
    }
}
