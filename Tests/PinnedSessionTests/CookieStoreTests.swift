import Foundation
import PinproxyHTTPWire
import PinproxySerialization
import Synchronization
import Testing

@testable import PinnedSession

/// Cookies by RFC 6265bis: which a server may set, and which a request gets.
@Suite struct CookieStoreTests {
    private static let start = Date(timeIntervalSince1970: 1_700_000_000)

    /// A clock that a test sets.
    private final class Clock: Sendable {
        private let value = Mutex(CookieStoreTests.start)
        var now: Date { value.withLock { $0 } }
        func advance(by seconds: TimeInterval) { value.withLock { $0 = $0.addingTimeInterval(seconds) } }
    }

    private let clock = Clock()
    private let store: CookieStore

    init() {
        let clock = clock
        store = CookieStore(now: { clock.now })
    }

    private func receive(_ field: String, from url: String = "https://www.example.com/a/b") throws {
        store.receive(field, from: try RequestURL(url))
    }

    private func field(_ url: String = "https://www.example.com/a/b") throws -> String? {
        store.field(for: try RequestURL(url))
    }

    @Test func aCookieComesBack() throws {
        try receive("a=b")
        #expect(try field() == "a=b" && field("https://WWW.example.com./a/c") == "a=b")
        #expect(try field("https://www.example.com/a") == "a=b" && field("https://www.example.com/") == nil)
        #expect(try field("https://example.com/a/") == nil && field("https://x.www.example.com/a/") == nil)
        #expect(try field("https://www.example.com/ab") == nil)
        let cookie = try #require(store.cookies.first)
        #expect(cookie.isHostOnly && cookie.path == "/a" && cookie.expires == nil && !cookie.isSecure)
        #expect(!"\(cookie)".contains("b;") && "\(cookie)".contains("•••"))
    }

    @Test(
        arguments: [
            ("a=b; Domain=example.com", "https://other.example.com/a/b", true),
            ("a=b; Domain=.Example.COM", "https://example.com/a/b", true),
            ("a=b; Domain=www.example.com", "https://x.www.example.com/a/b", true),
            ("a=b; domain=", "https://x.www.example.com/a/b", false),
            ("a=b; Path=/", "https://www.example.com/", true),
            ("a=b; Path=x", "https://www.example.com/a", true),
            ("a=b; Path=/a/", "https://www.example.com/a", false),
            ("a=b; Secure; Path=/", "http://www.example.com/", false),
            ("a=b; Path=/", "http://www.example.com/", true),
            ("a=b; Domain=example.com", "https://notexample.com/a/b", false),
            ("a=b; Domain=ample.com", "https://www.example.com/a/b", false),
        ])
    func whereItGoes(_ set: String, _ url: String, _ goes: Bool) throws {
        try receive(set)
        #expect(try (field(url) == "a=b") == goes)
    }

    @Test(arguments: [
        "", "=", ";a=b", "a=b; Domain=com", "a=b; Domain=co.uk", "a=b; Domain=other.com",
        "a=b; Domain=sub.www.example.com",
        "a=b\u{1}", "a\u{0}=b", "a=b; SameSite=None", "__Secure-a=b", "__host-a=b; Secure; Path=/; Domain=example.com",
        "__Host-a=b; Secure", "=__Host-a", "a=" + String(repeating: "x", count: 4096), "a=b; Domain=exämple.com",
    ])
    func whatAServerMayNotSet(_ set: String) throws {
        try receive(set)
        #expect(store.cookies.isEmpty)
    }

    @Test func prefixesHold() throws {
        try receive("__Secure-a=1; Secure")
        try receive("__Host-a=2; Secure; Path=/")
        #expect(store.cookies.count == 2)
    }

    @Test func aPublicSuffixIsOnlyForItself() throws {
        try receive("a=b; Domain=github.io; Path=/", from: "https://github.io/")
        try receive("c=d; Domain=github.io; Path=/", from: "https://mine.github.io/")
        #expect(try field("https://github.io/") == "a=b" && field("https://mine.github.io/") == nil)
        try receive("e=f; Domain=internal; Path=/", from: "https://a.internal/")
        #expect(try field("https://b.internal/") == nil)
    }

    @Test func anAddressHasNoHostsBelowIt() throws {
        try receive("a=b; Domain=0.0.1; Path=/", from: "https://127.0.0.1/")
        try receive("c=d; Domain=127.0.0.1; Path=/", from: "https://127.0.0.1/")
        try receive("e=f; Path=/", from: "https://[::1]/")
        #expect(try field("https://127.0.0.1/") == "c=d" && field("https://[::1]/") == "e=f")
    }

    @Test func theOrderIsByPathThenAge() throws {
        try receive("a=1; Path=/")
        try receive("b=2; Path=/a/b")
        try receive("c=3; Path=/a")
        try receive("d=4; Path=/")
        try receive("a=5; Path=/")
        try receive("flag")
        #expect(try field() == "b=2; c=3; flag; a=5; d=4")
    }

