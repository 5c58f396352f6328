import PinproxyHTTPWire
import Testing

@Suite struct ValidatorTests {
    static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    static func range(_ text: some StringProtocol) -> ContentRange? {
        let bytes = Array(text.utf8)
        return ContentRange.parse(bytes.span)
    }

    static func tag(_ text: String) -> EntityTag? {
        let bytes = Array(text.utf8)
        return EntityTag.parse(bytes.span)
    }

    static func date(_ text: some StringProtocol) -> Int64? {
        let bytes = Array(text.utf8)
        return HTTPDate.parse(bytes.span)
    }

    @Test(arguments: [
        ("bytes 0-0/1", ContentRange.bytes(0...0, complete: 1)),
        ("bytes 42-1233/1234", .bytes(42...1233, complete: 1234)),
        ("bytes 42-1233/*", .bytes(42...1233, complete: nil)), ("bytes */1234", .unsatisfied(complete: 1234)),
        ("Bytes \t 007-9/10", .bytes(7...9, complete: 10)), ("bytes */0", .unsatisfied(complete: 0)),
        (
            "bytes 0-9223372036854775806/9223372036854775807",
            .bytes(0...9_223_372_036_854_775_806, complete: 9_223_372_036_854_775_807)
        ),
    ])
    func contentRangesAreRead(_ text: String, _ range: ContentRange) {
        let bytes = Self.bytes(text)
        #expect(Self.range(text) == range)
        // No prefix is a range of the same place; at most its length differs.
        for end in 0..<bytes.count {
            guard let part = Self.range(text.prefix(end)) else { continue }
            #expect(part != range && bytes[end].isDigit, "\(text.prefix(end))")
        }
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes0-1/2", "bytes=0-1/2", "items 0-1/2", "bytes 1-0/2", "bytes 0-2/2", "bytes 0-1/1",
        "bytes 0-/2",
        "bytes -1/2", "bytes 0-1", "bytes 0-1/", "bytes */*", "bytes *", "bytes 0-1/2 ", "bytes 0-1/2, 3-4/5",
        "bytes 0 - 1/2", "bytes +0-1/2",
        "bytes 0-18446744073709551615/*", "bytes 0-1/18446744073709551616", "bytes 0x0-1/2", "bytes 0-1/2\u{0}",
        "bytes 0--1/2",
    ])
    func rangesThatCantBeAreNone(_ text: String) {
        #expect(Self.range(text) == nil)
    }

    @Test(
        arguments: [
            ("0", UInt64(0)), ("7", 7), ("3600", 3600), ("Sun, 06 Nov 1994 08:49:37 GMT", 10),
            ("Sun, 06 Nov 1994 08:49:00 GMT", 0),
            ("", nil), ("-1", nil), ("1.5", nil), ("1 ", nil), ("soon", nil), ("99999999999999999999", nil),
        ] as [(String, UInt64?)])
    func theTimeToComeBackIsRead(_ text: String, _ seconds: UInt64?) {
        let bytes = Self.bytes(text)
        #expect(RetryAfter.seconds(bytes.span, at: 784_111_767) == seconds)
    }

    @Test func entityTagsAreStrongOrWeak() {
        #expect(Self.tag("\"a\"")?.isWeak == false)
        #expect(Self.tag("W/\"a\"")?.isWeak == true)
        #expect(Self.tag("W/\"a\"")?.opaque == Self.bytes("\"a\""))
        #expect(Self.tag("\"\"") != nil)
        let unusual: [UInt8] = [0x22, 0xFF, 0x5C, 0x22]
        #expect(EntityTag.parse(unusual.span)?.opaque == unusual)
        for text in [
            "", "\"", "a", "a\"", "\"a", "w/\"a\"", "W/", "W/a", "\"a\" ", "\"a\", \"b\"", "\"a b\"", "\"a\r\n\"",
            "W\"a\"", "\"a\u{7F}\"",
        ] {
            #expect(Self.tag(text) == nil, "\(text)")
        }
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800), ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
        ("Wednesday, 01-Jan-69 00:00:00 GMT", 3_124_224_000), ("Wed Nov 16 08:49:37 1994", 784_975_777),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Thu, 28 Feb 1901 00:00:00 GMT", -2_172_441_600),
    ])
    func datesAreReadInThreeForms(_ text: String, _ seconds: Int) {
        #expect(Self.date(text) == Int64(seconds))
        for end in 0..<text.utf8.count { #expect(Self.date(text.prefix(end)) == nil) }
    }

    @Test(arguments: [
        "", "now", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2023 00:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT+1",
        "-Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994  08:49:37 GMT",
        "1994-11-06T08:49:37Z",
    ])
    func whatIsNoDateIsNone(_ text: String) {
        #expect(Self.date(text) == nil)
    }

    @Test func aValidatorIsStrongOrNone() {
        func of(_ etag: String?, _ modified: String?, _ date: String?) -> String? {
            StrongValidator.of(
                etag: etag.map(Self.bytes), lastModified: modified.map(Self.bytes), date: date.map(Self.bytes)
            ).map { String(decoding: $0, as: UTF8.self) }
        }
        let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
        let later = "Sun, 06 Nov 1994 08:50:37 GMT"
        #expect(of("\"a\"", modified, later) == "\"a\"")
        #expect(of("\"a\"", nil, nil) == "\"a\"")
        #expect(of("W/\"a\"", modified, later) == nil)
        #expect(of("a", modified, later) == nil)
        #expect(of(nil, modified, later) == modified)
        #expect(of(nil, modified, "Sun, 06 Nov 1994 08:50:36 GMT") == nil)
        #expect(of(nil, later, modified) == nil)
        #expect(of(nil, modified, nil) == nil)
        #expect(of(nil, "yesterday", later) == nil)
        #expect(of(nil, nil, later) == nil)
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { 0x30...0x39 ~= self }
}
