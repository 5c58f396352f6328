import Foundation
import PinproxyTestAuthority
import Testing

/// What lint says about stored responses of entries.
@Suite(.serialized) struct LintCacheTests {
    private func lint(_ entry: String) throws -> [LintTests.Finding] {
        let bed = try LintTests.bed("hosts:\n  - match: a.test\n" + entry + "\n")
        let client = try HeldCertificate.root().issue(.leaf("client.test"))
        try bed.write("client.pem", client.chainPEM)
        for (name, text) in [("password", "secret\n"), ("client.key", client.keyPEM)] {
            try bed.write(name, text)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: bed.path(name))
        }
        return try LintTests.lint(bed).filter { $0.rule.hasSuffix("-cache") }
    }

    /// Entries, and the proxy's secret that lint reports, since all their users get the responses.
    @Test(
        arguments: [
            ("    cache: memory\n    shared: true", nil),
            ("    cache: memory\n    request: {authorization: {user: a, password_file: password}}", nil),
            (
                "    cache: memory\n    shared: true\n    request: {authorization: {user: a, password_file: password}}",
                "a password (request."
            ),
            (
                "    cache: memory\n    shared: true\n    request: {set_headers: {Cookie: {file: password}}}",
                "a secret (request)"
            ),
            (
                "    cache: disk\n    shared: true\n"
                    + "    client_certificate: {certificate: client.pem, private_key: client.key}",
                "a client certificate"
            ),
            (
                "    cache: disk\n    shared: true\n    session: {credentials: {user: a, password_file: password}}",
                "a password (session."
            ),
            (
                "    session: {credentials: {user: a, password_file: password}}\n"
                    + "    rules: [{path: /x, cache: memory, shared: true}]",
                "a password (session."
            ),
        ] as [(String, String?)])
    func sharedCredentialsAreNoted(entry: String, sent: String?) throws {
        let found = try lint(entry)
        #expect(found.map(\.summary) == (sent == nil ? [] : ["2:12 note shared-cache"]), "\(found)")
        if let sent { #expect(found.first?.message.contains("the proxy sends \(sent)") == true, "\(found)") }
    }

    @Test func aCacheThatReportsIsNoted() throws {
        let pins = "    pinning: public-key\n    pins: [sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]\n"
        for (cache, count) in [("memory", 1), ("off", 0)] {
            let found = try lint(pins + "    enforcement: report\n    cache: \(cache)")
            #expect(found.count { $0.rule == "reported-cache" } == count, "\(found)")
        }
        #expect(try !lint(pins + "    cache: memory").contains { $0.rule == "reported-cache" })
    }
}