    @Test func cookiesExpire() throws {
        try receive("a=1; Max-Age=10; Expires=Wed, 09 Jun 2021 10:18:14 GMT")
        try receive("b=2; Expires=Tue, 14-Nov-23 22:13:40 GMT")
        try receive("c=3; Expires=Wed, 09 Jun 2100 10:18:14 GMT")
        try receive("d=4; Max-Age=x")
        #expect(try field() == "a=1; b=2; c=3; d=4")
        clock.advance(by: 11)
        #expect(try field() == "b=2; c=3; d=4" && store.cookies.count == 3)
        clock.advance(by: 10)
        #expect(try field() == "c=3; d=4")
        // 400 days at most.
        clock.advance(by: 400 * 86400)
        #expect(try field() == "d=4")
        try receive("d=4; Max-Age=0")
        #expect(try field() == nil && store.cookies.isEmpty)
    }

    @Test func withoutHTTPSNothingSecureIsReplaced() throws {
        try receive("a=1; Secure; Domain=example.com; Path=/")
        try receive("a=2; Path=/", from: "http://www.example.com/")
        try receive("a=3; Domain=example.com; Path=/deep", from: "http://www.example.com/")
        try receive("b=4; Secure; Path=/", from: "http://www.example.com/")
        #expect(store.cookies.map(\.value.text) == ["1"])
        try receive("c=5; Path=/", from: "http://www.example.com/")
        #expect(try field("http://www.example.com/") == "c=5")
    }

    @Test func theStoreIsBounded() throws {
        for number in 0..<60 { try receive("n\(number)=x; Path=/") }
        #expect(store.cookies.count == CookieTable.mostOfDomain)
        #expect(store.cookies.first?.name == "n10")
        // Those that are used stay, and Secure ones longest.
        store.removeAll()
        try receive("kept=x; Path=/; Secure")
        for number in 0..<60 { try receive("n\(number)=x; Path=/") }
        #expect(store.cookies.contains { $0.name == "kept" })
        store.removeAll()
        for host in 0..<70 {
            for number in 0..<50 { try receive("n\(number)=x; Path=/", from: "https://h\(host).example.com/") }
        }
        #expect(store.cookies.count == CookieTable.most)
    }

    @Test func aProgramKeepsAndSetsCookies() throws {
        try receive("a=b; Domain=example.com; Path=/; Max-Age=100; HttpOnly; SameSite=Lax")
        let other = CookieStore()
        for cookie in store.cookies { try other.set(cookie) }
        #expect(other.cookies == [] || other.cookies == store.cookies)
        let cookie = try #require(store.cookies.first)
        #expect(cookie.isHTTPOnly && cookie.sameSite == .lax)
        store.remove(cookie)
        #expect(store.cookies.isEmpty)
        for wrong in [
            Cookie(name: "a", value: Secret("b\r\nX: y"), domain: "example.com"),
            Cookie(name: "a", value: Secret("b; c"), domain: "example.com"),
            Cookie(name: "a=", value: Secret("b"), domain: "example.com"),
            Cookie(name: "", value: Secret(""), domain: "example.com"),
            Cookie(name: "a", value: Secret("b"), domain: "Example.com"),
            Cookie(name: "a", value: Secret("b"), domain: "example.com/"),
            Cookie(name: "a", value: Secret("b"), domain: "example.com", path: "x"),
        ] {
            #expect(throws: SessionError.self) { try store.set(wrong) }
        }
        #expect(store.cookies.isEmpty)
    }

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("6 nov 94 8:49:37", 784_111_777),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800), ("1 Jan 1970 00:00:00", 0),
            ("1 Jan 69 00:00:00", 3_124_224_000),
            ("31 Dec 1999 23:59:59 +0200", 946_684_799),
        ])
    func datesAreReadAsBrowsersDo(_ text: String, _ seconds: Int) {
        #expect(CookieDate.date(text)?.timeIntervalSince1970 == TimeInterval(seconds))
    }

    @Test(arguments: [
        "", "Sun", "Sun, 06 Nov 1994", "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00", "32 Jan 2000 00:00:00",
        "29 Feb 2023 00:00:00", "06 Nov 1600 00:00:00", "6 Nov 99999 00:00:00", "0 Nov 1994 00:00:00", "a b c d:e:f",
        "6 Nov 1994 99999999999999999999:00:00",
    ])
    func otherDatesAreNone(_ text: String) { #expect(CookieDate.date(text) == nil) }

    /// Nothing that a server sends traps.
    @Test func everyPrefixIsRead() throws {
        let whole =
            "__Host-n=v; Secure; Path=/; HttpOnly; SameSite=None; Max-Age=10; Expires=Sun, 06 Nov 2094 08:49:37 GMT;;="
        for length in 0...whole.utf8.count { try receive(String(whole.prefix(length))) }
        #expect(store.cookies.count <= CookieTable.mostOfDomain)
    }
}
