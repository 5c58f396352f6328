import Foundation
import Testing

/// SIGHUP: a new snapshot applies from the next exchange on, and exchanges in flight don't notice.
@Suite(.timeLimit(.minutes(5)))
struct ReloadTests {
    private static let wrong = """
        hosts:
          - match: \(OriginBed.name)
            pinning: public-key
            pins: [\(String.wrongPin)]

        """

    private func rewrite(_ shared: SharedBed, pins: String) throws {
        try shared.bed.file("proxy/pins.yaml", pins)
    }

    @Test func aWrongFileChangesNothing() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            try rewrite(shared, pins: "hosts:\n  - match: origin.test\n    pining: public-key\n")
            let outcome = try await shared.proxy.reload()
            #expect(outcome.name == "config.error")
            #expect("\(outcome)".contains("pins.yaml:3:5"), "\(outcome)")
            #expect(try await shared.proxy.connect(to: shared.authority).status == 200)
            try rewrite(shared, pins: Self.wrong)
            #expect(try await shared.proxy.reload().name == "config.reload")
            #expect(try await shared.proxy.connect(to: shared.authority).status == 502)
        }
    }

    /// One client connection with two requests: the first in flight while the pin changes.
    @Test func theNextExchangeOfAKeptConnectionIsDecidedAnew() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                ["curl", "-sS", "-i", "--suppress-connect-headers", "\(shared.url)/hold/first", "\(shared.url)/echo"],
                environment: shared.proxy.clientEnvironment, mergingErrors: true)
            _ = try await #require(shared.origin).events.first("held")
            try rewrite(shared, pins: Self.wrong)
            #expect(try await shared.proxy.reload().name == "config.reload")
            try await release("first", at: shared)
            _ = try await client.ending()
            let text = await client.output.text
            #expect(text.contains("first,second"), "cut short: \(text)")
            #expect(text.contains("502"), "\(text)")
            #expect(shared.origin?.events.all("request").contains { $0["target"] == "/echo" } == false)
        }
    }

    @Test func aHostThatIsDeniedLosesItsKeptConnection() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                ["curl", "-sS", "-i", "--suppress-connect-headers", "\(shared.url)/hold/first", "\(shared.url)/echo"],
                environment: shared.proxy.clientEnvironment, mergingErrors: true)
            _ = try await #require(shared.origin).events.first("held")
            try rewrite(shared, pins: "defaults: {action: tunnel}\n")
            #expect(try await shared.proxy.reload().name == "config.reload")
            try await release("first", at: shared)
            _ = try await client.ending()
            #expect(await client.output.text.contains("first,second"))
            // The second request of the intercepted connection must not reach the origin under the
            // leaf of the proxy: it comes, if at all, through a tunnel that curl cannot trust.
            #expect(shared.origin?.events.all("request").contains { $0["target"] == "/echo" } == false)
        }
    }

    @Test func aClientThatIsNoLongerAllowedLosesItsKeptConnection() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                ["curl", "-sS", "-i", "--suppress-connect-headers", "\(shared.url)/hold/first", "\(shared.url)/echo"],
                environment: shared.proxy.clientEnvironment, mergingErrors: true)
            _ = try await #require(shared.origin).events.first("held")
            let file = bed.path("proxy/pinproxy.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try bed.file(
                "proxy/pinproxy.yaml",
                text.replacingOccurrences(of: "proxy:\n", with: "proxy:\n  allow_clients: [192.0.2.1]\n"))
            #expect(try await shared.proxy.reload().name == "config.reload")
            try await release("first", at: shared)
            _ = try await client.ending()
            // The exchange in flight finishes. The next request is no longer this client's to make.
            #expect(await client.output.text.contains("first,second"))
            #expect(shared.origin?.events.all("request").contains { $0["target"] == "/echo" } == false)
            #expect(try await shared.proxy.connect(to: shared.authority).status == 403)
        }
    }

    /// Head limits apply to the next head, even on a kept connection.
    @Test func newHeadLimitsReachKeptConnections() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["limits": ["request_head: 8KiB", "response_head: 8KiB"]])
            let connection = try RawConnection(to: shared.proxy)
            let long = String(repeating: "x", count: 20_000)
            let host = "\(OriginBed.name):\(shared.secondOriginPort)"
            func get(_ path: String, _ field: String = "X: y") async throws -> RawResponse {
                try await connection.send("GET \(shared.plainURL)\(path) HTTP/1.1\r\nHost: \(host)\r\n\(field)\r\n\r\n")
                return try await connection.response()
            }
            #expect(try await get("/large/3").status == 200)
            let file = bed.path("proxy/pinproxy.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try bed.file("proxy/pinproxy.yaml", text.replacingOccurrences(of: "8KiB", with: "64KiB"))
            #expect(try await shared.proxy.reload().name == "config.reload")
            #expect(try await get("/large/4", "X: \(long)").status == 200)
            let head = Data("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \(long)\r\n\r\n".utf8).base64EncodedString()
                .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            #expect(try await get("/raw/" + head).status == 200)
            try bed.file("proxy/pinproxy.yaml", text)
            #expect(try await shared.proxy.reload().name == "config.reload")
            #expect(try await get("/large/5", "X: \(long)").status == 431)
        }
    }

    @Test func idleConnectionsOfAChangedPolicyAreRetired() async throws {
        try await withTestBed { bed in
            // Each worker has its own idle connections.
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let origin = try #require(shared.origin)
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            // Nothing changed: the connection stays.
            try await shared.proxy.reload()
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            #expect(origin.events.all("connection").count == 1)
            // The host's entry changes: its connection is closed, without any request for the host.
            try rewrite(shared, pins: Self.wrong)
            try await shared.proxy.reload()
            _ = try await origin.events.first("closed")
            let event = try await shared.proxy.events.first("session.invalidate")
            #expect(event["connections"] == "1" && event["cause"] == "the configuration has changed", "\(event)")
            #expect(try await shared.proxy.connect(to: shared.authority).status == 502)
        }
    }

    @Test func reloadsUnderLoadDropNothing() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                [
                    "curl", "-sS", "--parallel", "--parallel-max", "8", "--fail", "-o", "/dev/null", "-w",
                    "%{http_code} %{size_download} %{exitcode}\\n", "\(shared.url)/large/[20000-22999]",
                ], environment: shared.proxy.clientEnvironment)
            let pins = ["hosts: []\n", "hosts:\n  - match: origin.test\n    pinning: none\n"]
            var reloads = 0
            while client.output.lines.count < 3000, reloads < 50 {
                try rewrite(shared, pins: pins[reloads % 2])
                #expect(try await shared.proxy.reload().name == "config.reload")
                reloads += 1
            }
            #expect(reloads > 1)
            let ending = try await client.ending()
            let text = await client.output.text
            let errors = await client.errors.text
            #expect(ending == .exited(0), "\(errors)")
            #expect(
                text.split(separator: "\n").count { $0.hasPrefix("200 2") && $0.hasSuffix(" 0") } == 3000, "\(text)")
        }
    }

    private func release(_ name: String, at shared: SharedBed) async throws {
        let run = try await shared.bed.run([
            "curl", "-sS", "--cacert", shared.bed.path("roots.pem"), "--resolve",
            "\(shared.authority):127.0.0.1", "\(shared.url)/release/\(name)",
        ])
        #expect(run.output == "released", "\(run)")
    }
}
