import Foundation
import Testing

/// The system's name servers change while all links stay: by a VPN, a DHCP client, or systemd-resolved.
@Suite(.timeLimit(.minutes(5)), .enabled(if: NetworkBed.isAvailable, "needs root, to mount and to listen on port 53"))
struct NameServerChangeTests {
    /// How a file is replaced.
    enum Change: String, CaseIterable, Sendable {
        case rewritten = "cat \"$1\" > \"$0/resolv.conf\""
        case renamed = "cp \"$1\" \"$0/resolv.conf.new\" && mv \"$0/resolv.conf.new\" \"$0/resolv.conf\""
        case behindALink = "cp \"$1\" \"$0/run/new\" && mv \"$0/run/new\" \"$0/run/resolv.conf\""
        case linkedAnew =
            "cp \"$1\" \"$0/run/other\" && ln -s run/other \"$0/link\" && mv \"$0/link\" \"$0/resolv.conf\""
    }

    /// Names that the old server leaves unanswered are resolved by the new one, including pending ones.
    @Test(arguments: Change.allCases) func theNewServersAreAsked(_ change: Change) async throws {
        try await withTestBed { bed in
            let network = LoopbackAddress.network()
            let silent = try await PythonPeer(
                in: bed, script: "silent_names.py", ["--listen", network + ".53", "--over", "udp"])
            _ = try await PythonPeer(in: bed, script: "answering_names.py", ["--listen", network + ".54"])
            let plain = try await PythonPeer.origin(in: bed, chain: nil)
            let etc = bed.path("etc")
            try bed.file("etc/run/resolv.conf", "nameserver \(network).53\n", mode: 0o644)
            let isLink = change == .behindALink || change == .linkedAnew
            _ = try await bed.run([
                "/bin/sh", "-ec",
                """
                cp -a /etc/ld.so.cache /etc/passwd /etc/group /etc/nsswitch.conf '\(etc)'
                \(isLink ? "ln -s run/resolv.conf" : "cp '\(etc)/run/resolv.conf'") '\(etc)/resolv.conf'
                """,
            ])
            let new = try bed.file("new.conf", "nameserver \(network).54\n", mode: 0o644)
            let proxy = try await ProxyProcess(
                in: bed, trust: TestRoots().write(to: bed), sections: ["timeouts": ["connect: 60s"]],
                launcher: ["unshare", "--mount", "/bin/sh", "-c", "mount --bind '\(etc)' /etc && exec \"$0\" \"$@\""])
            let client = try RawConnection(to: proxy)
            try await client.send(
                "GET http://waiting.test:\(plain.port)/echo HTTP/1.1\r\nHost: waiting.test:\(plain.port)\r\n\r\n")
            _ = try await silent.events.first("silent")
            let run = try await bed.run(["/bin/sh", "-ec", change.rawValue, etc, new])
            #expect(run.succeeded, "\(run)")
            let event = try await proxy.events.first("resolver.reload")
            #expect(event["level"] == "notice" && event["file"] == "/etc/resolv.conf", "\(event)")
            #expect(try await client.response().status == 200)
            let other = try await bed.curl(via: proxy, ["http://other.test:\(plain.port)/echo"])
            #expect(other.succeeded, "\(other)")
        }
    }
}
