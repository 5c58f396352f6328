import Foundation
import PinproxyTestAuthority
import Testing

/// A client's own Digest (RFC 7616) passes through rules that leave its method and target alone. Challenge and answer
/// belong to client and origin, whatever happens to the fields and the body.
@Suite(.timeLimit(.minutes(5)))
struct RuleDigestTests {
    private func withOrigin(_ rules: String, _ body: (TestBed, ProxyProcess, String) async throws -> Void) async throws
    {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let chain = try roots.chain("digest.test")
            let origin = try await PythonPeer(
                in: bed, script: "digest_origin.py",
                [
                    "--certificate", try bed.file("digest.pem", chain.pem), "--key",
                    try bed.file("digest.key", chain.keyPEM),
                ])
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n  - match: digest.test\n    pinning: none\n\(rules)",
                trust: roots.write(to: bed),
                hosts: ["digest.test": "127.0.0.1"])
            try await body(bed, proxy, "https://digest.test:\(origin.port)")
        }
    }

    @Test func headerRulesLeaveItWhole() async throws {
        try await withOrigin(
            """
                request:
                  headers: {X-Client: fleet}
                  set_headers: {User-Agent: tool/1}
                response: {status: [200, 401]}

            """
        ) { bed, proxy, url in
            let run = try await bed.curl(via: proxy, ["--digest", "-u", "ann:secret", url + "/a?b=c"])
            #expect(run.output.contains(#""path": "/a?b=c""#), "\(run)")
            #expect(run.output.contains(#""User-Agent": "tool/1", "X-Client": "fleet""#), "\(run)")
            let wrong = try await bed.curl(
                via: proxy, ["--digest", "-u", "ann:wrong", "-w", "%{http_code}", url + "/a"])
            #expect(wrong.output.hasSuffix("401"), "\(wrong)")
        }
    }

    @Test func aConvertedBodyIsSentAgain() async throws {
        try await withOrigin("    request: {convert_body: {from: form, to: json}}\n") { bed, proxy, url in
            let run = try await bed.curl(
                via: proxy, ["--digest", "-u", "ann:secret", "-d", "name=x&tags[]=a", url + "/form"])
            #expect(run.output.contains(#""body": "{\"name\":\"x\",\"tags\":[\"a\"]}""#), "\(run)")
            #expect(run.output.contains(#""Content-Type": "application/json""#), "\(run)")
        }
    }

    /// A challenge is a response like any other: rules that don't list 401 refuse it, and the client never sees it.
    @Test func aChallengeHasToBeAcceptable() async throws {
        try await withOrigin("    response: {status: 200}\n") { bed, proxy, url in
            let run = try await bed.curl(
                via: proxy, ["--digest", "-u", "ann:secret", "-w", "%{http_code}", url + "/a"])
            #expect(run.output.contains("Unacceptable status 401 from digest.test"), "\(run)")
            #expect(run.output.hasSuffix("502"), "\(run)")
        }
    }
}
