import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy explain` about session, request and response rules. This version supports only the default values, so
/// those are used here.
@Suite(.serialized) struct ExplainRulesTests {
    private let bed: CommandBed

    init() throws {
        let root = try HeldCertificate.root()
        let leaf = try root.issue(.intermediate("Issuing CA")).issue(.leaf("api.test"))
        bed = try CommandBed(configuration: "upstream: {trust: [root.pem]}\npins: pins.yaml\n")
        try bed.write("root.pem", root.pem)
        try bed.write("chain.pem", leaf.chainPEM)
        try bed.write(
            "pins.yaml",
            """
            defaults:
              session: {redirects: pass}
            hosts:
              - match: api.test
                request: {cookies: pass}
                rules:
                  - path: /v1/**
                    methods: [GET, HEAD]
                    response: {oversize: refuse}
                  - {path: /private/**}
              - {match: tunnel.test, action: tunnel, session: {service_type: default}}
              - {match: denied.test, action: deny}

            """)
    }

    private func explain(_ host: String, _ more: String...) throws -> CommandBed.Outcome {
        try bed.configured(
            "explain", rest: [host, "--chain", bed.path("chain.pem"), "--at", "2030-01-01"] + more)
    }

    @Test func showsWhoWroteWhat() throws {
        let outcome = try explain("api.test")
        let file = bed.path("pins.yaml")
        #expect(outcome.code == 0)
        #expect(
            outcome.output.contains(
                """

                Rules:
                  session.redirects: pass  (defaults, \(file):2)
                  request.cookies: pass  (entry, \(file):5)

                Rules for some requests, the first of each list that matches (see --path):
                  /v1/** (GET, HEAD): rule 1 of the entry, \(file):7
                  /private/**: rule 2 of the entry, \(file):10

                """))
        #expect(!outcome.output.contains("\nrequest "))
    }

    @Test func showsTheRuleOfARequest() throws {
        let file = bed.path("pins.yaml")
        let get = try explain("api.test", "--path", "/v1/users?x=y").output
        #expect(
            get.contains("\nrequest   GET /v1/users?x=y: rule 1 of the entry matches (\(file):7: /v1/** (GET, HEAD))\n")
        )
        #expect(get.contains("  response.oversize: refuse  (rule 1 of the entry, \(file):9)\n"))
        #expect(!get.contains("Rules for some requests"))
        let post = try explain("api.test", "--path", "/v1/users", "--method", "POST").output
        #expect(post.contains("\nrequest   POST /v1/users: no rule matches\n"))
        #expect(!post.contains("response.oversize"))
        let ambiguous = try explain("api.test", "--path", "/v1/..%2fprivate/x").output
        #expect(ambiguous.contains("/v1/..%2fprivate/x: ambiguous: servers read the path in different ways"))
        #expect(!ambiguous.contains("\nRules:\n"))
        let none = try explain("other.test", "--path", "/").output
        #expect(none.contains("\nrequest   GET /: no rule matches\n"))
        #expect(none.contains("  session.redirects: pass  (defaults, \(file):2)\n"))
    }

    @Test func tunnelsAndDeniedHostsHaveNoRequests() throws {
        let tunnel = try explain("tunnel.test", "--path", "/v1/x").output
        #expect(tunnel.contains("\nrequest   GET /v1/x: the proxy doesn't see it with action: tunnel\n"))
        #expect(tunnel.contains("  session.service_type: default  (entry, "))
        #expect(!tunnel.contains("session.redirects"))
        let denied = try explain("denied.test").output
        #expect(!denied.contains("Rules"))
    }

    @Test func programsGetThemToo() throws {
        func object(_ more: String...) throws -> [String: Any] {
            let outcome = try bed.configured(
                "explain", rest: ["api.test", "--chain", bed.path("chain.pem"), "--at", "2030-01-01", "--json"] + more)
            return try #require(try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        }
        let all = try object()
        let keys = try #require(all["rules"] as? [[String: Any]])
        #expect(keys.map { $0["key"] as? String } == ["session.redirects", "request.cookies"])
        #expect(keys.map { $0["value"] as? String } == ["pass", "pass"])
        #expect(keys.map { $0["source"] as? String } == ["defaults", "entry"])
        #expect(keys.map { $0["line"] as? Int } == [2, 5])
        let rules = try #require(all["path_rules"] as? [[String: Any]])
        #expect(rules.map { $0["path"] as? String } == ["/v1/**", "/private/**"])
        #expect(rules[0]["methods"] as? [String] == ["GET", "HEAD"])
        let one = try object("--path", "/v1/x")
        let request = try #require(one["request"] as? [String: Any])
        #expect(request["ambiguous"] as? Bool == false)
        #expect((request["matching"] as? [[String: Any]])?.map { $0["source"] as? String } == ["rule 1 of the entry"])
        #expect(one["path_rules"] == nil)
        let odd = try object("--path", "/v1/../private")
        #expect((odd["request"] as? [String: Any])?["ambiguous"] as? Bool == true)
        #expect(odd["rules"] == nil)
        let help = try bed.run("explain", "--help").output
        for key in all.keys where key != "request" { #expect(help.contains(key)) }
    }

    @Test(arguments: [["--method", "GET"], ["--path", "v1"], ["--path", ""], ["--path", "/", "--method", "get"]])
    func refusesWrongUsage(_ arguments: [String]) throws {
        let outcome = try bed.configured("explain", rest: ["api.test"] + arguments)
        #expect(outcome.code == 2)
        #expect(outcome.output == "")
    }

    @Test func whatNeverAppliesIsAWarningOfCheckAndLint() throws {
        try bed.write("pins.yaml", "hosts: [{match: a.test, rules: [{path: /**}, {path: /a, methods: [GET]}]}]\n")
        let check = try bed.configured("check")
        #expect(check.code == 0)
        #expect(
            check.errors.contains(
                "pins.yaml:1:46: warning: rules: this rule never applies: rule 1 in line 1, for /**, "))
        let lint = try bed.configured("lint", rest: ["--offline", "--strict"])
        #expect(lint.code == 1)
        #expect(lint.output.contains("this rule never applies"))
    }
}
