import Testing

/// Report collectors that go silent.
@Suite(.timeLimit(.minutes(5)))
struct SilentCollectorTests {
    private static func entry(reportingTo uri: String) -> String {
        """
        hosts:
          - match: pinned.test
            pinning: public-key
            pins: [\(String.wrongPin)]
            report_uri: \(uri)

        """
    }

    @Test(arguments: PythonPeer.Stage.allCases.filter { $0 != .answer })
    func aReportFailsAndNothingElse(_ stage: PythonPeer.Stage) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let collector = try await PythonPeer.silent(until: stage, in: bed, chain: roots.chain("collector.test"))
            let shared = try await OriginBed.prepare(
                bed, pins: Self.entry(reportingTo: "https://collector.test:\(collector.port)/"),
                sections: [
                    "timeouts": ["connect: 500ms", "tls_handshake: 500ms", "first_byte: 1s", "idle_upstream: 100ms"]
                ],
                hosts: ["collector.test": "127.0.0.1", "pinned.test": "127.0.0.1"], roots: roots)
            let before = try await shared.footprint()
            // On a busy machine a handshake may time out, and nothing is reported.
            try await eventually("a mismatch") {
                try await shared.proxy.connect(to: "pinned.test:\(shared.originPort)").status == 502
            }
            _ = try await shared.proxy.events.first("pin.mismatch")
            if stage != .backlog { _ = try await collector.events.first("silent") }
            try await shared.servesOthers()

            let failure = try await shared.proxy.events.first("pin.report.failed")
            #expect(failure["host"] == "pinned.test", "\(failure)")
            #expect(failure["cause"]?.isEmpty == false, "\(failure)")
            try await shared.hasGivenBack(since: before)
        }
    }
}
