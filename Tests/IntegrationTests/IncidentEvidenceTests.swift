import Foundation
import PinproxyTestAuthority
import Testing

/// Who learns what about a refused origin, and when its client is looked up.
@Suite(.timeLimit(.minutes(5)))
struct IncidentEvidenceTests {
    /// A page's scripts can read the response inside its connection. They must not learn who the client is, or where
    /// names resolve to.
    @Test(arguments: ["application/json", "text/html"])
    func whatIsAnsweredInsideNamesNobody(form: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let first = try await PythonPeer.origin(in: bed, name: "first", chain: roots.chain("api.test"))
            let second = try await PythonPeer.origin(in: bed, name: "second", chain: roots.chain("other.test"))
            let proxy = try await ProxyProcess(
                in: bed,
                pins: """
                    hosts:
                      - {match: api.test, session: {redirects: follow, follow_to: [other.test]}}
                      - {match: other.test, pinning: public-key, pins: [\(String.wrongPin)]}

                    """, trust: roots.write(to: bed), hosts: ["api.test": "127.0.0.1", "other.test": "127.0.0.1"])
            let answer =
                "HTTP/1.1 302 F\r\nLocation: https://other.test:\(second.port)/\r\nContent-Length: 0\r\n\r\n"
            let run = try await bed.curl(
                via: proxy, ["https://api.test:\(first.port)" + RuleBed.answer("x", answer), "-H", "Accept: \(form)"])
            let event = try await proxy.events.first("pin.mismatch")
            let line = try await proxy.events.first("exchange") { $0["task"] == event["task"] }
            // A request other than CONNECT waits for no lookup.
            let program = [event["client_exe"]].compactMap(\.self)
            let known =
                program + [
                    try #require(event["client"]), "hosts file", "127.0.0.1", "\"client\"", "client  ",
                ]
            #expect(run.output.contains("pinning failure"), "\(run)")
            for text in known { #expect(!run.output.contains(text), "\(text): \(run)") }
            #expect(run.output.contains("TLS 1.3"), "\(run)")

            // The log has all of it, of the refused connection and not of the first.
            #expect(event["address"] == "127.0.0.1:\(second.port)", "\(event)")
            #expect(line["address"] == event["address"] && line["resolver"] == "hosts file", "\(line)")
        }
    }

    /// Without a request log the client's process hasn't been looked up before.
    @Test(arguments: ["intercept", "verify-tunnel"])
    func theClientIsFoundWithoutALogOfRequests(action: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("api.test"))
            let proxy = try await ProxyProcess(
                in: bed,
                pins: """
                    hosts:
                      - {match: api.test, action: \(action), pinning: public-key, pins: [\(String.wrongPin)]}

                    """,
                trust: roots.write(to: bed), hosts: ["api.test": "127.0.0.1"], sections: ["log": ["access: false"]])
            let event = try await proxy.events.firstNamingProgram("pin.mismatch") {
                _ = try await bed.curl(via: proxy, ["https://api.test:\(origin.port)/"])
            }
            #expect(event["client_exe"]?.contains("curl") == true, "\(event)")
            #expect(event["address"] == "127.0.0.1:\(origin.port)" && event["incident"] != nil, "\(event)")
        }
    }
}
