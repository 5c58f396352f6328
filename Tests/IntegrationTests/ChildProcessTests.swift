import Foundation
import Testing

/// The harness itself: what a test learns about a program that it starts.
@Suite(.timeLimit(.minutes(5)))
struct ChildProcessTests {
    /// The output arrives whatever the numbers of the descriptors. Tests here have many open.
    @Test(arguments: 0..<8) func aProgramsOutputArrives(offset: CInt) async throws {
        var held: [CInt] = []
        defer { for descriptor in held { close(descriptor) } }
        repeat {
            held.append(open("/dev/null", O_RDONLY | O_CLOEXEC))
        } while held.last.map { $0 >= 0 && $0 < 893 + offset } == true
        try await withTestBed { bed in
            let run = try await bed.run(["sh", "-c", "echo out; echo err >&2; cat"], input: Array("in".utf8))
            #expect(run.succeeded && run.output == "out\nin" && run.errors == "err", "\(run)")
        }
    }
}
