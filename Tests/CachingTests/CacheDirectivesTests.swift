import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct CacheDirectivesTests {
    private func directives(_ values: String...) -> CacheDirectives {
        var directives = CacheDirectives()
        for value in values {
            let bytes = Array(value.utf8)
            directives.add(bytes.span)
        }
        return directives
    }

    @Test(
        arguments: [
            ("no-store", .noStore), ("NO-STORE", .noStore), (" , no-store,", .noStore), ("a=b, no-store", .noStore),
            ("no-cache=\"set-cookie, x\"", .noCache), ("private=\"a\", no-store", [.isPrivate, .noStore]),
            ("no-store; max-age=1", .noStore), ("a=\"no-store\"", []), ("a=\"x, no-store\"", []),
            ("a=\"x, no-store", .noStore), ("\"no-store\"", []), ("nostore", []), ("no-store2", []),
            ("public must-revalidate", .mustRevalidate),
            // Nothing hides a prohibition, and nothing malformed permits.
            ("max-age=1;no-store", .noStore), ("private;no-store", [.isPrivate, .noStore]), ("x public", []),
            ("public=\"x\"", []), ("must-understand=1, public", .isPublic), ("a b, public", .isPublic),
            ("\"x\" no-store", .noStore), ("a=\"b\"c no-cache", .noCache), ("no-store=0", .noStore),
            ("x=\"1, no-cache=\"a, public\"", .noCache), ("x=\"1, public, \"", []), ("x=\"1, public", []),
            ("private no-cache no-store max-age=5", [.isPrivate, .noCache, .noStore]),
            ("must-understand,immutable", [.mustUnderstand, .immutable]),
            ("a=\\\"b, no-store", .noStore), ("@, no-store", .noStore), ("=, no-store", .noStore),
        ] as [(String, CacheDirectives.Flags)])
    func flagsAreRead(_ text: String, _ flags: CacheDirectives.Flags) {
        #expect(directives(text).flags == flags)
    }

    @Test(
        arguments: [
            ("max-age=5", 5), ("max-age=\"5\"", 5), ("max-age = 5", 5), ("max-age=5, max-age=3", 3), ("max-age", 0),
            ("max-age=", 0), ("max-age=-1", 0), ("max-age=1.5", 0), ("max-age=1s", 0), ("max-age=007", 7),
            ("max-age=2147483648", 1 << 31), ("max-age=99999999999999999999999999", 1 << 31), ("s-maxage=5", nil),
            ("max-age=5 x", 0), ("x max-age=5", 0), ("max-age=5;", 0), ("max-age='5'", 0),
            ("max-age=\"5", 0), ("max-age=\"\"", 0), ("max-age=+5", 0), ("a=\"max-age=1\", max-age=5", 5),
            ("MAX-AGE=5", 5),
        ] as [(String, Int64?)])
    func theLeastLifetimeCounts(_ text: String, _ seconds: Int64?) {
        #expect(directives(text).maxAge == seconds)
    }

    @Test func severalLinesAreOneList() {
        let both = directives("max-age=9", "no-cache, max-age=8, stale-if-error=4")
        #expect(both.maxAge == 8 && both.flags == .noCache && both.staleIfError == 4)
    }

    @Test func leaveToBeStaleIsRead() {
        #expect(directives("max-stale").maxStale == CacheDirectives.mostSeconds)
        #expect(directives("max-stale=7").maxStale == 7)
        #expect(directives("max-stale, max-stale=7").maxStale == 7)
        for text in ["max-stale=x", "max-stale=", "max-stale=\"7", "max-stale 7", "x max-stale"] {
            #expect(directives(text).maxStale == 0, "\(text)")
        }
        #expect(directives("stale-while-revalidate=x").staleWhileRevalidate == 0)
    }

    @Test func theMostThatMustRemainCounts() {
        #expect(directives("min-fresh=3, min-fresh=5, min-fresh=4").minFresh == 5)
        #expect(directives("min-fresh=x").minFresh == CacheDirectives.mostSeconds)
    }

    /// No prefix grants more than the whole does, nor takes longer than its length allows.
    @Test func everyPrefixIsRead() {
        let text = "a=\"\\\"b\", max-age=60, no-store , private=\"x,y\", stale-if-error=\"9\",@@,c=d"
        for count in 0...text.utf8.count {
            let part = directives(String(text.prefix(count)))
            #expect(part.flags.isSubset(of: [.noStore, .isPrivate]) && [nil, 0, 6, 60].contains(part.maxAge))
        }
        _ = directives(String(repeating: "\"\\", count: 30_000))
    }
}
