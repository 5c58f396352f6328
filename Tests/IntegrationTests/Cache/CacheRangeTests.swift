import Testing

/// Parts of stored responses (RFC 9111 sections 3.3 and 3.4).
@Suite(.timeLimit(.minutes(5)))
struct CacheRangeTests {
    private static let target = "/a?etag=%22x%22&field=Cache-Control:max-age%3D600&length=10000&ranges=1"

    @Test func partsOfAWholeResponseAreServed() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let body = try await cache.get(Self.target).body
            for (range, part, said) in [
                ("0-9", body.prefix(10), "0-9"), ("100-", body.dropFirst(100), "100-9999"),
                ("-50", body.suffix(50), "9950-9999"), ("9000-20000", body.dropFirst(9000), "9000-9999"),
            ] {
                for option in ["--http1.1", "--http2"] {
                    let answer = try await cache.get(Self.target, "-r", range, option)
                    #expect(answer.status == 206 && answer.body == part, "\(answer)")
                    #expect(answer.values("Content-Range") == ["bytes \(said)/10000"])
                    #expect(answer.values("Content-Length") == ["\(part.count)"])
                }
            }
            let none = try await cache.get(Self.target, "-r", "10000-")
            #expect(none.status == 416 && none.values("Content-Range") == ["bytes */10000"], "\(none)")
            let several = try await cache.get(Self.target, "-r", "0-1,5-6")
            #expect(several.status == 200 && several.body == body)
            for (validator, status) in [("\"x\"", 206), ("\"y\"", 200)] {
                let answer = try await cache.get(Self.target, "-r", "0-9", "-H", "If-Range: \(validator)")
                #expect(answer.status == status, "\(answer)")
            }
            #expect(cache.requests("/a").count == 1)
        }
    }

    @Test func partsBecomeTheWhole() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let steady = Self.target + "&steady=1"
            let first = try await cache.get(steady, "-r", "0-3999")
            #expect(first.status == 206 && first.body.count == 4000)
            #expect(try await cache.get(steady, "-r", "1000-1999").cacheStatus?.contains("; hit") == true)
            // The missing part is requested.
            let rest = try await cache.get(steady, "-r", "3000-9999")
            #expect(rest.cacheStatus?.contains("fwd=partial") == true)
            let whole = try await cache.get(steady)
            #expect(whole.status == 200 && whole.cacheStatus?.contains("; hit") == true, "\(whole)")
            #expect(whole.body == first.body.prefix(3000) + rest.body)
            #expect(whole.values("Content-Range").isEmpty && whole.values("Content-Length") == ["10000"])
            #expect(cache.requests("/a").count == 2)
        }
    }

    /// Without a strong validator two parts may not belong together.
    @Test(arguments: ["etag=W/%22x%22", "modified=Fri,%2001%20Jan%202010%2000:00:00%20GMT"])
    func partsOfPerhapsOthersAreNotStored(validator: String) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?\(validator)&field=Cache-Control:max-age%3D600&length=10000&ranges=1"
            for _ in 0..<2 { #expect(try await cache.get(target, "-r", "0-9").status == 206) }
            #expect(cache.requests("/a").count == 2)
        }
    }
}
