import Foundation
import Testing

/// Rules that a reload changes under load.
@Suite(.timeLimit(.minutes(5)))
struct RuleReloadTests {
    /// Each request follows the old or the new rules, and its response is checked by the same ones.
    @Test func eachExchangeIsOfOneSetOfRules() async throws {
        try await withTestBed { bed in
            // The field set by the rules shows which ones apply. Its response is JSON under one, and refused under the
            // other.
            func pins(_ name: String, _ serializer: String) -> String {
                RuleBed.pins(
                    rules: [
                        """
                        {path: /received/**, request: {set_headers: {X-Rules: \(name)}}, response: {serializer: \
                        \(serializer)}}
                        """
                    ])
            }
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain(OriginBed.name))
            let proxy = try await ProxyProcess(
                in: bed, pins: pins("old", "json"), trust: roots.write(to: bed), hosts: [OriginBed.name: "127.0.0.1"])
            let url = "https://\(OriginBed.name):\(origin.port)/received/[1-1000]"
            async let load = bed.curl(via: proxy, ["-i", url])
            var isOld = true
            for _ in 0..<12 {
                isOld.toggle()
                try ProxyProcess.write(
                    to: bed, folder: "proxy", pins: isOld ? pins("old", "json") : pins("new", "xml"),
                    trust: bed.path("roots.pem"))
                #expect(try await proxy.reload().name == "config.reload")
            }
            let run = try await load
            let answers = run.output.components(separatedBy: "HTTP/1.1 ").dropFirst()
            #expect(answers.count == 1000, "\(run)")
            let accepted = answers.count { $0.hasPrefix("200 ") && $0.contains("X-Rules: old") }
            let refused = answers.count { $0.hasPrefix("502 Unacceptable content type application/json") }
            #expect(accepted + refused == 1000 && accepted > 0 && refused > 0, "\(accepted) \(refused)")
            // Those that were refused had been sent under the new rules.
            let sent = origin.events.all("request").count { $0["lines"]?.contains("X-Rules: new") == true }
            #expect(sent == refused, "\(sent) \(refused)")
        }
    }
}
