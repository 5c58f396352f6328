import Foundation
import PinproxyDaemon
import Testing

@testable import pinproxy

/// The text output of `pinproxy cache`.
@Suite struct CacheTextTests {
    private func report(_ more: String = "") throws -> CacheReport {
        let json = """
            {"requests": {"hit": 6, "miss": 2, "revalidated": 1, "stale": 1, "savedBytes": 10240, "hitRatio": 0.8}, \
            "stores": [{"store": "memory", "bytes": 2048, "limit": 100000000, "responses": 2}], \
            "origins": [{"origin": "https://a.test", "responses": 1, "bytes": 1536}, \
            {"origin": "http://b.test\\u001b[2J:8080", "responses": 3, "bytes": 512}], "entries": 1}
            """
        var report = try JSONDecoder().decode(CacheReport.self, from: Data(json.utf8))
        if more.contains("idle") { (report.requests, report.origins, report.entries) = (CacheCounts(), [], 0) }
        return report
    }

    @Test func figuresAreLines() throws {
        #expect(
            try report().text == """
                memory: 2.0 KiB of 100MB, 2 responses
                requests: 10 since the start, 80.0 % from the cache (6 hits, 1 revalidated, 1 stale, 2 misses)
                saved: 10.0 KiB that no origin had to send
                largest origins:
                  1.5 KiB  https://a.test (1 response)
                    512 B  http://b.test\\u{1b}[2J:8080 (3 responses)
                """)
        #expect(
            try report("idle").text == """
                memory: 2.0 KiB of 100MB, 2 responses
                requests: none to a host with a cache since the start
                no entry enables the cache: write cache: memory or disk in the pin file (docs/cache.md)
                """)
    }

    /// - Parameter more: keys that replace the usual ones.
    private func response(_ more: [String: Any]) throws -> StoredResponseReport {
        let usual: [String: Any] = [
            "store": "memory", "owner": "user", "user": 1000, "ownerName": "ada", "status": 200, "bytes": 5120,
            "vary": [], "received": 1_800_000_000, "age": 182, "lifetime": 600, "basis": "max-age", "freshFor": 418,
            "noCache": false, "answer": "served",
        ]
        let json = try JSONSerialization.data(withJSONObject: usual.merging(more) { $1 })
        return try JSONDecoder().decode(StoredResponseReport.self, from: json)
    }

    @Test func aFreshResponseIsShown() throws {
        #expect(
            try response([:]).lines == [
                "  200, 5.0 KiB, 3m2s old, in memory for ada (user 1000)", "    fresh for 6m58s (max-age of 10m)",
                "    a GET is answered with it",
            ])
    }

    @Test(arguments: [
        ("everybody", "for everybody"), ("account", "for the proxy's user ada"), ("user", "for ada (user 1000)"),
    ])
    func everyOwnerIsNamed(owner: String, shown: String) throws {
        #expect(try response(["owner": owner]).lines[0].hasSuffix(shown))
    }

    /// Secrets are never in the report, which names what it omits.
    @Test func fieldsOfVaryAreShown() throws {
        let fields: [[String: Any]] = [
            ["name": "accept-language", "value": "de", "hidden": false], ["name": "cookie", "hidden": true],
            ["name": "accept", "hidden": false],
        ]
        let lines = try response(["vary": fields]).lines
        #expect(lines[2] == "    for requests with accept-language: de, cookie: (not shown), no accept")
        #expect(lines[3] == "    such a GET is answered with it")
    }

    @Test(
        arguments: [
            ("served-stale", [:], "is answered with it while the origin confirms it (stale-while-revalidate)"),
            ("confirmed", ["validator": "ETag"], "is answered with it once the origin has confirmed it by ETag"),
            (
                "confirmed", ["validator": "Last-Modified", "noCache": "yes"],
                "is answered with it once the origin has confirmed it by Last-Modified, at each use (no-cache)"
            ),
            ("fetched", [:], "goes to the origin: without ETag and Last-Modified it can't be confirmed"),
            ("policy-changed", [:], "goes to the origin: pins, trust or rules have changed since"),
            ("verdict-ended", [:], "goes to the origin: the verdict on its server has expired"),
        ] as [(String, [String: String], String)])
    func whatAGetGetsIsSaid(answer: String, more: [String: String], shown: String) throws {
        var keys: [String: Any] = more
        keys["noCache"] = more["noCache"] != nil
        keys["answer"] = answer
        let fate = try response(keys).fate
        #expect(fate.hasPrefix(shown), "\(fate)")
    }

    @Test func aPartIsOne() throws {
        let part = try response(["answer": "fetched", "first": 10, "last": 99, "complete": 1000])
        #expect(part.lines[0].contains("5.0 KiB (bytes 10 to 99 of 1000), 3m2s old"))
        #expect(part.fate == "goes to the origin: only a part is stored")
    }

    @Test(
        arguments: [
            ("s-maxage", "s-maxage of 10m"), ("expires", "Expires, 10m after its date"),
            ("heuristic", "a tenth of the time since its last change, 10m"),
            ("none", "nothing says how long it is fresh"),
        ])
    func whatSaysHowLongItIsFreshIsNamed(basis: String, shown: String) throws {
        #expect(try response(["basis": basis]).lines[1] == "    fresh for 6m58s (\(shown))")
        let stale = try response(["basis": basis, "freshFor": -90]).lines[1]
        #expect(stale.hasPrefix("    stale for 1m30s, since 20") && stale.hasSuffix("Z (\(shown))"), "\(stale)")
    }

    /// The output for each, with what is known where nothing is stored.
    @Test(arguments: [
        (#""refusal": "cache: off (entry, pins.yaml:3:5)""#, "cache: off (entry, pins.yaml:3:5)"),
        (#""store": "disk", "shared": true"#, "cache: disk, shared by all users\n  no response to GET since the start"),
        (#""store": "memory", "shared": false"#, "cache: memory, private to each user\n"),
        (
            #""store": "memory", "shared": false, "objection": "the response said no-store", "objectionTime": 0"#,
            "ago: the response said no-store"
        ),
    ]) func whyNothingIsStoredIsSaid(keys: String, shown: String) throws {
        let json = #"{"url": "https://a.test/x?***", "responses": [], "others": 2, \#(keys)}"#
        let text = try JSONDecoder().decode(StoredResponses.self, from: Data(json.utf8)).text
        #expect(text.hasPrefix("https://a.test/x?***: nothing is stored\n  ") && text.contains(shown), "\(text)")
        #expect(text.hasSuffix("with other queries or ports, or the other scheme: 2 responses"), "\(text)")
    }

    @Test(arguments: [
        (-5, "0s"), (59, "59s"), (60, "1m"), (3599, "59m59s"), (3600, "1h"), (7260, "2h1m"), (86_400, "1d"),
        (94_000, "1d2h"),
    ])
    func timesAreShort(seconds: Int, text: String) { #expect(CacheText.time(Int64(seconds)) == text) }
}
