import Foundation
import PinproxyConfiguration
import PinproxyTestAuthority
import Testing

/// Machines that fetch their policy from a signed bundle, which nginx serves and `pinproxy bundle` makes.
@Suite(.timeLimit(.minutes(5)))
struct PolicyBundleTests {
    private static let denied = "hosts:\n  - {match: api.test, action: deny}\n"
    private static let wrong = "hosts:\n  - {match: api.test, pinning: public-key, pins: [\(String.wrongPin)]}\n"
    private static let open = "hosts:\n  - {match: api.test, pinning: none}\n"

    @Test func aBundleIsPutIntoForceAndReplaced() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed, etag: true)
            try await bed.sign(Self.denied, "--note", "deny the API")
            try bed.serve()
            let proxy = try await bed.proxy()
            let accepted = try await proxy.events.first("policy.accepted")
            #expect(accepted["version"] == "1")
            #expect(try await bed.api(proxy) == 403)
            let status = try await bed.status()
            #expect(status.contains("policy: bundle version 1 (deny the API) from https://policy.test:"), "\(status)")
            #expect(!status.contains("WARNING: files changed"), "\(status)")

            try await bed.sign(Self.wrong)
            try bed.serve()
            try await bed.look(proxy, Self.open.replacingOccurrences(of: "api", with: "more"), "groups: [laptops]")
            _ = try await proxy.events.first("policy.accepted") { $0["version"] == "2" }
            #expect(try await bed.api(proxy) == 502)
            _ = try await proxy.events.first("pin.mismatch")

            // It applies from the first request after a restart, whatever the server says.
            try FileManager.default.removeItem(atPath: bed.served)
            await proxy.process.stop()
            let next = try await bed.proxy()
            #expect(try await bed.api(next) == 502)
            let failed = try await next.events.first("policy.failed")
            #expect(failed["cause"] == "the server answered 404")
            #expect(failed["effect"] == "bundle version 2 stays")
            #expect(try await bed.status().contains("WARNING: the policy isn't up to date: the server answered 404"))
        }
    }

    /// What an attacker with the server could serve, and what its owners could serve by mistake.
    @Test func whatIsNotTheNextBundleIsRefused() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try await bed.sign(Self.denied)
            let old = try Data(contentsOf: URL(fileURLWithPath: bed.file))
            try await bed.sign(Self.denied)
            let good = try Data(contentsOf: URL(fileURLWithPath: bed.file))
            try bed.serve()
            let proxy = try await bed.proxy()
            _ = try await proxy.events.first("policy.accepted") { $0["version"] == "2" }
            var group = 0
            func refusal(_ own: String = "hosts: []\n") async throws -> String {
                let before = proxy.events.all("policy.failed").count
                group += 1
                try await bed.look(proxy, own, "groups: [g\(group)]")
                let failed = try await proxy.events.first("policy.failed", number: before + 1)
                #expect(try await bed.api(proxy) == 403, "what was in force stays")
                return failed["cause"] ?? ""
            }
            func serve(_ data: Data) throws {
                try data.write(to: URL(fileURLWithPath: bed.file))
                try bed.serve()
            }

            try serve(old)
            #expect(try await refusal().contains("older than version 2"))
            try serve(good.dropLast(2))
            #expect(try await refusal().contains("the bundle is refused: file: "))
            try serve(Data(repeating: 0x20, count: (16 << 20) + 1))
            #expect(try await refusal() == "its response is longer than 16MiB")
            // All of it is signed, by the attacker's own keys.
            let key = bed.keys["other"] ?? ""
            try FileManager.default.removeItem(atPath: bed.file)
            try await bed.make(
                "root", bed.file, "--root", key, "--bundle", key, "--timestamp", key, "--expires", "365d")
            try await bed.sign("root", "other")
            try await bed.sign(Self.open, by: "other")
            try bed.serve()
            #expect(try await refusal().contains("root version 1 differs"))
            // For other machines.
            try serve(good)
            try await bed.sign(Self.open, "--group", "servers")
            try bed.serve()
            #expect(try await refusal().contains("is for the groups servers, and this machine is in g"))
            // Together with what the machine says itself.
            try serve(good)
            try await bed.sign(Self.wrong)
            try bed.serve()
            let own = "hosts:\n  - {match: api.test, action: deny}\n"
            try await bed.look(proxy, own, "groups: [last]")
            _ = try await proxy.events.first("policy.accepted") { $0["version"] == "3" }
            #expect(try await bed.api(proxy) == 403, "the machine's own entry is stricter")
        }
    }

    /// The stages just below this machine's place, and just above.
    @Test func aMachineThatIsNotInTheStageWaits() async throws {
        let place = RolloutStage.ofThisMachine.place
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try await bed.sign(Self.denied, timestamp: "1d")
            try bed.serve()
            let proxy = try await bed.proxy("hosts: []\n", "on_expiry: deny")
            _ = try await proxy.events.first("policy.accepted")
            if place > 0 {
                try await bed.sign(Self.wrong, "--stage", "\(place)", timestamp: "20d")
                try bed.serve()
                try await bed.look(proxy, "hosts: []\n", "on_expiry: deny", "groups: [a]")
                let waiting = try await proxy.events.first("policy.waiting")
                #expect(waiting["version"] == "2")
                #expect(try await bed.api(proxy) == 403)
                let status = try await bed.status()
                #expect(status.contains("policy: version 2 is for other machines first"), "\(status)")
                // The current policy applies as long as the server serves a current timestamp.
                let expires = try await bed.number("expires", ofPolicy: true)
                #expect(expires > Int(Date().timeIntervalSince1970) + 10 * 86_400)
                // That survives a restart, and so does the knowledge of version 2.
                await proxy.process.stop()
            }
            let next = place > 0 ? try await bed.proxy("hosts: []\n", "on_expiry: deny") : proxy
            #expect(try await bed.api(next) == 403)
            try await bed.sign(Self.wrong, "--stage", "\(place + 1)")
            try bed.serve()
            try await bed.look(next, "hosts: []\n", "on_expiry: deny", "groups: [b]")
            _ = try await next.events.first("policy.accepted")
            #expect(try await bed.api(next) == 502)
        }
    }

    /// The same file again, or just a new timestamp, reloads nothing. A bundle doesn't apply a file that a user is
    /// editing.
    @Test func filesThatWereChangedWaitForTheirReload() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try await bed.sign(Self.open)
            try bed.serve()
            let proxy = try await bed.proxy("hosts: []\n", "interval: 10s")
            _ = try await proxy.events.first("policy.accepted")
            let generation = try await bed.number("generation")
            try await bed.make("timestamp", bed.file, "--expires", "6d")
            try await bed.sign("timestamp", "policy")
            try bed.serve()
            // Half written, and not read.
            try bed.bed.file("proxy/pins.yaml", "hosts:\n  - {match: api.test, act")
            // The interval is at least ten seconds: it is awaited once.
            let kept = bed.bed.path("proxy/state/pinproxy/policy.json")
            try await eventually("the new timestamp") {
                try String(contentsOfFile: kept, encoding: .utf8).contains("\"timestampVersion\" : 2")
            }
            #expect(try await bed.number("generation") == generation)
            try await bed.sign(Self.denied)
            try bed.serve()
            _ = try await proxy.events.first("policy.accepted") { $0["version"] == "2" }
            #expect(try await bed.api(proxy) == 403)
            #expect(proxy.events.all("config.error").isEmpty)
            #expect(try await bed.status().contains("WARNING: files changed"))
        }
    }

    @Test func withoutABundleEveryHostIsDeniedWhereThatIsAskedFor() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            let proxy = try await bed.proxy(Self.open, "on_expiry: deny")
            _ = try await proxy.events.first("policy.failed")
            #expect(try await bed.api(proxy) == 403)
            let status = try await bed.status()
            #expect(status.contains("WARNING: every host is denied: no bundle was accepted yet"), "\(status)")
            let explained = try await bed.bed.run(
                [ProxyProcess.executable, "explain", "api.test", "--config", bed.bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed.bed))
            let denier = "policy in pinproxy.yaml (on_expiry: deny): no bundle was"
            #expect(explained.output.contains(denier), "\(explained)")
            try await bed.sign(Self.open)
            try bed.serve()
            try await bed.look(proxy, "hosts: []\n", "on_expiry: deny", "groups: [a]")
            _ = try await proxy.events.first("policy.accepted")
            #expect(try await bed.api(proxy) == 200)
        }
    }

    /// Bundles must be signed in time, so their expiry is announced. A new root's expiry is known at once, with the
    /// same bundle.
    @Test func anEndIsAnnounced() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try await bed.sign(Self.denied, expires: "13d")
            try bed.serve()
            let proxy = try await bed.proxy()
            let bundle = try await proxy.events.first("policy.expiring")
            #expect(bundle["what"] == "bundle" && bundle["version"] == "1", "\(bundle)")
            // A second may have passed since.
            #expect(["12", "13"].contains(bundle["days_left"]), "\(bundle)")
            try await bed.make("root", bed.file, "--expires", "29d")
            try await bed.sign("root", "root")
            try bed.serve()
            try await bed.look(proxy, "hosts: []\n", "groups: [a]")
            let root = try await proxy.events.first("policy.expiring") { $0["what"] == "bundle root" }
            #expect(["28", "29"].contains(root["days_left"]), "\(root)")
            #expect(root["cause"]?.contains("sign the next root") == true, "\(root)")
            #expect(try await bed.api(proxy) == 403)
            for command in ["lint", "check"] {
                let run = try await bed.bed.run(
                    [ProxyProcess.executable, command, "--config", bed.bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed.bed))
                let text = run.output + run.errors
                #expect(text.contains("policy.json: warning: the policy bundle, version 1, expires"), "\(text)")
                #expect(text.contains("the root of the policy bundle"), "\(text)")
            }
        }
    }

    @Test func aBrokenTransferIsResumed() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try await bed.sign(Self.denied)
            let (proxy, server) = try await bed.proxy(fetchingPieces: 1_000)
            #expect(try await proxy.events.first("policy.accepted")["version"] == "1")
            #expect(try await bed.api(proxy) == 403)
            #expect(proxy.events.all("policy.failed").isEmpty)
            let ranges = server.events.all("asked").map { $0["range"] }
            #expect(ranges.count > 1 && ranges.first == "" && ranges.dropFirst().first == "bytes=1000-", "\(ranges)")
        }
    }

    /// The pins of the server's own entry apply. A silent server delays no client.
    @Test func theServerIsPinned() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try await bed.sign(Self.denied)
            try bed.serve()
            let pinned = "hosts:\n  - {match: policy.test, pinning: public-key, pins: [\(String.wrongPin)]}\n"
            let proxy = try await bed.proxy(pinned)
            let failed = try await proxy.events.first("policy.failed")
            #expect(failed["cause"]?.contains("policy.test") == true, "\(failed)")
            #expect(failed["effect"] == "there is no bundle yet")
            #expect(proxy.events.all("policy.accepted").isEmpty)
            #expect(try await bed.api(proxy) == 200)
        }
    }
}
