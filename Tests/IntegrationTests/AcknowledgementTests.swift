import Foundation
import Testing

/// An origin that writes head and body separately must not wait for a delayed acknowledgement. Nagle's algorithm holds
/// the body until the head is acknowledged. A kernel with nothing to send delays that by 40 ms unless asked not to.
@Suite(
    .enabled(if: NetworkBed.isAvailable, "needs root, unshare(1) and ip(8) to make network namespaces"),
    .timeLimit(.minutes(5)))
struct AcknowledgementTests {
    private static let requests = 40

    /// Delayed acknowledgements, as the kernel counts them for the proxy's namespace.
    private func delayed(_ network: NetworkBed) async throws -> Int {
        let run = try await network.bed.run(network.besideProxy + ["cat", "/proc/self/net/netstat"])
        let rows = run.output.split(separator: "\n").filter { $0.hasPrefix("TcpExt:") }.map { $0.split(separator: " ") }
        let column = try #require(rows.first?.firstIndex(of: "DelayedACKs"), "\(run)")
        return try #require(rows.last.flatMap { Int($0[column]) })
    }

    /// Counts late acknowledgements instead of measuring time. A few may be late on a busy machine; all are late if the
    /// proxy doesn't ask for prompt ones.
    @Test func ofABegunResponseEachPartIsAcknowledgedAtOnce() async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed)
            try await network.addUplink()
            try await network.ip("route add default via 192.0.2.1")
            #expect(try await network.change(2)["to"] == "via-wired")
            let before = try await delayed(network)
            let run = try await network.curl(network.url("/nagle/[1-\(Self.requests)]"))
            #expect(run.output.matches(of: /[02]00 200/).count == Self.requests, "\(run)")
            let late = try await delayed(network) - before
            #expect(late < Self.requests / 2, "\(late) of \(Self.requests) were late")
        }
    }
}
