import Foundation
import Testing

/// Servers interpret some path spellings differently: none of them bypasses a rule.
@Suite(.timeLimit(.minutes(5)))
struct RulePathTests {
    private static let secret = "what the rule holds back"

    static let spellings = [
        "/private/file", "//private/file", "/private//file", "/./private/file", "/private/./file", "/x/../private/file",
        "/%70rivate/file", "/%2e/private/file", "/x/%2e%2e/private/file", "/x/.%2E/private/file", "/private%2ffile",
        "/private%2Ffile", "/x%2f..%2fprivate%2ffile", "/x/..%2fprivate/file", "/x\\..\\private\\file",
        "/private\\file",
        "/x/..%5cprivate/file", "/private;a=b/file", "/private/file;a", "/private/file?a=/public", "/private/%66ile",
        "/public/../private/file", "/public/..;/private/file", "/public/%2e%2e%2fprivate/file", "/..//private/file",
        "/private/../private/file", "///private///file", "/public%2f..//private/file", "/private/file/",
        "/private/file/.",
        "/private/x/../file", "/%2fprivate/file", "/%2e%2e/private/file", "/private/file%3b",
        "/PRIVATE/../private/file",
    ]

    @Test func noSpellingGetsRoundARule() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let nginx = try await NginxOrigin(
                in: bed, sites: [.init(name: "origin.test", chain: roots.chain("origin.test"))])
            let documents = nginx.documents
            for name in ["private", "public", "x"] {
                for file in ["file", "x/y"] {
                    try bed.file(
                        "nginx/documents/\(name)/\(file)", name == "private" ? Self.secret : "for all", mode: 0o644)
                }
            }
            let python = try await PythonPeer(in: bed, script: "files.py", [documents])
            let node = try await PythonPeer(in: bed, script: "files.mjs", [documents], interpreter: "node")
            let proxy = try await ProxyProcess(
                in: bed,
                pins: """
                    hosts:
                      - match: origin.test
                        rules:
                          - {path: /private/**, response: {content_types: [application/json]}}

                    """, trust: roots.write(to: bed), hosts: ["origin.test": "127.0.0.1"])
            for (name, port) in [("nginx", nginx.plainPort), ("Python", python.port), ("Node", node.port)] {
                var served = 0
                for spelling in Self.spellings {
                    let direct = try await Self.get(spelling, from: port, "origin.test:\(port)")
                    if direct.contains(Self.secret) { served += 1 }
                    let passed = try await Self.get(
                        "http://origin.test:\(port)\(spelling)", from: proxy.port, "origin.test:\(port)")
                    #expect(!passed.contains(Self.secret), "\(name) \(spelling): \(passed)")
                    let isRefused = passed.hasPrefix("HTTP/1.1 400 ") || passed.hasPrefix("HTTP/1.1 502 ")
                    #expect(isRefused || !direct.contains(Self.secret), "\(name) \(spelling): \(passed)")
                }
                // Otherwise the test proves nothing.
                #expect(served >= 8, "\(name) serves \(served)")
            }
            // Ambiguity doesn't matter if all readings match the same rules.
            for spelling in [
                "/public//file", "/public/./file", "/x/../public/file", "/public/file?a=//private/../file",
            ] {
                let passed = try await Self.get(
                    "http://origin.test:\(nginx.plainPort)\(spelling)", from: proxy.port,
                    "origin.test:\(nginx.plainPort)")
                #expect(passed.hasPrefix("HTTP/1.1 200 ") && passed.hasSuffix("for all"), "\(spelling): \(passed)")
            }
            let ambiguous = try await Self.get(
                "http://origin.test:\(nginx.plainPort)/public/%2e%2e/private/file", from: proxy.port,
                "origin.test:\(nginx.plainPort)")
            #expect(ambiguous.hasPrefix("HTTP/1.1 400 Ambiguous path for origin.test"), "\(ambiguous)")
        }
    }

    private static func get(_ target: String, from port: UInt16, _ host: String) async throws -> String {
        let connection = try RawConnection(port: port)
        try await connection.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
        return String(decoding: try await connection.receiveUntilCut().bytes, as: UTF8.self)
    }
}
