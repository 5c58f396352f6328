import Foundation
import Testing

/// `cache: memory`: which responses are stored, and which requests they answer (RFC 9111).
@Suite(.timeLimit(.minutes(5)))
struct CacheTests {
    private static let fresh = "field=Cache-Control:max-age%3D600"

    @Test func theSecondRequestDoesntReachTheOrigin() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let first = try await cache.get("/a?\(Self.fresh)&length=5000")
            #expect(first.status == 200 && first.body.count == 5000)
            #expect(first.values("Age").isEmpty)
            #expect(first.cacheStatus == "pinproxy; fwd=uri-miss; fwd-status=200; stored")
            for _ in 0..<4 {
                let again = try await cache.get("/a?\(Self.fresh)&length=5000")
                #expect(again.status == 200 && again.body == first.body, "\(again)")
                #expect(again.values("Age").first.flatMap { Int($0) }.map { (0..<60).contains($0) } == true)
                #expect(again.cacheStatus?.hasPrefix("pinproxy; hit; ttl=") == true)
                #expect(again.values("Date") == first.values("Date"))
            }
            #expect(cache.requests("/a").count == 1)
            #expect(try await cache.results("/a", count: 5) == ["miss", "hit", "hit", "hit", "hit"])
        }
    }

    @Test func nothingIsStoredWhereNothingIsSaid() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: ["cache: off"])
            for _ in 0..<2 { #expect(try await cache.get("/a?\(Self.fresh)").cacheStatus == nil) }
            #expect(cache.requests("/a").count == 2)
            #expect(try await cache.results("/a", count: 2) == [nil, nil])
        }
    }

    /// Over TLS and without, in chunks and with a length, for HTTP/1.1, HTTP/2 and HTTP/1.0.
    @Test func everyWayIsServedTheSame() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/chunks?coding=chunked&length=40000&\(Self.fresh)"
            let body = try await cache.get(target).body
            #expect(body.count == 40000)
            for option in ["--http2", "--http1.1", "--http1.0"] {
                let answer = try await cache.get(target, option)
                #expect(answer.body == body && answer.values("Content-Length") == ["40000"], "\(answer)")
                #expect(answer.values("Transfer-Encoding").isEmpty)
            }
            #expect(cache.requests("/chunks").count == 1)
            _ = try await cache.getPlain(target)
            #expect(try await cache.getPlain(target).cacheStatus?.contains("hit") == true)
            #expect(cache.plain.events.all("request").count == 1)
        }
    }

    /// Each with how often the origin is asked by two requests.
    @Test(arguments: [
        ("field=Cache-Control:no-store", 2), ("field=Cache-Control:max-age%3D0", 2), ("", 2),
        ("field=Cache-Control:private,max-age%3D60", 1), ("field=Expires:0", 2), ("status=404&\(fresh)", 1),
        ("field=Expires:Fri,%2001%20Jan%202100%2000:00:00%20GMT", 1), ("status=302&\(fresh)", 1),
        ("status=500", 2), ("field=Age:700&\(fresh)", 2),
        ("field=Vary:*&\(fresh)", 2), ("field=CDN-Cache-Control:max-age%3D60", 2),
        ("field=Content-Type:text/event-stream&\(fresh)", 2),
        ("modified=Fri,%2001%20Jan%202010%2000:00:00%20GMT", 1),
    ])
    func theResponseDecides(query: String, count: Int) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let first = try await cache.get("/a?\(query)")
            let second = try await cache.get("/a?\(query)")
            #expect(cache.requests("/a").count == count)
            #expect((first.body == second.body) == (count == 1))
            #expect(first.status == second.status)
        }
    }

    /// Each with whether a stored response will do.
    @Test(arguments: [
        (["-H", "Cache-Control: no-cache"], false), (["-H", "Pragma: no-cache"], false),
        (["-H", "Cache-Control: max-age=0"], false), (["-H", "Cache-Control: no-store"], false),
        (["-H", "Cache-Control: min-fresh=601"], false), (["-H", "Cache-Control: min-fresh=10"], true),
        (["-H", "Cache-Control: only-if-cached"], true), (["-H", "Authorization: Bearer x"], false),
        (["-H", "Cookie: a=b"], true), (["-X", "POST", "-d", "x"], false), (["-H", "If-Match: \"x\""], false),
        (["-H", "Accept: text/plain"], true),
    ])
    func theRequestDecides(arguments: [String], willDo: Bool) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            _ = try await cache.get("/a?\(Self.fresh)")
            let run = try await bed.curl(
                via: cache.proxy, ["-i", "https://origin.test:\(cache.origin.port)/a?\(Self.fresh)"] + arguments)
            #expect(try CachedResponse(run).cacheStatus?.contains("; hit") == willDo, "\(run)")
            #expect(cache.requests("/a").count == (willDo ? 1 : 2))
        }
    }

    @Test func aClientThatWantsNothingElseIsToldThatNothingIsStored() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let answer = try await cache.get("/a?\(Self.fresh)", "-H", "Cache-Control: only-if-cached")
            #expect(answer.status == 504 && answer.body.contains("only-if-cached"), "\(answer)")
            #expect(cache.requests("/a").isEmpty)
        }
    }

    @Test func requestsThatDifferInWhatVaryNamesHaveResponsesOfTheirOwn() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?\(Self.fresh)&field=Vary:Accept-Language"
            for _ in 0..<2 {
                for language in ["de", "en", "fr"] {
                    #expect(try await cache.get(target, "-H", "Accept-Language: \(language)").status == 200)
                }
            }
            #expect(cache.requests("/a").count == 3)
            #expect(try await cache.get(target).cacheStatus?.contains("fwd=vary-miss") == true)
        }
    }

    // MARK: Confirmation

    @Test(arguments: ["etag=%22x%22", "modified=Fri,%2001%20Jan%202010%2000:00:00%20GMT"])
    func aStaleResponseIsConfirmed(validator: String) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?\(validator)&field=Cache-Control:max-age%3D60&field=Age:100&later=X-Later:1"
            let first = try await cache.get(target)
            let second = try await cache.get(target)
            #expect(second.status == 200 && second.body == first.body, "\(second)")
            #expect(second.values("X-Later") == ["1"])
            let told = try #require(second.cacheStatus)
            #expect(told.hasPrefix("pinproxy; fwd=stale; ") && told.contains("; fwd-status=304; stored"), "\(told)")
            #expect(cache.requests("/a").count == 2)
            #expect(try await cache.results("/a", count: 2) == ["miss", "revalidated"])
        }
    }

    /// The origin confirms a version that isn't the stored one: it is asked again, without the condition.
    @Test func aConfirmationOfAnotherVersionIsNone() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?etag=%22x%22&wrong=%22y%22&field=Cache-Control:max-age%3D60&field=Age:100"
            _ = try await cache.get(target)
            let second = try await cache.get(target)
            #expect(second.status == 200 && second.body.hasPrefix("/a 3 "), "\(second)")
            #expect(cache.requests("/a").map { $0["fields"]?.contains("if-none-match") } == [false, true, false])
        }
    }

    /// A body has no defined meaning in a GET (RFC 9110 section 9.3.1).
    @Test func aGETWithABodyIsNotServedFromTheStore() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            for _ in 0..<2 {
                let answer = try await cache.get("/a?\(Self.fresh)", "-X", "GET", "-d", "x")
                #expect(answer.status == 200 && answer.cacheStatus?.contains("; fwd=bypass") == true, "\(answer)")
            }
            #expect(cache.requests("/a").count == 2)
        }
    }

    @Test func aStaleResponseIsReplaced() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let stale = "field=Cache-Control:max-age%3D60&field=Age:100"
            let first = try await cache.get("/a?etag=%22x%22&\(stale)&fail=200")
            let second = try await cache.get("/a?etag=%22x%22&\(stale)&fail=404")
            #expect(first.status == 200 && second.status == 404)
            #expect(cache.requests("/a").count == 2)
        }
    }

    /// The client's own conditions are evaluated against the stored response.
    @Test func aClientThatHasItAlreadyIsToldSo() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?etag=%22x%22&\(Self.fresh)"
            _ = try await cache.get(target)
            let known = try await cache.get(target, "-H", "If-None-Match: \"y\", W/\"x\"")
            #expect(known.status == 304 && known.body.isEmpty && known.values("ETag") == ["\"x\""], "\(known)")
            #expect(known.values("Content-Length").isEmpty)
            let other = try await cache.get(target, "-H", "If-None-Match: \"y\"")
            #expect(other.status == 200)
            #expect(cache.requests("/a").count == 1)
        }
    }

    @Test func aHeadIsServedFromAWholeResponse() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            let target = "/a?\(Self.fresh)&length=3000"
            _ = try await cache.get(target)
            for option in ["--http1.1", "--http2"] {
                let head = try await cache.get(target, "-I", option)
                #expect(head.status == 200 && head.values("Content-Length") == ["3000"], "\(head)")
            }
            #expect(cache.requests("/a").count == 1)
        }
    }

    // MARK: What isn't stored

    @Test func anInterruptedBodyIsNotStored() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, entry: ["cache: memory", "session: {resume: false}"])
            let target = "/a?\(Self.fresh)&length=5000&cut=3000"
            for _ in 0..<2 { #expect(try await cache.get(target).body.count == 3000) }
            #expect(cache.requests("/a").count == 2)
        }
    }

    /// One response takes at most a twentieth of the store.
    @Test(arguments: ["", "&coding=chunked"]) func aLargeBodyIsNotStored(coding: String) async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed, sections: ["cache": ["memory: 1MiB"]])
            for _ in 0..<2 {
                #expect(try await cache.get("/a?\(Self.fresh)&length=60000\(coding)").body.count == 60000)
                #expect(try await cache.get("/b?\(Self.fresh)&length=50000\(coding)").body.count == 50000)
            }
            #expect(cache.requests("/a").count == 2 && cache.requests("/b").count == 1)
        }
    }

    @Test func whatTheRulesRefuseIsNotStored() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(
                bed, entry: ["cache: memory", "response: {serializer: json, status: [200], content_types: null}"])
            for _ in 0..<2 {
                #expect(try await cache.get("/a?\(Self.fresh)&field=Content-Type:application/json").status == 502)
            }
            #expect(cache.requests("/a").count == 2)
        }
    }

    @Test func credentialsNeedLeave() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            for _ in 0..<2 {
                _ = try await cache.get("/a?\(Self.fresh)", "-H", "Authorization: Bearer x")
                _ = try await cache.get("/b?\(Self.fresh),public", "-H", "Authorization: Bearer x")
            }
            #expect(cache.requests("/a").count == 2 && cache.requests("/b").count == 1)
        }
    }

    @Test func anUnsafeMethodTakesOut() async throws {
        try await withTestBed { bed in
            let cache = try await CacheBed(bed)
            for method in ["POST", "PUT", "DELETE"] {
                _ = try await cache.get("/\(method)?\(Self.fresh)")
                _ = try await cache.get("/\(method)?\(Self.fresh)", "-X", method, "-d", "x")
                #expect(try await cache.get("/\(method)?\(Self.fresh)").cacheStatus?.contains("; hit") == false)
                #expect(cache.requests("/\(method)").count == 3)
            }
            // A failed one changes nothing.
            _ = try await cache.get("/a?\(Self.fresh)&fail=500")
            _ = try await cache.get("/a?\(Self.fresh)&fail=500", "-X", "POST", "-d", "x")
            #expect(try await cache.get("/a?\(Self.fresh)&fail=500").cacheStatus?.contains("; hit") == true)
        }
    }
}
