import Foundation
import Glibc
import Testing

/// `cache: disk`: stored responses outlive the proxy, and a modified one is never served.
@Suite(.timeLimit(.minutes(5)))
struct CacheDiskTests {
    private static let fresh = "field=Cache-Control:max-age%3D600"
    private static let entry = ["cache: disk"]

    /// The files of bodies.
    private func bodies(_ cache: CacheBed) throws -> [String] {
        let folder = cache.directory
        return try FileManager.default.subpathsOfDirectory(atPath: folder).map { "\(folder)/\($0)" }
            .filter { path in
                var isFolder: ObjCBool = false
                _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
                return !isFolder.boolValue && !(path as NSString).lastPathComponent.hasPrefix("index")
            }
    }

    private func isHit(_ response: CachedResponse) -> Bool { response.cacheStatus?.contains("; hit") == true }

    /// Repeats the request until the response is stored.
    private func awaitHit(_ cache: CacheBed, _ target: String) async throws {
        try await eventually("a hit of \(target)") { isHit(try await cache.get(target)) }
    }

    @Test(arguments: [0, 1, 65_536, 65_537, 3_000_000]) func aBodyOutlivesTheProxy(length: Int) async throws {
        try await withTestBed { bed in
            var cache = try await CacheBed(bed, entry: Self.entry)
            let target = "/a?\(Self.fresh)&etag=%22x%22&ranges=1&length=\(length)"
            let first = try await cache.get(target)
            try await awaitHit(cache, target)
            cache = try await cache.restarted()
            let counted = cache.requests("/a").count
            for option in ["--http1.1", "--http2"] {
                let again = try await cache.get(target, option)
                #expect(isHit(again) && again.body.hasPrefix("/a ") && again.body.count == first.body.count)
            }
            if length > 100_000 {
                let part = try await cache.get(target, "-r", "65000-131999")
                #expect(part.status == 206 && part.body.count == 67_000 && isHit(part), "\(part.lines)")
                #expect(try await cache.get(target, "-I").values("Content-Length") == ["\(length)"])
            }
            #expect(cache.requests("/a").count == counted)
        }
    }

