import Testing

/// The test bed itself: a fault here would make every other suite's result worthless.
@Suite(.timeLimit(.minutes(1)))
struct HarnessTests {
    @Test func aProgramRunsWithNothingInherited() async throws {
        try await withTestBed { bed in
            let run = try await bed.run(["/bin/sh", "-c", "cat; env; exit 3"], input: Array("in\n".utf8))
            #expect(run.ending == .exited(3))
            #expect(run.output.hasPrefix("in\n"))
            #expect(!run.output.contains("CURL_CA_BUNDLE"))
        }
    }
}
