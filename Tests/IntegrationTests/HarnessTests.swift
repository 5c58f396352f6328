import Foundation
import Testing

/// The test bed itself: a fault here would make all other results worthless.
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

    /// Every event of a test's proxy is checked against the schema when the bed ends.
    @Test(arguments: [
        (#""event":"exchange","task":1,"method":"GET","status":200,"bytes_up":1,"bytes_down":2,"duration":0.25"#, 0),
        (#""event":"exchange","task":"1","method":"GET","status":200,"bytes_up":1,"bytes_down":2,"duration":0.25"#, 1),
        (#""event":"exchange","task":1,"method":"GET","status":200,"bytes_up":1,"bytes_down":2"#, 1),
        (
            #"""
            "event":"exchange","task":1,"method":"GET","status":200,"bytes_up":1,"bytes_down":2,"duration":0,\#
            "reused":1
            """#,
            1
        ),
        (
            #"""
            "event":"exchange","task":1,"method":"GET","status":200,"bytes_up":1,"bytes_down":2,"duration":0,\#
            "reused":true,"port":-1
            """#,
            1
        ),
        (
            #"""
            "event":"exchange","task":1,"method":"GET","status":200,"bytes_up":1,"bytes_down":2,"duration":0,\#
            "hops":[{"status":301,"to":"/"}]
            """#,
            0
        ),
        (
            #"""
            "event":"exchange","task":1,"method":"GET","status":200,"bytes_up":1,"bytes_down":2,"duration":0,\#
            "hops":[{"status":301}]
            """#,
            1
        ),
        (
            #"""
            "event":"exchange","task":1,"method":"GET","status":200,"bytes_up":1,"bytes_down":2,"duration":0,"new":"",\#
            "days_left":0.5
            """#,
            2
        ),
        (#""event":"connection.failed","peer":"client","code":7,"requests":0,"cause":"""#, 1),
        (#""event":"proxy.stop""#, 0), (#""event":"nobody's""#, 1),
    ])
    func anEventThatDoesNotFitTheSchemaIsSeen(_ fields: String, _ count: Int) throws {
        let line = #"{"time":"2026-11-21T04:12:00.123Z","level":"info","# + fields + "}"
        let problems = try LogSchema.own.get().problems(of: JSONSerialization.jsonObject(with: Data(line.utf8)))
        #expect(problems.count == count, "\(problems)")
    }

    @Test func theSchemaHasTheEventsOfThePage() throws {
        let rows = try Documentation.text("docs/log.md").split(separator: "\n").filter { $0.hasPrefix("| `") }
        let names = rows.flatMap { row in
            row.split(separator: "|")[0].matches(of: /`(exchange|[a-z]+(\.[a-z]+)+)`/).map { String($0.output.1) }
        }
        #expect(try LogSchema.own.get().events == Set(names))
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
