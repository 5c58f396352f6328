import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy explain --response` next to the proxy: a response that curl stored is checked as the proxy checks it.
@Suite(.timeLimit(.minutes(5)))
struct StoredResponseTests {
    private static let responses = [
        """
        HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{\n\"a\":\r\n3\r\n \
        x}\r\n0\r\n\r\n
        """,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\nno gzip",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[1e400]",
        "HTTP/1.1 302 Found\r\nLocation: /echo/1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Type: text/html\r\n\r\n",
    ]

    private struct Account: Decodable {
        struct Response: Decodable {
            let outcome: String
            let refusal: Refusal?
        }
        struct Refusal: Decodable {
            let status: Int
            let title: String
            let details: String
        }
        let response: Response
    }

    private struct Problem: Decodable {
        let title: String
        let detail: String
    }

    @Test func saysWhatTheProxyDoes() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("json.test")
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n  - {match: json.test, response: {serializer: json, status: [200-399]}}\n",
                trust: roots.write(to: bed), hosts: ["json.test": "127.0.0.1"])
            for (number, response) in Self.responses.enumerated() {
                let encoded = Data(response.utf8).base64EncodedString().replacingOccurrences(of: "+", with: "-")
                    .replacingOccurrences(of: "/", with: "_")
                let path = "/raw/\(encoded)"
                let url = "https://json.test:\(origin.port)\(path)"
                let through = try await bed.curl(
                    via: proxy, ["-H", "Accept: application/problem+json", "-w", "\n%{http_code}", url])
                let code = through.output.split(separator: "\n").last.map(String.init)
                let stored = try await bed.run([
                    "curl", "-sik", "--resolve", "json.test:\(origin.port):127.0.0.1", "-o",
                    bed.path("stored-\(number)"), url,
                ])
                #expect(stored.succeeded, "\(stored)")
                let explained = try await bed.run(
                    [
                        ProxyProcess.executable, "explain", "--json", "--config", bed.path("proxy/pinproxy.yaml"),
                        "json.test:\(origin.port)",
                        "--path", path, "--response", bed.path("stored-\(number)"),
                    ], environment: ProxyProcess.environment(in: bed))
                let judged = try JSONDecoder().decode(Account.self, from: Data(explained.output.utf8)).response
                guard code == "502" else {
                    #expect(judged.outcome == "passed", "\(response)\n\(through)\n\(explained)")
                    #expect(explained.succeeded)
                    continue
                }
                #expect(explained.ending == .exited(1), "\(response)\n\(explained)")
                let problem = try JSONDecoder().decode(
                    Problem.self,
                    from: Data(through.output.split(separator: "\n").dropLast().joined(separator: "\n").utf8))
                #expect(judged.refusal?.title == problem.title)
                #expect(judged.refusal?.details == problem.detail)
            }
            let refused = proxy.events.all.count { $0.name == "serializer.mismatch" }
            #expect(refused == 6)
        }
    }
}
