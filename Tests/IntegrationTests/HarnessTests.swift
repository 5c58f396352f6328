import Testing

/// The test bed itself: a fault here would make every other suite's result worthless.
@Suite(.timeLimit(.minutes(5)))
struct HarnessTests {
    @Test func aProgramRunsWithNothingInherited() async throws {
        try await withTestBed { bed in
            let run = try await bed.run(["/bin/sh", "-c", "cat; env; exit 3"], input: Array("in\n".utf8))
            #expect(run.ending == .exited(3))
            #expect(run.output.hasPrefix("in\n"))
            #expect(!run.output.contains("CURL_CA_BUNDLE"))
        }
    }

    @Test func nginxServesEachSiteItsChain() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let trust = try roots.write(to: bed)
            let nginx = try await NginxOrigin(
                in: bed,
                sites: [
                    .init(name: "one.test", chain: roots.chain("one.test")),
                    .init(name: "two.test", chain: roots.chain("two.test")),
                ])
            for name in ["one.test", "two.test"] {
                let run = try await bed.run([
                    "curl", "-sS", "--cacert", trust, "--resolve", "\(name):\(nginx.port):127.0.0.1",
                    "https://\(name):\(nginx.port)/hello",
                ])
                #expect(run.output == "hello", "\(run)")
            }
        }
    }

    @Test func thePythonOriginTellsWhatItSaw() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("origin.test"))
            let run = try await bed.run([
                "curl", "-sS", "--cacert", try roots.write(to: bed), "--resolve",
                "origin.test:\(origin.port):127.0.0.1", "https://origin.test:\(origin.port)/chunked",
            ])
            #expect(run.output == "hello, world", "\(run)")
            let request = try await origin.events.first("request")
            #expect(request["target"] == "/chunked")
        }
    }
}
