import Foundation
import PinproxyTestAuthority
import Testing

/// A redirect from an internet address reaches no internal address, judged by the addresses dialled.
@Suite(.enabled(if: NetworkBed.isAvailable, "needs root, to make network namespaces"), .timeLimit(.minutes(5)))
struct RedirectReachTests {
    private static let pins = """
        hosts:
          - match: remote.test
            session: {redirects: follow, follow_to: [other.test, here.test, 127.0.0.1, "::1", remote.test]}
          - {match: here.test, session: {redirects: follow, follow_to: [remote.test, localhost]}}

        """

    private func answer(_ location: String) -> String {
        RuleBed.answer("x", "HTTP/1.1 302 F\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")
    }

    @Test func nothingInsideIsReachedFromOutside() async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed, pins: Self.pins)
            let here = try await PythonPeer.origin(
                in: bed, name: "here", chain: network.roots.chain("here.test"), launcher: network.besideProxy)
            try await network.addUplink()
            try await network.ip("route add default via 192.0.2.1")
            _ = try await network.change(2)
            func status(_ url: String) async throws -> Run { try await network.curl(url) }

            // Between addresses of the internet, and out of this machine.
            for url in [
                network.url(answer(network.url(of: NetworkBed.otherName))),
                "https://here.test:\(here.port)" + answer(network.url()),
            ] {
                let run = try await status(url)
                #expect(run.output.hasSuffix("200 200") && run.output.contains("Pinproxy-Location"), "\(run)")
            }
            let inside = [
                "https://here.test:\(here.port)/echo", "https://127.0.0.1:\(here.port)/echo",
                "https://[::ffff:127.0.0.1]:\(here.port)/echo",
                "https://[::1]:\(here.port)/echo",
            ]
            // Twice: once with nothing in the pool, and once with a connection there, which a client on this machine
            // may have.
            for _ in 0..<2 {
                for location in inside {
                    let run = try await status(network.url(answer(location)))
                    #expect(run.output.hasSuffix("200 403"), "\(location): \(run)")
                    #expect(run.output.contains("a redirect from an address of the internet led there"), "\(run)")
                }
                let direct = try await status("https://here.test:\(here.port)/echo")
                #expect(direct.output.hasSuffix("200 200"), "\(direct)")
            }
            // From outside by way of another outside address: each hop counts.
            let onwards = network.url(answer(inside[0]), of: NetworkBed.otherName)
            let run = try await status(network.url(answer(onwards)))
            #expect(run.output.hasSuffix("200 403"), "\(run)")
            // Inside it is no matter.
            let within = try await status("https://here.test:\(here.port)" + answer("/echo"))
            #expect(within.output.hasSuffix("200 200") && within.output.contains("Pinproxy-Location"), "\(within)")
        }
    }
}
