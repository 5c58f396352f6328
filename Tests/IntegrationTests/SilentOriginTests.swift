import Testing

/// Origins that go silent. The client gets an error, or sees that the response is incomplete; other clients are served
/// meanwhile; no descriptor and no task is left.
@Suite(.timeLimit(.minutes(5)))
struct SilentOriginTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let stage: PythonPeer.Stage
        var isSecure = true
        /// The timeout under test, as short as a busy machine allows. The others keep their defaults.
        let timeout: String
        let outcome: Outcome

        var testDescription: String { "\(stage.rawValue), \(isSecure ? "https" : "http")" }
    }

    enum Outcome: Sendable {
        /// 504 with this error in Proxy-Status; in answer to CONNECT, if there is no connection to the origin.
        case refused(String)
        /// The head, this part of the body, and an end that can't pass for a good one.
        case cut(String)
        case whole
    }

    /// A time to connect that can't end what another one has to.
    private static func others(_ timeout: String) -> [String] { timeout.hasPrefix("connect:") ? [] : ["connect: 5m"] }

    private static let unanswered = Outcome.refused("http_response_timeout")

    private static let cases =
        [
            Case(stage: .backlog, timeout: "connect: 500ms", outcome: .refused("connection_timeout")),
            Case(stage: .accept, timeout: "tls_handshake: 500ms", outcome: .refused("connection_timeout")),
            Case(stage: .hello, timeout: "tls_handshake: 500ms", outcome: .refused("connection_timeout")),
            Case(stage: .backlog, isSecure: false, timeout: "connect: 500ms", outcome: .refused("connection_timeout")),
            Case(stage: .accept, isSecure: false, timeout: "first_byte: 1s", outcome: unanswered),
        ]
        + [true, false].flatMap { isSecure in
            [
                Case(stage: .head, isSecure: isSecure, timeout: "idle_client: 2s", outcome: .cut("")),
                Case(stage: .halfBody, isSecure: isSecure, timeout: "idle_client: 2s", outcome: .cut("\nfirst")),
                Case(stage: .halfChunk, isSecure: isSecure, timeout: "idle_client: 2s", outcome: .cut("\nfirst")),
                Case(stage: .answer, isSecure: isSecure, timeout: "first_byte: 60s", outcome: .whole),
            ]
                + [.handshake, .request, .halfHead, .continue].map {
                    Case(stage: $0, isSecure: isSecure, timeout: "first_byte: 1s", outcome: unanswered)
                }
        }

    @Test(arguments: cases) func theClientIsTold(_ silence: Case) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.silent(
                until: silence.stage, in: bed, chain: silence.isSecure ? roots.chain("silent.test") : nil)
            let shared = try await OriginBed.prepare(
                bed, sections: ["timeouts": [silence.timeout, "idle_upstream: 100ms"] + Self.others(silence.timeout)],
                hosts: ["silent.test": "127.0.0.1"], roots: roots)
            let before = try await shared.footprint()
            let authority = "silent.test:\(origin.port)"
            // curl prints the head of the answer to CONNECT as well.
            async let answer = shared.bed.run(
                ["curl", "-sS", "-i", "--max-time", "120", "\(silence.isSecure ? "https" : "http")://\(authority)/"],
                environment: shared.proxy.clientEnvironment)
            if silence.stage != .backlog { _ = try await origin.events.first("silent") }
            try await shared.servesOthers()

            let run = try await answer
            let statusLine = run.output.split(separator: "\r\n").last { $0.hasPrefix("HTTP/1.1 ") }
            let status = statusLine?.split(separator: " ").dropFirst().first
            switch silence.outcome {
            case .refused(let error):
                #expect(status == "504" && run.output.contains("error=\(error)"), "\(run)")
                let isConnected = silence.isSecure && error == "http_response_timeout"
                #expect(run.output.contains("HTTP/1.1 200 ") == isConnected, "\(run)")
            case .cut(let body):
                #expect(!run.succeeded && status == "200" && run.output.hasSuffix("\r\n\r\(body)"), "\(run)")
            case .whole:
                #expect(run.succeeded && run.output.hasSuffix("\r\n\r\nfirst,last"), "\(run)")
            }
            try await shared.hasGivenBack(since: before)
        }
    }

    /// The first connection breaks with the request; the second takes longer to fail than `first_byte`.
    @Test func theSecondTryHasATimeOfItsOwn() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["timeouts": ["first_byte: 500ms", "tls_handshake: 3s"]])
            let url = shared.url + "/die-and-stall"
            let run = try await shared.curl("-i", url, url)
            #expect(run.output.contains("HTTP/1.1 200 ") && run.output.contains("HTTP/1.1 504 "), "\(run)")
            #expect(run.output.contains("connection_timeout"), "\(run)")
            #expect(shared.origin?.events.all("stalled").count == 1)
        }
    }

    /// The client has not asked for another protocol.
    @Test func anUnaskedUpgradeIsRefusedAtOnce() async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer.silent(until: .switch, in: bed)
            let shared = try await OriginBed.prepare(
                bed, sections: ["timeouts": ["idle_upstream: 100ms"]], hosts: ["silent.test": "127.0.0.1"])
            let before = try await shared.footprint()
            let run = try await shared.curl("-i", "http://silent.test:\(origin.port)/")
            #expect(run.output.contains("HTTP/1.1 502 ") && run.output.contains("error=http_protocol_error"), "\(run)")
            try await shared.hasGivenBack(since: before)
        }
    }

    /// An upgraded connection may be idle: it lasts until the client leaves.
    @Test func anUpgradeLastsAsLongAsTheClient() async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer.silent(until: .switch, in: bed)
            let shared = try await OriginBed.prepare(
                bed, sections: ["timeouts": ["idle_upstream: 100ms", "first_byte: 1s"]],
                hosts: ["silent.test": "127.0.0.1"])
            let before = try await shared.footprint()
            do {
                let client = try RawConnection(to: shared.proxy)
                try await client.send(
                    "GET http://silent.test:\(origin.port)/ HTTP/1.1\r\nHost: silent.test:\(origin.port)\r\n"
                        + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
                #expect(try await client.response().status == 101)
                try await shared.servesOthers()
                #expect(try await shared.tasks.list().count == 1)
                try await client.resetOnClose()
            }
            try await shared.hasGivenBack(since: before)
        }
    }
}
