import Foundation
import PinproxyTestAuthority
import Testing

/// Programs that people run, against nginx as the origin.
@Suite(.timeLimit(.minutes(5)))
struct CacheProgramTests {
    private struct Site {
        let origin: NginxOrigin
        let proxy: ProxyProcess
        var url: String { "https://origin.test:\(origin.port)" }

        init(_ bed: TestBed, entry: String = "cache: memory") async throws {
            let roots = try TestRoots()
            let chain = ServedChain(try roots.intermediate.issue(TestRoots.template(["origin.test"])))
            origin = try await NginxOrigin(
                in: bed, sites: [.init(name: "origin.test", chain: chain)],
                locations: "location /fresh/ { alias \(bed.path("nginx/documents"))/; expires 1h; }")
            proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n  - match: origin.test\n    \(entry)\n", trust: roots.write(to: bed),
                hosts: ["origin.test": "127.0.0.1"])
        }

        func results(_ count: Int) async throws -> [String?] {
            try await eventually("\(count) exchanges") { proxy.events.all("exchange").count >= count }
            return proxy.events.all("exchange").map { $0["cache"] }
        }
    }

    @Test func nginxConfirmsWhatItServed() async throws {
        try await withTestBed { bed in
            let site = try await Site(bed)
            try bed.file("nginx/documents/page", String(repeating: "page\n", count: 10_000), mode: 0o644)
            let whole = try Data(contentsOf: URL(fileURLWithPath: bed.path("nginx/documents/page")))
            for path in ["/fresh/page", "/fresh/page", "/fresh/page"] {
                let run = try await bed.curl(via: site.proxy, ["\(site.url)\(path)"])
                #expect(Data(run.output.utf8).count >= whole.count - 1)
            }
            #expect(try await site.results(3) == ["miss", "hit", "hit"])
            let part = try await bed.curl(via: site.proxy, ["-r", "5-9", "\(site.url)/fresh/page"])
            #expect(part.output.hasPrefix("page"))
            let forced = try await bed.curl(
                via: site.proxy, ["-H", "Cache-Control: no-cache", "\(site.url)/fresh/page"])
            #expect(forced.succeeded)
            #expect(try await site.results(5).suffix(2) == ["hit", "revalidated"])
        }
    }

    /// Many programs at one time, each byte compared.
    @Test(arguments: ["cache: memory", "cache: disk"]) func pythonGetsEveryByte(entry: String) async throws {
        try await withTestBed { bed in
            let site = try await Site(bed, entry: entry)
            for number in 0..<8 {
                try bed.file(
                    "nginx/documents/\(number)", String(repeating: "\(number) line\n", count: 1 + number * 20_000),
                    mode: 0o644)
            }
            let script = """
                import hashlib, ssl, sys, urllib.request, concurrent.futures
                url, folder = sys.argv[1:]
                def get(number):
                    whole = open(f"{folder}/{number % 8}", "rb").read()
                    got = urllib.request.urlopen(f"{url}/fresh/{number % 8}").read()
                    assert got == whole, (number, len(got), len(whole))
                with concurrent.futures.ThreadPoolExecutor(12) as pool:
                    list(pool.map(get, range(240)))
                print("same")
                """
            let run = try await bed.run(
                ["/usr/bin/python3", "-c", script, site.url, bed.path("nginx/documents")],
                environment: site.proxy.clientEnvironment)
            #expect(run.output == "same", "\(run)")
            let results = try await site.results(240)
            #expect(results.count { $0 == "hit" } > 100, "\(results)")
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium"), "needs Chromium"))
    func chromiumShowsAPageFromTheStore() async throws {
        try await withTestBed { bed in
            let site = try await Site(bed)
            try bed.file(
                "nginx/documents/page.html", "<title>t</title><p id=x></p><script src=script.js></script>", mode: 0o644)
            try bed.file(
                "nginx/documents/script.js", "document.getElementById('x').textContent = 'from the store'", mode: 0o644)
            for round in 0..<2 {
                let run = try await bed.run(
                    [
                        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors",
                        "--user-data-dir=\(bed.path("chromium-\(round)"))",
                        "--proxy-server=\(site.proxy.address):\(site.proxy.port)", "--dump-dom",
                        "\(site.url)/fresh/page.html",
                    ], environment: ["HOME": bed.path("home")])
                #expect(run.output.contains("from the store"), "\(run)")
            }
            let lines = site.proxy.events.all("exchange").filter { $0["host"] == "origin.test" }
            let script = lines.filter { $0["path"]?.hasSuffix("script.js") == true }.map { $0["cache"] }
            #expect(script == ["miss", "hit"], "\(lines)")
        }
    }
}
