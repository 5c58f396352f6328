import Foundation
import Testing

/// Secrets of a peer stay private: no log line, no answer of the proxy and nothing on standard error
/// quotes a URL's user information or query, or a header's value.
@Suite(.timeLimit(.minutes(5)))
struct SecretTests {
    private static let secret = "s3cr3t-0f-4-peer"
    private static var basic: String { Data("ada:\(secret)".utf8).base64EncodedString() }

    /// A request with the secret in one place, of those that the proxy itself answers or passes on.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: @Sendable (_ plain: String) -> String
        var testDescription: String { name }
        init(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> String) {
            self.init(name) { _ in bytes() }
        }
        init(_ name: String, _ bytes: @escaping @Sendable (String) -> String) {
            (self.name, self.bytes) = (name, bytes)
        }
    }

    private static func get(_ target: String, host: String = "a.test", fields: String = "") -> String {
        "GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n"
    }

    static let requests: [Case] = [
        Case("userinfo of http", get("http://ada:\(secret)@a.test/")),
        Case("userinfo of https", get("https://ada:\(secret)@a.test/")),
        Case("userinfo of another scheme", get("ftp://ada:\(secret)@a.test/x")),
        Case("userinfo of http with a slash", get("http://ada:x/\(secret)@a.test/x")),
        Case("userinfo with a slash", get("ftp://ada:x/\(secret)@a.test/x")),
        Case("userinfo with a question mark", get("ftp://\(secret):x?y@a.test/x")),
        Case("userinfo with an at", get("ftp://ada:\(secret)@x@a.test/x")),
        Case("userinfo, and an at in the query", get("ftp://\(secret)@a.test/x?m=a@b.test")),
        Case("query of another scheme", get("ftp://a.test/x?token=\(secret)")),
        Case("query with an at", get("ftp://a.test/x?m=a@b.test&token=\(secret)")),
        Case("query without a path", get("wss://a.test?\(secret)")),
        Case("userinfo in CONNECT", "CONNECT ada:\(secret)@a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        Case("CONNECT with a URL", "CONNECT https://ada:\(secret)@a.test/?\(secret) HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        Case("query of a page of the proxy", get("/?token=\(secret)")),
        Case("query of a denied host", get("http://denied.test/x?token=\(secret)")),
        Case("query of a URL that must be tunnelled", get("https://tunnel.test/x?token=\(secret)")),
        Case("query of a name that doesn't exist", get("http://nowhere.onion/x?token=\(secret)")),
        Case("query of an unreachable port", get("http://origin.test:1/x?token=\(secret)", host: "origin.test:1")),
        Case("fragment", get("http://a.test/#\(secret)")),
        Case("Host", get("http://nowhere.onion/", host: "ada:\(secret)@nowhere.onion")),
        Case("Cookie", get("http://nowhere.onion/", fields: "Cookie: s=\(secret)\r\n")),
        Case("Authorization", get("http://nowhere.onion/", fields: "Authorization: Bearer \(secret)\r\n")),
        Case("Referer", get("http://nowhere.onion/", fields: "Referer: http://x.test/?\(secret)\r\n")),
        Case("Proxy-Authorization", get("http://nowhere.onion/", fields: "Proxy-Authorization: Basic \(basic)\r\n")),
        Case(
            "Proxy-Authorization of another kind",
            get("http://nowhere.onion/", fields: "Proxy-Authorization: Bearer \(secret)\r\n")),
        Case("a line without a colon", get("http://a.test/", fields: "\(secret)\r\n")),
        Case("a name with a space", get("http://a.test/", fields: "Cookie : \(secret)\r\n")),
        Case("Content-Length", get("http://a.test/", fields: "Content-Length: \(secret)\r\n")),
        Case("Transfer-Encoding", get("http://a.test/", fields: "Transfer-Encoding: \(secret)\r\n")),
        Case("a control character", get("http://a.test/", fields: "Cookie: \(secret)\u{1}\r\n")),
        Case("the version", "GET http://a.test/ \(secret)\r\n\r\n"),
        Case("no request at all", "\(secret) \(secret) \(secret) \(secret)\r\n\r\n"),
        Case("a chunk's size") {
            "POST \($0)/echo HTTP/1.1\r\nHost: x.test\r\nTransfer-Encoding: chunked\r\n\r\n\(secret)\r\n"
        },
        Case("a field of the response") {
            get("\($0)/raw/\(encoded("HTTP/1.1 200 OK\r\nSet-Cookie \(secret)\r\n\r\n"))")
        },
        Case("a length of the response") {
            get("\($0)/raw/\(encoded("HTTP/1.1 200 OK\r\nContent-Length: \(secret)\r\n\r\n"))")
        },
        Case("the status line of the response") { get("\($0)/raw/\(encoded("HTTP/1.1 2x0 \(secret)\r\n\r\n"))") },
        Case("an upgrade of the response") {
            get("\($0)/raw/\(encoded("HTTP/1.1 101 \(secret)\r\nUpgrade: \(secret)\r\n\r\n"))")
        },
    ]

    private static func encoded(_ text: String) -> String {
        Data(text.utf8).base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_")
    }

    @Test func noAnswerAndNoLineOfTheLogQuotesASecretOfTheClients() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed,
                pins: """
                    hosts:
                      - {match: denied.test, action: deny}
                      - {match: tunnel.test, action: tunnel}

                    """, sections: ["log": ["level: trace"]])
            for example in Self.requests {
                let connection = try RawConnection(to: shared.proxy)
                try await connection.send(example.bytes(shared.plainURL))
                let answer = String(decoding: try await connection.receive(), as: UTF8.self)
                #expect(answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.1 5"), "\(example): \(answer)")
                #expect(!answer.contains(Self.secret) && !answer.contains(Self.basic), "\(example): \(answer)")
            }
            // Each has its line; those of two workers come in any order.
            try await eventually("all lines") { shared.proxy.events.all("exchange").count >= Self.requests.count }
            for line in shared.proxy.events.lines.lines {
                #expect(!line.contains(Self.secret) && !line.contains(Self.basic), "\(line)")
            }
        }
    }

    /// Inside an intercepted CONNECT.
    @Test(arguments: [
        "GET https://ada:\(secret)@other.test/?\(secret) HTTP/1.1\r\nHost: origin.test\r\n\r\n",
        "GET /?\(secret) HTTP/1.1\r\nHost: ada:\(secret)@origin.test\r\n\r\n",
        "GET ftp://ada:\(secret)@other.test/?\(secret) HTTP/1.1\r\nHost: other.test\r\nCookie: \(secret)\r\n\r\n",
    ])
    func noneThatItSendsUnderTLS(_ request: String) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["log": ["level: trace"]])
            let run = try await bed.secureExchange(via: shared.proxy, to: shared.authority, request)
            #expect(run.output.hasPrefix("HTTP/1.1 4"), "\(run)")
            #expect(!run.output.contains(Self.secret), "\(run)")
            _ = try await shared.proxy.events.first("exchange")
            for line in shared.proxy.events.lines.lines { #expect(!line.contains(Self.secret), "\(line)") }
        }
    }

    /// The parent's credentials, and what it answers; and the collector's URL.
    @Test func norDoesOneOfTheConfiguration() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain(OriginBed.name))
            let port = try bed.port()
            let pins = """
                hosts:
                  - match: \(OriginBed.name)
                    pinning: public-key
                    pins: [\(String.wrongPin)]
                    enforcement: report
                    report_uri: http://127.0.0.1:\(port)/pins?token=\(Self.secret)

                """
            let proxy = try await ProxyProcess(
                in: bed, pins: pins, trust: roots.write(to: bed), hosts: [OriginBed.name: "127.0.0.1"],
                sections: ["log": ["level: trace"]])
            _ = try await bed.curl(via: proxy, ["https://\(OriginBed.name):\(origin.port)/echo"])
            let failed = try await proxy.events.first("pin.report.failed")
            #expect(failed["report_uri"] == "http://127.0.0.1:\(port)/pins?***", "\(failed)")
            // With an unreachable parent, and with a misconfigured one.
            for parent in ["http://ada:\(Self.secret)@127.0.0.1:\(port)", "http://ada:\(Self.secret)"] {
                try ProxyProcess.write(
                    to: bed, folder: "proxy", pins: pins, trust: bed.path("roots.pem"),
                    sections: ["upstream": ["parent: \(parent)"], "log": ["level: trace"]])
                try await proxy.reload()
                let answer = try await proxy.connect(to: "a.test:443")
                #expect(answer.status == 502 && !answer.description.contains(Self.secret), "\(answer)")
            }
            for line in proxy.events.lines.lines { #expect(!line.contains(Self.secret), "\(line)") }
            let check = try await bed.run(
                [ProxyProcess.executable, "check", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(check.ending == .exited(78) && check.errors.contains("parent"), "\(check)")
            #expect(!check.output.contains(Self.secret) && !check.errors.contains(Self.secret), "\(check)")
        }
    }
}
