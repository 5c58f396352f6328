import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy explain --client`: how a client is treated when an entry applies to some clients only.
@Suite(.serialized) struct ExplainClientsTests {
    private let bed: CommandBed

    init() throws {
        let root = try HeldCertificate.root()
        let leaf = try root.issue(.intermediate("Issuing CA")).issue(.leaf("api.test", "other.test"))
        bed = try CommandBed(configuration: "upstream: {trust: [root.pem]}\npins: pins.yaml\n")
        try bed.write("root.pem", root.pem)
        try bed.write("chain.pem", leaf.chainPEM)
        try bed.write(
            "pins.yaml",
            """
            hosts:
              - {match: api.test, clients: {users: [root], units: [ci.service]}}
              - {match: denied.test, action: deny}

            """)
    }

    private func explain(_ host: String, _ more: String...) throws -> CommandBed.Outcome {
        try bed.configured(
            "explain", rest: [host, "--chain", bed.path("chain.pem"), "--at", "2030-01-01"] + more)
    }

    @Test func showsForWhomAnEntryIs() throws {
        let outcome = try explain("api.test")
        #expect(outcome.code == 0)
        #expect(
            outcome.output.contains(
                "clients   users: [root], units: [ci.service]; others are refused (check one with --client"),
            "\(outcome)")
        #expect(try !explain("other.test").output.contains("clients   "))
    }

    @Test func saysWhatBecomesOfAClient() throws {
        for client in [
            "user=root,unit=ci.service", "unit=ci.service,user=0", "user=root,unit=ci.service,executable=/usr/bin/git",
        ] {
            #expect(try explain("api.test", "--client", client).code == 0, "\(client)")
        }
        for client in [
            "user=root", "unit=ci.service", "user=daemon,unit=ci.service", "user=root,unit=cd.service",
            "executable=/usr/bin/git",
        ] {
            let outcome = try explain("api.test", "--client", client)
            #expect(outcome.code == 1, "\(client)")
            #expect(
                outcome.output.contains("Refused: a client gets 403 api.test:443 is for other clients"), "\(outcome)"
            )
            #expect(outcome.output.contains("users: [root], units: [ci.service]"), "\(outcome)")
        }
        let outcome = try explain("api.test", "--client", "user=daemon,unit=ci.service")
        #expect(outcome.output.contains("comes from daemon (user 1), an unknown program, ci.service."), "\(outcome)")
        #expect(try explain("other.test", "--client", "user=daemon").code == 0)
        #expect(
            try explain("denied.test", "--client", "user=root").output.contains("403 denied.test:443 denied by policy"))
    }

    @Test func answersPrograms() throws {
        let outcome = try explain("api.test", "--client", "user=daemon", "--json")
        let report = try #require(try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        #expect(report["let_through"] as? Bool == false)
        #expect((report["clients"] as? [String: Any])?["users"] as? [String] == ["root"])
        #expect((report["refusal"] as? [String: Any])?["status"] as? Int == 403)
    }

    @Test(arguments: [
        ("root", "write it as user=build,unit=ci.service"), ("user=", "write it as"),
        ("users=root", "\"users\" is not user, unit or executable"),
        ("user=no-such-user", "there is no user \"no-such-user\""), ("", "write it as"),
    ]) func refusesWhatDescribesNoClient(_ client: String, _ expected: String) throws {
        let outcome = try explain("api.test", "--client", client)
        #expect(outcome.code == 2 && outcome.errors.contains(expected), "\(outcome)")
    }
}
