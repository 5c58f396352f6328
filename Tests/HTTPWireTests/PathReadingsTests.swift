import Testing

@testable import PinproxyHTTPWire

@Suite struct PathReadingsTests {
    /// The distinct readings, the fully normalised one first.
    private func readings(of target: String) -> [String] {
        var readings = PathReadings()
        readings.take(target)
        var all: [String] = []
        for number in 0..<readings.count {
            readings.read(number)
            let text = String(decoding: readings.bytes, as: UTF8.self)
            if !all.contains(text) { all.append(text) }
        }
        return all
    }

    @Test(arguments: [
        ("/", ["/"]), ("", ["/"]), ("?a=/../b", ["/"]), ("/a/b?c=//", ["/a/b"]), ("*", ["*"]), ("/a/", ["/a/"]),
        ("/%61%2D%C3%BC", ["/a-ü"]), ("/%", ["/%"]), ("/%4", ["/%4"]), ("/%zz", ["/%zz"]), ("/%2561", ["/%61"]),
        ("/a%20b", ["/a b"]), ("/A", ["/A"]), ("/%3B", ["/;"]), ("/a%3fb", ["/a?b"]), ("/a.b/c..d", ["/a.b/c..d"]),
        ("/.well-known/x", ["/.well-known/x"]), ("/...", ["/..."]), ("/a..", ["/a.."]),
    ])
    func plainPathsHaveOneReading(_ target: String, _ expected: [String]) {
        #expect(readings(of: target) == expected)
    }

    @Test(arguments: [
        ("/a//b", ["/a/b", "/a//b"]), ("//a", ["/a", "//a"]), ("/a//", ["/a/", "/a//"]),
        ("/a/../b", ["/b", "/a/../b"]), ("/a/%2e%2E/b", ["/b", "/a/../b"]), ("/a/.%2e", ["/", "/a/.."]),
        ("/a/./b", ["/a/b", "/a/./b"]), ("/../../a", ["/a", "/../../a"]), ("/a/b/..", ["/a/", "/a/b/.."]),
        ("/a/.", ["/a/", "/a/."]), ("/a%2fb", ["/a/b", "/a%2Fb"]), ("/a\\b", ["/a/b", "/a\\b"]),
        ("/a%5Cb", ["/a/b", "/a\\b"]),
        ("/a;x=1/b", ["/a/b", "/a;x=1/b"]), ("/a;/b;y", ["/a/b", "/a;/b;y"]),
        ("/a/..%2fb", ["/b", "/a/../b", "/a/..%2Fb"]), ("/a/..;/b", ["/b", "/a/../b", "/a/..;/b"]),
        ("/a/..\\b", ["/b", "/a/../b", "/a/..\\b"]), ("/;/a", ["/a", "//a", "/;/a"]),
        ("/a/%2e/b//../c", ["/a/c", "/a/b/c", "/a/./b/../c", "/a/./b//../c"]),
    ])
    func oddPathsHaveAllOfThem(_ target: String, _ expected: [String]) {
        let readings = readings(of: target)
        #expect(readings.first == expected.first)
        #expect(Set(readings) == Set(expected), "\(readings)")
    }

    /// Spellings that servers resolve to a file that a rule covers: one reading of each is that file.
    @Test(arguments: [
        "/private/x", "//private/x", "/private//x", "/./private/x", "/public/../private/x", "/public/%2e%2e/private/x",
        "/public/%2E./private/x", "/%70rivate/x", "/private%2fx", "/private%2Fx", "/public/..%2fprivate/x",
        "/private\\x",
        "/private%5cx", "/public\\..\\private\\x", "/private;a=b/x", "/private/x;a", "/public/..;/private/x",
        "/../private/x", "/public/.;/..;a/private/%78", "/;a/private/x", "/private/./x", "/private/y/../x",
        "/private/x?/public",
    ])
    func everySpellingIsSeen(_ spelling: String) {
        #expect(readings(of: spelling).contains("/private/x"))
    }

    /// Python's http.server strips Latin-1 whitespace from the end of a target; in UTF-8 these bytes are parts of
    /// characters.
    @Test(
        arguments: [
            ("", "/private/x", [0x85], true), ("", "/private/x", [0xA0, 0x85, 0xA0], true),
            ("", "/public/../private/x", [0x85], true), ("?a", "/private/x", [0x85], false),
            ("", "/private/x%85", [], false),
            ("", "/private/x", [0x84], false),
        ] as [(String, String, [UInt8], Bool)])
    func blanksAtATargetsEndMayBeDropped(_ query: String, _ path: String, _ blanks: [UInt8], _ isDropped: Bool) {
        let target: [UInt8] = Array(path.utf8) + blanks + Array(query.utf8)
        var readings = PathReadings()
        readings.take(target.span)
        let all = (0..<readings.count).map { number in
            readings.read(number)
            return readings.bytes
        }
        #expect(all.contains(Array("/private/x".utf8)) == isDropped)
        // It is also read as written.
        #expect(Set(all).count == readings.count)
        readings.take([0x85].span)
        #expect(readings.count == 1)
    }

    @Test func storageIsUsedAgain() {
        var readings = PathReadings()
        readings.take("/a/%2e%2e/b;c//d%2f\\")
        #expect(readings.count == 32)
        readings.take("/x")
        #expect(readings.count == 1)
        readings.read(0)
        #expect(readings.bytes == Array("/x".utf8))
    }

    /// Any bytes have readings: each begins with a slash, and the first has nothing left to normalise.
    @Test func takesAnyBytes() {
        var random = Seeded(5)
        let pieces = [
            "/", "//", ".", "..", "%2e", "%2F", "%5c", "\\", ";", "a", "%", "%0", "\u{0}", "ü", "?", "%00", "%25",
        ]
        for _ in 0..<2_000 {
            let target =
                "/"
                + (0..<Int.random(in: 0...9, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
                .joined()
            let bytes = Array(target.utf8)
            for length in 0...bytes.count {
                var readings = PathReadings()
                let cut = Array(bytes[..<length])
                readings.take(cut.span)
                for number in 0..<readings.count {
                    readings.read(number)
                    #expect(readings.bytes.first == UInt8(ascii: "/"))
                }
                readings.read(0)
                let segments = readings.bytes.dropFirst().split(
                    separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
                #expect(!segments.dropLast().contains { $0.isEmpty }, "\(target)")
                #expect(!segments.contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }, "\(target)")
            }
        }
    }
}
