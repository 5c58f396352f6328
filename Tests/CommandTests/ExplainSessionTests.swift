import Foundation
import PinproxyTestAuthority
import Testing

/// What `pinproxy explain` and `lint` say about session rules.
@Suite struct ExplainSessionTests {
    private func bed(_ pins: String) throws -> CommandBed {
        let root = try HeldCertificate.root()
        let leaf = try root.issue(.intermediate("Issuing CA")).issue(.leaf("api.test"))
        let bed = try CommandBed(configuration: "upstream: {trust: [root.pem]}\npins: pins.yaml\n")
        try bed.write("root.pem", root.pem)
        try bed.write("chain.pem", leaf.chainPEM)
        try bed.write("secret", "geheim\n")
        chmod(bed.path("secret"), 0o600)
        try bed.write("pins.yaml", pins)
        return bed
    }

    private func explain(_ bed: CommandBed, _ more: String...) throws -> CommandBed.Outcome {
        try bed.configured(
            "explain", rest: ["api.test", "--chain", bed.path("chain.pem"), "--at", "2030-01-01"] + more)
    }

    @Test func saysHowAnExchangeWouldBeMade() throws {
        let bed = try bed(
            """
            hosts:
              - match: api.test
                session:
                  redirects: follow
                  max_redirects: 5
                  follow_to: ["*.cdn.test"]
                  credentials: {user: ann, password_file: secret}
                  resume: false
                  timeout: 90s
                  coalesce: true
                  max_active: 4
                  order: lifo
                  allow_wwan: false
                  base_url: https://b.test/v2

            """)
        let outcome = try explain(bed, "--path", "/users?a=b")
        #expect(outcome.code == 0, "\(outcome)")
        let lines = [
            "How the exchange would be made:", "ended after 1m30s without a byte in either direction",
            """
            followed within one origin and to *.cdn.test, at most 5, each by the policy, pins and rules of its host; \
            never from https to http, and not for browsers
            """,
            "Basic and Digest are answered as ann, over https only", "not continued if interrupted",
            "identical GETs are coalesced",
            "4 exchanges; others wait, and the last one to come goes first", "refused while reachability says WWAN",
            "goes to https://b.test/v2/users?a=b, by the policy, pins and rules of that host",
        ]
        for line in lines { #expect(outcome.output.contains(line), "\(line): \(outcome.output)") }
        #expect(!outcome.output.contains("geheim"))
        let json = try explain(bed, "--path", "/users?a=b", "--json")
        #expect(
            json.output.replacingOccurrences(of: "\\/", with: "/").contains("https://b.test/v2/users?a=b"),
            "\(json.output)")
        #expect(!json.output.contains("geheim"))
    }

    @Test func saysNothingWhereNothingIsWritten() throws {
        let bed = try bed("hosts: [{match: api.test, session: {redirects: pass, order: fifo}}]\n")
        #expect(!(try explain(bed, "--path", "/").output.contains("would be made")))
    }

    @Test func insecureCredentialsAreFindings() throws {
        let bed = try bed(
            """
            defaults: {session: {credentials: {user: ann, password_file: secret}}}
            hosts: [{match: api.test, session: {credentials: {user: ann, password_file: secret, allow_http: true}}}]

            """)
        let outcome = try bed.configured("lint", rest: ["--offline"])
        #expect(outcome.output.components(separatedBy: "insecure").count > 2, "\(outcome)")
        #expect(outcome.output.contains("remove allow_http, and use the host over https://"), "\(outcome)")
        #expect(outcome.output.contains("write them in the entries of the hosts"), "\(outcome)")
        #expect(try explain(bed).output.contains("over http too: insecure"))
    }
}
