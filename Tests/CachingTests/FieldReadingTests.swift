import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

/// The values that a cache reads, truncated at each byte.
@Suite struct FieldReadingTests {
    private func prefixes(_ value: String) -> [String] { (0...value.utf8.count).map { String(value.prefix($0)) } }

    @Test func everyPrefixOfADateIsNoDate() throws {
        for text in [Trial.date, "Monday, 12-Jan-70 13:46:40 GMT", "Mon Jan 12 13:46:40 1970"] {
            for part in prefixes(text).dropLast() {
                let traits = try Trial.traits("Date: \(part)", "Last-Modified: \(part)", "Expires: \(part)")
                #expect(traits.date == nil && traits.lastModified == nil && traits.expires == .invalid)
                #expect(try Trial.request("If-Modified-Since: \(part)").ifModifiedSince == nil)
            }
            #expect(try Trial.traits("Date: \(text)").date == Trial.arrival)
        }
    }

    @Test func everyPrefixOfATagIsNoTag() throws {
        for text in ["\"abc\"", "W/\"a,c\""] {
            for part in prefixes(text).dropLast() { #expect(try Trial.traits("ETag: \(part)").etag == nil) }
            #expect(try Trial.traits("ETag: \(text)").etag?.text == Array(text.utf8))
        }
    }

    /// A truncated list requires no fewer fields than its complete names.
    @Test func everyPrefixOfVaryIsRead() throws {
        for part in prefixes("Accept-Language, x-a , Cookie,*") {
            switch try Trial.traits("Vary: \(part)").vary {
            case .none: #expect(part.isEmpty)
            case .anything: #expect(part.hasSuffix("*"))
            case .names(let names): #expect(names.count == part.split(separator: ",").filter { $0 != " " }.count)
            }
        }
    }

    @Test func varyKeepsItsBounds() throws {
        let names = (0..<100).map { "x-\($0)" }
        #expect(try Trial.traits("Vary: \(names.joined(separator: ","))").vary == .anything)
        #expect(CachedTraits(try Trial.response(names.map { "Vary: \($0)" }).view).vary == .anything)
        #expect(CachedTraits(try Trial.response(names.map { _ in "Vary: X" }).view).vary == .names(["x"]))
        let most = names.prefix(32)
        #expect(try Trial.traits("Vary: \(most.joined(separator: ","))").vary == .names(most.sorted()))
    }

    /// Names without commas would be a single one that no request has, and would match each.
    @Test(arguments: ["a b", "a;b", "\"a\"", "a: b", "ä"]) func whatIsNoNameMatchesNothing(_ value: String) throws {
        #expect(try Trial.traits("Vary: \(value)").vary == .anything)
        #expect(try Trial.traits("Vary: x, \(value)").vary == .anything)
    }

    @Test func everyPrefixOfAnAgeIsRead() throws {
        let ages: [Int64] = [0, 1, 12, 123, 123, 123, 123]
        #expect(try prefixes("123, 4").map { try Trial.traits("Age: \($0)").age } == ages)
    }

    @Test func everyPrefixOfARangeIsNoPart() throws {
        for part in prefixes("bytes 2-5/10").dropLast(2) {
            #expect(try Trial.traits("Content-Range: \(part)").contentRange == nil)
        }
        for part in prefixes("bytes=2-").dropLast() { #expect(try Trial.request("Range: \(part)").part == .other) }
    }

    @Test func oneRangeIsOneLine() throws {
        let range = "Content-Range: bytes 2-5/10"
        #expect(try Trial.traits(range).contentRange != nil)
        #expect(try Trial.traits(range, range).contentRange == nil)
        #expect(
            try Trial.request("If-Modified-Since: \(Trial.date)", "If-Modified-Since: \(Trial.date)").ifModifiedSince
                == nil)
    }

    /// A program doesn't get a response that was encoded for another and that it can't decode.
    @Test func whatIsCodedVaries() throws {
        #expect(try Trial.traits("Content-Encoding: gzip").vary == .names(["accept-encoding"]))
        #expect(try Trial.traits("Content-Encoding: br", "Vary: X").vary == .names(["accept-encoding", "x"]))
        #expect(try Trial.traits("Content-Encoding: br", "Vary: *").vary == .anything)
    }

    @Test func pragmaIsAList() throws {
        #expect(try Trial.request("Pragma: a, no-cache").directives.flags == .noCache)
        #expect(try Trial.request("Pragma: no-cachex").directives.flags == [])
    }
}