    @Test func theFilesAreTheProxysOwn() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: Self.entry)
            _ = try await cache.get("/a?\(Self.fresh)&length=5000")
            try await awaitHit(cache, "/a?\(Self.fresh)&length=5000")
            for path in try [cache.directory]
                + FileManager.default.subpathsOfDirectory(atPath: cache.directory).map({
                    "\(cache.directory)/\($0)"
                })
            {
                var status = stat()
                #expect(stat(path, &status) == 0)
                #expect(status.st_mode & 0o077 == 0, "\(path) has mode \(String(status.st_mode, radix: 8))")
            }
        }
    }

    @Test func aChangedBodyIsNotServed() async throws {
        try await withTestBed { bed in
            var cache = try await CacheBed(bed, entry: Self.entry)
            let target = "/a?\(Self.fresh)&length=200000"
            let first = try await cache.get(target)
            try await awaitHit(cache, target)
            cache = try await cache.restarted()
            let asked = cache.requests("/a").count
            for path in try bodies(cache) {
                let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
                try file.seek(toOffset: 10)
                try file.write(contentsOf: Data("#".utf8))
                try file.close()
            }
            let again = try await cache.get(target)
            #expect(!isHit(again) && again.body.count == first.body.count && !again.body.contains("#"))
            #expect(cache.requests("/a").count == asked + 1)
            _ = try await cache.proxy.events.first("cache.damaged")
        }
    }

    /// A later piece is changed: the client sees that the response is incomplete.
    @Test func aBodyThatIsChangedFurtherOnIsNotServedThere() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: Self.entry)
            let target = "/a?\(Self.fresh)&length=200000"
            _ = try await cache.get(target)
            try await awaitHit(cache, target)
            for path in try bodies(cache) {
                let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
                try file.seek(toOffset: 150_000)
                try file.write(contentsOf: Data("#".utf8))
                try file.close()
            }
            let run = try await bed.curl(via: cache.proxy, ["https://origin.test:\(cache.origin.port)\(target)"])
            #expect(!run.succeeded && !run.output.contains("#"))
            #expect(try await cache.get(target).body.count == 200_000)
        }
    }

    @Test func itCanBeDeletedWhileItIsUsed() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: Self.entry)
            let target = "/a?\(Self.fresh)&length=50000"
            _ = try await cache.get(target)
            try await awaitHit(cache, target)
            try FileManager.default.removeItem(atPath: cache.directory)
            let again = try await cache.get(target)
            #expect(!isHit(again) && again.body.count == 50000)
            try await awaitHit(cache, target)
        }
    }

    @Test func aStaleResponseIsConfirmedOnDisk() async throws {
        try await withTestBed { bed in
            var cache = try await CacheBed(bed, entry: Self.entry)
            let target = "/a?etag=%22x%22&field=Cache-Control:max-age%3D60&field=Age:100&later=X-Later:1&length=100000"
            let first = try await cache.get(target)
            try await eventually("a confirmation") {
                try await cache.get(target).cacheStatus?.contains("fwd-status=304") == true
            }
            cache = try await cache.restarted()
            let again = try await cache.get(target)
            #expect(again.body.dropFirst(5) == first.body.dropFirst(5) && again.values("X-Later") == ["1"])
        }
    }

    /// A look-up after the response to an unsafe request never finds what was stored before it.
    @Test func anUnsafeRequestIsHeededAtOnce() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: Self.entry)
            let target = "/a?\(Self.fresh)&length=20000"
            for _ in 0..<15 {
                _ = try await cache.get(target)
                try await awaitHit(cache, target)
                // Over one connection: nothing else gets between the requests.
                let url = "https://origin.test:\(cache.origin.port)\(target)"
                let run = try await bed.curl(
                    via: cache.proxy,
                    ["-o", "/dev/null", "-X", "POST", "-d", "x", url, "--next", "-sS", "-i", url])
                #expect(try !isHit(CachedResponse(run)), "\(run)")
            }
        }
    }

    /// The cache is turned off while a client downloads a body from it. The client gets all of it.
    @Test func aReloadDoesntCutWhatIsServed() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: Self.entry)
            let url = "https://origin.test:\(cache.origin.port)/a?\(Self.fresh)&length=20000000"
            try await eventually("a hit") {
                let arguments = ["-o", "/dev/null", "-D", "-", url]
                return try await isHit(CachedResponse(bed.curl(via: cache.proxy, arguments)))
            }
            let client = try await bed.start(
                ["curl", "-sS", "--limit-rate", "8M", "-o", bed.path("got"), url],
                environment: cache.proxy.clientEnvironment)
            try await eventually("a part has arrived") {
                ((try? FileManager.default.attributesOfItem(atPath: bed.path("got"))[.size]) as? Int ?? 0) > 0
            }
            try await cache.reload(["cache: off"])
            #expect(try await client.ending() == .exited(0))
            let got = try Data(contentsOf: URL(fileURLWithPath: bed.path("got")))
            #expect(got.count == 20_000_000 && got.starts(with: Data("/a 1 ".utf8)))
        }
    }

    /// An unusable directory stops storing, and nothing else.
    @Test func aDirectoryThatOthersCanWriteIsNotUsed() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: Self.entry) { folder in
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                chmod(folder, 0o777)
            }
            for _ in 0..<2 { #expect(try await cache.get("/a?\(Self.fresh)").status == 200) }
            let event = try await cache.proxy.events.first("cache.failed")
            #expect(event["cause"]?.contains(cache.directory) == true, "\(event)")
            // A response that can't be removed isn't reported as removed.
            let purge = try await bed.run(
                [
                    ProxyProcess.executable, "cache", "purge", "--all", "--config", bed.path("proxy/pinproxy.yaml"),
                ], environment: ProxyProcess.environment(in: bed))
            #expect(!purge.succeeded && purge.errors.contains("isn't open"), "\(purge)")
            #expect(cache.requests("/a").count == 2)
        }
    }

    /// The process is killed while it writes bodies. Whatever is served afterwards is complete.
    @Test func aKilledProxyLeavesNothingTorn() async throws {
        try await withTestBed { bed in
            var cache = try await CacheBed(bed, entry: Self.entry)
            for round in 0..<5 {
                let running = cache
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<6 {
                        group.addTask {
                            _ = try? await running.get("/\(round)-\(number)?\(Self.fresh)&length=\(number * 300_000)")
                        }
                    }
                    _ = try await running.origin.events.first("request") { $0["target"] == "/\(round)-3" }
                    running.proxy.process.send(signal: SIGKILL)
                    try await group.waitForAll()
                }
                cache = try await cache.restarted()
                for number in 0..<6 {
                    let answer = try await cache.get("/\(round)-\(number)?\(Self.fresh)&length=\(number * 300_000)")
                    #expect(answer.status == 200)
                    #expect(answer.body.hasPrefix("/\(round)-\(number) "))
                    #expect(number == 0 || answer.body.count == number * 300_000)
                }
            }
        }
    }
}
