import Foundation
import Testing

/// The status page of a proxy with a cache.
@Suite(.timeLimit(.minutes(5)))
struct CachePageTests {
    /// What `Peers/cache_page.py` saw.
    private struct Seen: Decodable {
        let tile: String
        let overflow: Int
        let phone: Int
        let console: [String]
    }

    @Test func thePageShowsHitsAndBytesSaved() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, sections: AdminClient.section)
            let admin = try await AdminClient(cache.proxy)
            let target = "/a?field=Cache-Control:max-age%3D600&length=5120"
            for _ in 0..<4 { #expect(try await cache.get(target).status == 200) }
            _ = try await cache.results("/a", count: 4)
            let run = try await bed.run([
                "/usr/bin/python3", "-u", PythonPeer.path("cache_page.py"), "http://127.0.0.1:\(admin.port)/",
                bed.path("profile"),
            ])
            #expect(run.succeeded, "\(run)")
            let seen = try JSONDecoder().decode(Seen.self, from: Data(run.output.utf8))
            #expect(seen.tile == "Cache hits75 %of 4 requests, 15 KiB saved", "\(run)")
            #expect(seen.overflow == 0 && seen.phone == 0 && seen.console == [], "\(run)")
        }
    }
}
