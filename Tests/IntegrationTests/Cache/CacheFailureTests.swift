import Foundation
import Glibc
import Testing

/// Stale responses, when the origin fails and during revalidation (RFC 5861).
@Suite(.timeLimit(.minutes(5)))
struct CacheFailureTests {
    private static let stale = "field=Cache-Control:max-age%3D60,stale-if-error%3D600&field=Age:100"

    @Test(arguments: [500, 502, 503, 504]) func anErrorOfTheOriginIsHidden(status: Int) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let first = try await cache.get("/a?\(Self.stale)&fail=\(status)")
            let second = try await cache.get("/a?\(Self.stale)&fail=\(status)")
            #expect(second.status == 200 && second.body == first.body, "\(second)")
            #expect(second.cacheStatus?.contains("fwd-status=\(status)") == true)
            #expect(try await cache.results("/a", count: 2) == ["miss", "stale"])
            #expect(cache.requests("/a").count == 2)
        }
    }

    /// What the origin does instead of an answer.
    @Test func anOriginThatClosesIsHidden() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let first = try await cache.get("/a?\(Self.stale)&close=1")
            for _ in 0..<2 {
                let again = try await cache.get("/a?\(Self.stale)&close=1")
                #expect(again.status == 200 && again.body == first.body, "\(again)")
            }
            #expect(cache.requests("/a").count >= 3)
        }
    }

    @Test func anOriginThatIsGoneIsHidden() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let first = try await cache.getPlain("/a?\(Self.stale)")
            _ = try await cache.getPlain("/b?field=Cache-Control:max-age%3D60,must-revalidate&field=Age:100")
            cache.plain.process.send(signal: SIGKILL)
            _ = try await cache.plain.process.ending()
            let second = try await cache.getPlain("/a?\(Self.stale)")
            #expect(second.status == 200 && second.body == first.body, "\(second)")
            let bound = "/b?field=Cache-Control:max-age%3D60,must-revalidate&field=Age:100"
            #expect(try await cache.getPlain(bound).status == 502)
            #expect(try await cache.getPlain("/c?\(Self.stale)").status == 502)
        }
    }

    @Test func aStaleResponseIsUsedWhileTheOriginIsAsked() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?field=Cache-Control:max-age%3D60,stale-while-revalidate%3D600&field=Age:100"
            let first = try await cache.get(target)
            let second = try await cache.get(target)
            #expect(second.body == first.body && second.cacheStatus?.contains("; hit") == true, "\(second)")
            // The origin is asked for no particular client.
            _ = try await cache.origin.events.first("request", number: 2) { $0["target"] == "/a" }
            try await eventually("three exchanges") {
                cache.proxy.events.all("exchange").filter { $0["path"]?.hasPrefix("/a") == true }.count == 3
            }
            let third = try await cache.get(target)
            #expect(third.body.hasPrefix("/a 2 "))
        }
    }

    /// The origin accepts the request and stays silent. No client waits, and the origin is asked once.
    @Test func nobodyWaitsForTheConfirmation() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?hold=k&field=Cache-Control:max-age%3D60,stale-while-revalidate%3D600&field=Age:100"
            for _ in 0..<6 { #expect(try await cache.get(target).body.hasPrefix("/a 1 ")) }
            _ = try await cache.origin.events.first("request", number: 2) { $0["target"] == "/a" }
            #expect(cache.requests("/a").count == 2)
            _ = try await cache.get("/go/k", "-X", "POST", "-d", "")
            try await eventually("the confirmed response") { try await cache.get(target).body.hasPrefix("/a 2 ") }
        }
    }
}
