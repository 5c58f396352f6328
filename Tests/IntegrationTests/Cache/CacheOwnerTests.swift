import Foundation
import Glibc
import Testing

/// A response is stored for its user, unless the entry shares it, and under the policy that admitted it.
@Suite(.timeLimit(.minutes(5)))
struct CacheOwnerTests {
    private static let target = "/a?field=Cache-Control:max-age%3D600"

    /// A request of another user of this machine.
    private func get(_ cache: CacheBed, as user: Int, _ target: String) async throws -> CachedResponse {
        let url = "https://origin.test:\(cache.origin.port)\(target)"
        let command = ["setpriv", "--reuid", "\(user)", "--clear-groups", "curl", "-sS", "--suppress-connect-headers"]
        // The certificates are in the bed's directory, which is the test's user's alone.
        return try await CachedResponse(
            cache.bed.run(command + ["-k", "-i", url], environment: cache.proxy.clientEnvironment))
    }

    @Test(.enabled(if: geteuid() == 0, "needs root, to be several users"), arguments: [false, true])
    func aResponseOfOneUserReachesNobodyElse(isShared: Bool) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: ["cache: memory", "shared: \(isShared)"])
            let first = try await get(cache, as: 1001, Self.target)
            #expect(first.status == 200)
            let other = try await get(cache, as: 1002, Self.target)
            #expect((other.body == first.body) == isShared)
            #expect(try await get(cache, as: 1001, Self.target).body == first.body)
            #expect(cache.requests("/a").count == (isShared ? 1 : 2))
        }
    }

    /// In a store that all users share.
    @Test(arguments: [
        "field=Cache-Control:private,max-age%3D60", "field=Set-Cookie:a%3Db&field=Cache-Control:max-age%3D60",
    ])
    func whatIsForOneIsNotShared(query: String) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: ["cache: memory", "shared: true"])
            for _ in 0..<2 { #expect(try await cache.get("/a?\(query)").status == 200) }
            #expect(cache.requests("/a").count == 2)
        }
    }

    /// One user can't influence what others get by a field that origins heed and Vary doesn't name. Nor does another
    /// user get what a cookie brought.
    @Test(
        .enabled(if: geteuid() == 0, "needs root, to be several users"),
        arguments: ["X-Forwarded-Host: evil.test", "X-Original-URL: /b", "Cookie: a=b", "Referer: https://a.test/"])
    func aSharedStoreIsNotPoisoned(field: String) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: ["cache: memory", "shared: true"])
            let first = try await cache.get(Self.target, "-H", field)
            let other = try await get(cache, as: 1001, Self.target)
            #expect(first.status == 200 && other.status == 200 && first.body != other.body)
            // Each keeps its own.
            #expect(try await cache.get(Self.target, "-H", field).body == first.body)
            #expect(try await get(cache, as: 1002, Self.target).body == other.body)
        }
    }

    @Test func cookiesAreGivenOnce() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = Self.target + "&field=Set-Cookie:a%3Db"
            #expect(try await cache.get(target).values("Set-Cookie") == ["a=b"])
            #expect(try await cache.get(target).values("Set-Cookie").isEmpty)
            #expect(cache.requests("/a").count == 1)
        }
    }

    /// A reload that changes rules, pins or trust makes what was stored under the others miss; another doesn't.
    @Test(arguments: [
        (["cache: memory", "report_uri: null"], true), (["cache: memory", "response: {status: [200]}"], false),
        (["cache: memory", "request: {headers: {X-Team: a}}"], false), (["cache: memory", "min_tls: 1.3"], false),
        (["cache: memory", "clients: {users: [root, nobody]}"], false), (["cache: memory", "shared: true"], false),
    ])
    func aReloadIsHeeded(entry: [String], isKept: Bool) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            _ = try await cache.get(Self.target)
            try await cache.reload(entry)
            let after = try await cache.get(Self.target)
            #expect(after.cacheStatus?.contains("; hit") == isKept, "\(after)")
            // And back: it was kept.
            try await cache.reload(["cache: memory"])
            #expect(try await cache.get(Self.target).cacheStatus?.contains("; hit") == true)
        }
    }

    /// A chain that is refused, and only reported, stores nothing.
    @Test func reportsStoreNothing() async throws {
        try await withTestBed { bed in
            let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
            let cache = try await CacheBed(
                bed, entry: ["cache: memory", "pinning: public-key", "pins: [\(pin)]", "enforcement: report"])
            for _ in 0..<2 { #expect(try await cache.get(Self.target).status == 200) }
            #expect(cache.requests("/a").count == 2)
        }
    }
}
