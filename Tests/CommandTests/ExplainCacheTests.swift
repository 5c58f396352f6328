import Foundation
import PinproxyTestAuthority
import Testing

/// What `pinproxy explain --path` says about the cache, by the rules alone.
@Suite(.serialized) struct ExplainCacheTests {
    private let bed: CommandBed

    init() throws {
        let root = try HeldCertificate.root()
        let leaf = try root.issue(.intermediate("Issuing CA")).issue(.leaf("api.test"))
        bed = try CommandBed(configuration: "upstream: {trust: [root.pem]}\npins: pins.yaml\n")
        try bed.write("root.pem", root.pem)
        try bed.write("chain.pem", leaf.chainPEM)
        try bed.write("password", "secret\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: bed.path("password"))
    }

    private func explain(_ entry: String, _ more: String...) throws -> CommandBed.Outcome {
        try bed.write("pins.yaml", "hosts:\n  - match: api.test\n" + entry + "\n")
        return try bed.configured(
            "explain", rest: ["api.test", "--chain", bed.path("chain.pem"), "--at", "2030-01-01"] + more)
    }

    /// An entry, a request, and what the cache would do.
    @Test(
        arguments: [
            ("", [], "neither stored nor served: cache is off where nothing is written about it (PINS:2)"),
            ("    cache: off", [], "neither stored nor served: cache: off (entry, PINS:3)"),
            ("    cache: memory", [], "stored (memory, private to each user) if the response allows it"),
            ("    cache: disk\n    shared: true", [], "stored (disk, shared by all users) if the response allows it"),
            ("    cache: memory", ["--method", "HEAD"], "answered from a stored response to GET (memory, private"),
            ("    cache: memory", ["--method", "OPTIONS"], "not stored: only GET is\n"),
            ("    cache: memory", ["--method", "DELETE"], "a success removes what is stored for the URL"),
            (
                "    cache: memory", ["--client", "unit=x.service"],
                "neither stored nor served: the client's user is unknown"
            ),
            ("    cache: memory", ["--client", "user=0"], "stored (memory, private to each user)"),
            ("    cache: memory\n    shared: true", ["--client", "unit=x.service"], "stored (memory, shared by all"),
            (
                "    cache: memory\n    rules: [{path: /private/**, cache: off}]", [],
                "neither stored nor served: cache: off (rule 1 of the entry, PINS:4)"
            ),
            ("    action: tunnel", [], "neither stored nor served: the proxy sees no requests with action: tunnel"),
            ("    action: deny", [], "neither stored nor served: api.test is denied (PINS:2)"),
            (
                "    cache: memory\n    request: {authorization: {user: a, password_file: password}}", [],
                "the proxy sends credentials with it: stored only if the response says public"
            ),
            (
                "    cache: memory\n    request: {set_headers: {Range: bytes=0-1}}", [],
                "neither stored nor served: a rule changes Range"
            ),
        ] as [(String, [String], String)])
    func whatWouldBeDoneIsSaid(entry: String, arguments: [String], shown: String) throws {
        try bed.write("pins.yaml", "hosts:\n  - match: api.test\n" + entry + "\n")
        let outcome = try bed.configured(
            "explain",
            rest: [
                "api.test", "--chain", bed.path("chain.pem"), "--at", "2030-01-01", "--path", "/private/x?y=1",
            ] + arguments)
        let account = outcome.output.components(separatedBy: "\nThe cache:\n").last ?? ""
        // Without the columns.
        let text = account.replacing(/(pins\.yaml:[0-9]+):[0-9]+/) { "\($0.output.1)" }
        #expect(text.contains(shown.replacingOccurrences(of: "PINS", with: bed.path("pins.yaml"))), "\(outcome)")
        #expect(!outcome.output.contains("secret"))
    }

    @Test func withoutAPathNothingIsSaid() throws {
        #expect(try !explain("    cache: memory").output.contains("The cache:"))
    }

    @Test func reportsAreNotStored() throws {
        let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let entry = "    cache: memory\n    pinning: public-key\n    pins: [\(pin)]\n    enforcement: report"
        let outcome = try explain(entry, "--path", "/")
        #expect(
            outcome.output.contains("a response is stored only if a pin matched (enforcement: report)"), "\(outcome)")
    }

    @Test func programsAreTold() throws {
        let outcome = try explain("    cache: disk\n    shared: true", "--path", "/x", "--json")
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        let cache = try #require(report["cache"] as? [String: Any])
        #expect(cache["method"] as? String == "GET" && cache["store"] as? String == "disk")
        #expect(cache["shared"] as? Bool == true && cache["stored"] as? Bool == true && cache["reason"] == nil)
        #expect(cache["responses"] == nil)
        let off = try explain("", "--path", "/x", "--json").output
        #expect(off.contains("\"stored\" : false") && off.contains("cache is off where nothing is written"))
    }

    /// `check` reads the keys, and reports contradictions.
    @Test(
        arguments: [
            ("    cache: memory\n    shared: true", nil), ("    cache: ram", "off, memory"),
            ("    shared: true", "cache: off"),
            ("    cache: disk\n    action: tunnel", "action: tunnel"), ("    cahce: disk", "cache"),
            ("    cache: memory\n    shared: perhaps", "shared"),
        ] as [(String, String?)]) func checkKnowsTheKeys(entry: String, error: String?) throws
    {
        try bed.write("pins.yaml", "hosts:\n  - match: api.test\n" + entry + "\n")
        let outcome = try bed.configured("check")
        #expect((outcome.code == 0) == (error == nil), "\(outcome)")
        if let error {
            #expect(outcome.errors.contains(error) && outcome.errors.contains("pins.yaml:"), "\(outcome)")
        }
    }
}
