import Foundation
import Glibc
import Testing

/// `pinproxy cache`, `explain --live`, metrics and the control socket, of a proxy that has stored something.
@Suite(.timeLimit(.minutes(5)))
struct CacheCommandTests {
    private static let fresh = "field=Cache-Control:max-age%3D600"

    private func pinproxy(_ cache: CacheBed, _ arguments: String...) async throws -> Run {
        try await cache.bed.run(
            [ProxyProcess.executable] + arguments + ["--config", cache.bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: cache.bed))
    }

    private func url(_ cache: CacheBed, _ target: String) -> String {
        "https://origin.test:\(cache.origin.port)\(target)"
    }

    private func show(_ cache: CacheBed, _ target: String) async throws -> Run {
        try await pinproxy(cache, "cache", "show", url(cache, target))
    }

    private func object(_ run: Run) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any], "\(run)")
    }

    @Test func whatIsOnDiskIsShownAndPurged() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: ["cache: disk"])
            let target = "/a?\(Self.fresh)&length=50000"
            _ = try await cache.get(target)
            try await eventually("a hit") { try await cache.get(target).cacheStatus?.contains("; hit") == true }
            let run = try await pinproxy(cache, "cache")
            #expect(run.output.contains("disk: ") && run.output.contains(" of 2GB, 1 response"), "\(run)")
            let shown = try await show(cache, target)
            #expect(shown.succeeded && shown.output.contains("disk"), "\(shown)")
            #expect(try await pinproxy(cache, "cache", "purge", url(cache, target)).succeeded)
            #expect(try await cache.get(target).cacheStatus?.contains("; hit") == false)
            try await eventually("a hit") { try await cache.get(target).cacheStatus?.contains("; hit") == true }
            #expect(try await pinproxy(cache, "cache", "purge", "origin.test").succeeded)
            #expect(try await cache.get(target).cacheStatus?.contains("; hit") == false)
        }
    }

    @Test func whatTheCacheSavesIsShown() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, sections: AdminClient.section)
            let empty = try await pinproxy(cache, "cache")
            #expect(empty.output.contains("requests: none to a host with a cache since the start"), "\(empty)")
            let admin = try await AdminClient(cache.proxy)
            let before = try await admin.ask("GET", "/metrics").body
            #expect(before.contains("\npinproxy_cache_requests_total{result=\"hit\"} 0\n"), "\(before)")

            let stale = "field=Cache-Control:max-age%3D60&field=Age:100&etag=%22x%22"
            for _ in 0..<3 { #expect(try await cache.get("/a?\(Self.fresh)&length=5000").status == 200) }
            for _ in 0..<2 { #expect(try await cache.get("/b?\(stale)&length=3000").status == 200) }
            #expect(try await cache.getPlain("/a?\(Self.fresh)").status == 200)
            _ = try await cache.results("/b", count: 2)
            let run = try await pinproxy(cache, "cache")
            #expect(run.succeeded, "\(run)")
            let lines = run.output.split(separator: "\n").map(String.init)
            #expect(lines[0].hasPrefix("memory: ") && lines[0].hasSuffix(" of 100MB, 3 responses"), "\(run)")
            #expect(
                lines[1]
                    == "requests: 6 since the start, 50.0 % from the cache (2 hits, 1 revalidated, 0 stale, 3 misses)")
            #expect(lines[2] == "saved: 12.7 KiB that no origin had to send", "\(run)")
            #expect(lines[4].hasSuffix("https://origin.test:\(cache.origin.port) (2 responses)"), "\(run)")
            #expect(lines[5].hasSuffix("http://plain.test:\(cache.plain.port) (1 response)"), "\(run)")

            let report = try object(try await pinproxy(cache, "cache", "--json"))
            let requests = try #require(report["requests"] as? [String: Any])
            #expect(requests["hit"] as? Int == 2 && requests["revalidated"] as? Int == 1)
            #expect(requests["miss"] as? Int == 3 && requests["saved_bytes"] as? Int == 13000)
            #expect(requests["hit_ratio"] as? Double == 0.5 && report["entries"] as? Int == 2)
            let metrics = try await admin.ask("GET", "/metrics").body
            for sample in [
                "requests_total{result=\"hit\"} 2", "requests_total{result=\"miss\"} 3",
                "requests_total{result=\"revalidated\"} 1", "requests_total{result=\"stale\"} 0",
                "saved_bytes_total 13000", "responses{store=\"memory\"} 3",
                "limit_bytes{store=\"memory\"} 100000000",
            ] { #expect(metrics.contains("\npinproxy_cache_\(sample)\n"), "\(sample)") }
            let status = try await pinproxy(cache, "status")
            #expect(status.output.contains("\ncache: 50.0 % of requests from the cache, 12.7 KiB saved\n"), "\(status)")
            #expect((try await admin.object("/status")["cache"] as? [String: Any])?["hit"] as? Int == 2)
        }
    }

    @Test func whatIsStoredForAURLIsShown() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?\(Self.fresh)&field=Vary:Accept-Language,Cookie,X-Key&length=2048&token=sesame"
            for language in ["de", "en"] {
                _ = try await cache.get(
                    target, "-H", "Accept-Language: \(language)", "-H", "Cookie: sid=sesame", "-H", "X-Key: sesame")
            }
            let run = try await show(cache, target)
            #expect(run.succeeded, "\(run)")
            let lines = run.output.split(separator: "\n").map(String.init)
            #expect(lines[0] == "https://origin.test:\(cache.origin.port)/a?***: 2 responses", "\(run)")
            #expect(lines[1].hasPrefix("  200, 2.0 KiB, ") && lines[1].contains("in memory for "), "\(run)")
            #expect(lines[1].contains("(user \(getuid()))"), "\(run)")
            #expect(lines[2].hasPrefix("    fresh for ") && lines[2].hasSuffix("(max-age of 10m)"), "\(run)")
            for language in ["de", "en"] {
                let fields = "accept-language: \(language), cookie: (not shown), x-key: (not shown)"
                #expect(lines.contains("    for requests with \(fields)"), "\(run)")
            }
            #expect(lines[4] == "    such a GET is answered with it", "\(run)")
            let json = try await pinproxy(cache, "cache", "show", url(cache, target), "--json")
            #expect(!json.output.contains("sesame"), "\(json)")
            #expect(!run.output.contains("sesame"), "\(run)")
            let report = try object(json)
            let first = try #require((report["responses"] as? [[String: Any]])?.first)
            #expect(first["owner"] as? String == "user" && first["user"] as? Int == Int(getuid()))
            #expect(first["basis"] as? String == "max-age" && first["answer"] as? String == "served")
            #expect(report["store"] as? String == "memory" && report["shared"] as? Bool == false)
        }
    }

    /// Targets of stored responses, and what a GET would get.
    @Test(arguments: [
        ("field=Cache-Control:max-age%3D60&field=Age:100&etag=%22x%22", "confirmed it by ETag"),
        (
            "field=Cache-Control:max-age%3D60,stale-while-revalidate%3D600&field=Age:100",
            "is answered with it while the origin confirms it"
        ),
        (
            "field=Cache-Control:no-cache&modified=Fri,%2001%20Jan%202010%2000:00:00%20GMT",
            "confirmed it by Last-Modified, at each use (no-cache)"
        ),
        ("field=Cache-Control:max-age%3D60,stale-if-error%3D600&field=Age:100", "goes to the origin: without ETag"),
    ])
    func whatAGetWouldGetIsSaid(query: String, shown: String) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            #expect(try await cache.get("/a?\(query)").cacheStatus?.hasSuffix("; stored") == true)
            let run = try await show(cache, "/a?\(query)")
            #expect(run.succeeded && run.output.contains(shown), "\(run)")
        }
    }

    @Test func aPartIsShownAsOne() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?\(Self.fresh)&etag=%22x%22&ranges=1&length=1000"
            #expect(try await cache.get(target, "-r", "10-99").status == 206)
            let run = try await show(cache, target)
            #expect(run.output.contains("  206, 90 B (bytes 10 to 99 of 1000), "), "\(run)")
            #expect(run.output.contains("a GET goes to the origin: only a part is stored"), "\(run)")
        }
    }

    /// Targets with responses that aren't stored, and why.
    @Test(arguments: [
        ("field=Cache-Control:no-store", [String](), "the response said no-store"),
        ("\(fresh)&field=Vary:*", [], "(Vary: *)"), ("", [], "has no freshness information"),
        (fresh, ["-H", "Authorization: Bearer x"], "the request had credentials"),
        ("\(fresh)&field=Content-Type:text/event-stream", [], "it has no end"),
        ("\(fresh)&length=60000", [], "larger than a twentieth of the store"),
        ("\(fresh)&length=60000&coding=chunked", [], "or too long"),
        ("\(fresh)&length=5000&cut=3000", [], "it was interrupted"),
    ])
    func whyNothingIsStoredIsSaid(query: String, arguments: [String], reason: String) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(
                bed, entry: ["cache: memory", "session: {resume: false}"], sections: ["cache": ["memory: 1MiB"]])
            let before = try await show(cache, "/a?\(query)")
            #expect(before.ending == .exited(1) && before.output.contains("no response to GET since"), "\(before)")
            _ = try await bed.curl(via: cache.proxy, [url(cache, "/a?\(query)")] + arguments)
            let run = try await show(cache, "/a?\(query)")
            #expect(run.ending == .exited(1), "\(run)")
            #expect(
                run.output.contains("/a?***: nothing is stored\n  cache: memory, private")
                    || query.isEmpty && run.output.contains(": nothing is stored"), "\(run)")
            #expect(run.output.contains(" ago: ") && run.output.contains(reason), "\(run)")
        }
    }

    @Test func whatTheFilesForbidIsSaid() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: ["cache: off"])
            let off = try await show(cache, "/a")
            #expect(off.ending == .exited(1) && off.output.contains("\n  cache: off (entry, "), "\(off)")
            let other = try await pinproxy(cache, "cache", "show", "http://nowhere.test/a")
            #expect(other.ending == .exited(1) && other.output.contains("cache is off where nothing is"), "\(other)")
            let all = try await pinproxy(cache, "cache")
            #expect(all.succeeded && all.output.contains("no entry enables the cache: write cache:"), "\(all)")
        }
    }

    /// Responses stored under an old policy stay, and are not served.
    @Test func aReloadIsSeen() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            _ = try await cache.get("/a?\(Self.fresh)")
            try await cache.reload(["cache: memory", "min_tls: 1.3"])
            let run = try await show(cache, "/a?\(Self.fresh)")
            #expect(run.output.contains("goes to the origin: pins, trust or rules have changed since"), "\(run)")
            try await cache.reload(["cache: off"])
            let off = try await show(cache, "/a?\(Self.fresh)")
            #expect(off.succeeded && off.output.contains("\nnothing more is stored: cache: off ("), "\(off)")
        }
    }

    @Test func whatIsPurgedIsFetchedAgain() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            func fill() async throws {
                for path in ["/a", "/b?x=1&", "/b?x=2&"] {
                    _ = try await cache.get(path + (path.contains("?") ? "" : "?") + Self.fresh)
                }
                _ = try await cache.getPlain("/a?\(Self.fresh)")
            }
            let (port, plain) = (cache.origin.port, cache.plain.port)
            // Each with the number of responses removed.
            let scopes: [([String], Int)] = [
                (["origin.test"], 3), (["ORIGIN.test:\(port)"], 3), (["origin.test:1"], 0), (["nowhere.test"], 0),
                (["plain.test"], 1), (["https://origin.test:\(port)/b?x=1&\(Self.fresh)"], 1),
                (["https://origin.test:\(port)/b"], 0), (["http://origin.test:\(port)/a?\(Self.fresh)"], 0),
                (["http://plain.test:\(plain)/a?\(Self.fresh)"], 1), (["--all"], 4),
            ]
            for (scope, count) in scopes {
                try await fill()
                let run = try await bed.run(
                    [ProxyProcess.executable, "cache", "purge"] + scope
                        + ["--config", bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed))
                #expect(
                    run.succeeded && run.output == "removed: \(count) response\(count == 1 ? "" : "s")",
                    "\(scope): \(run)")
                #expect(run.errors.contains("nothing was stored for") == (count == 0), "\(run)")
            }
            let asked = cache.requests("/a").count
            #expect(try await cache.get("/a?\(Self.fresh)").cacheStatus?.contains("fwd=uri-miss") == true)
            #expect(cache.requests("/a").count == asked + 1)
            let told = cache.proxy.events.all("cache.purge")
            #expect(told.count == scopes.count && told.allSatisfy { $0["cause"]?.contains("user \(getuid())") == true })
            #expect(told.last?["effect"] == "all that was stored was removed: 4 responses")
            #expect(told.allSatisfy { $0["effect"]?.contains("max-age") == false })
        }
    }

    /// Stores hold each user's responses. The admin port, which any user may read, shows none of them.
    @Test func onlyTheOwnerMayAsk() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, sections: AdminClient.section)
            _ = try await cache.get("/a?\(Self.fresh)")
            let admin = try await AdminClient(cache.proxy)
            let target = "/cache/responses?url=https%3A%2F%2Forigin.test%2Fa"
            for (method, resource) in [("GET", "/cache"), ("GET", target), ("POST", "/cache/purge?all")] {
                let answer = try await admin.ask(method, resource)
                #expect(answer.status == 403 && answer.body.contains("only the control socket"), "\(answer)")
            }
            #expect(try await cache.get("/a?\(Self.fresh)").cacheStatus?.contains("; hit") == true)
            let control = TaskControl(bed: bed, proxy: cache.proxy)
            #expect(try await control.ask("GET", target).status == 200)
            for (method, resource, status) in [
                ("GET", "/cache/purge?all", 405), ("POST", "/cache", 405), ("POST", "/cache/purge", 400),
                ("POST", "/cache/purge?url=ftp%3A%2F%2Fa", 400), ("POST", "/cache/purge?all&host=a", 400),
                ("POST", "/cache/purge?host=%zz", 400), ("GET", "/cache/responses", 400),
                ("GET", "/cache/responses?url=https%3A%2F%2Fa%2F%23b", 400), ("GET", "/cache/figures", 404),
            ] {
                let answer = try await control.ask(method, resource)
                #expect(answer.status == status, "\(method) \(resource): \(answer)")
            }
            #expect(try await cache.get("/a?\(Self.fresh)").cacheStatus?.contains("; hit") == true)
        }
    }

    /// By the rules, and by what is stored.
    @Test func explainAsksTheRunningProxy() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let (host, path) = ("origin.test:\(cache.origin.port)", "/a?\(Self.fresh)")
            func explain(_ more: String...) async throws -> Run {
                try await bed.run(
                    [ProxyProcess.executable, "explain", host, "--path", path, "--live"] + more
                        + ["--config", bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed))
            }
            #expect(try await explain().output.contains("\n  nothing is stored now"))
            _ = try await cache.get(path)
            let run = try await explain()
            #expect(run.output.contains("\nThe cache:\n  stored (memory, private to each user) if"), "\(run)")
            #expect(run.output.contains("    fresh for ") && run.output.contains("a GET is answered with it"), "\(run)")
            let other = try await explain("--client", "user=\(getuid() + 1)")
            #expect(other.output.contains("nothing is stored now"), "\(other)")
            let report = try object(try await explain("--json", "--client", "user=\(getuid())"))
            let responses = (report["cache"] as? [String: Any])?["responses"] as? [[String: Any]]
            #expect(responses?.count == 1 && responses?.first?["answer"] as? String == "served")
        }
    }
}
