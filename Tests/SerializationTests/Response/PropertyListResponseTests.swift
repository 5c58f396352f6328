import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

@Suite struct PropertyListResponseTests {
    private func defect(in body: [UInt8]) -> BodyDefect? {
        caught { () throws(BodyDefect) in try PropertyListResponseSerializer().check(body: body) }
    }

    private static var value: [String: Any] {
        [
            "name": "pinproxy é😀", "number": -12, "real": 1.5, "yes": true, "date": Date(timeIntervalSince1970: 1),
            "data": Data([0, 1, 2]),
            "list": ["a", "b", ["c": [Any]()]] as [Any],
        ]
    }

    private static func list(_ format: PropertyListSerialization.PropertyListFormat) throws -> [UInt8] {
        try Array(PropertyListSerialization.data(fromPropertyList: value, format: format, options: 0))
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func readsBothFormats(_ format: PropertyListSerialization.PropertyListFormat) throws {
        let body = try Self.list(format)
        let read = try PropertyListResponseSerializer().value(ofBody: body)
        #expect(
            read
                == .dictionary([
                    "name": .string("pinproxy é😀"), "number": .integer(-12), "real": .real(1.5), "yes": .bool(true),
                    "date": .date(1),
                    "data": .data([0, 1, 2]),
                    "list": .array([.string("a"), .string("b"), .dictionary(["c": .array([])])]),
                ]))
        for length in stride(from: 1, to: body.count - 1, by: format == .xml ? 16 : 1) {
            #expect(defect(in: Array(body[..<length])) != nil, "\(length)")
        }
    }

    @Test(arguments: [
        ("hello", "begins neither as XML nor"), ("{ a = b; }", "begins neither"), ("{\"a\": 1}", "begins neither"),
        ("bplist00", "cut off"),
        ("<plist><dict><key>a</key></dict></plist>", "Value missing"),
        ("<plist>\n<integer>x</integer></plist>", "can't be read"), ("<html/>", "unknown tag html"),
        ("<plist><array><string>a</array></plist>", "mismatch"),
    ])
    func saysWhatIsWrong(_ text: String, _ words: String) throws {
        let found = try #require(defect(in: Array(text.utf8)))
        #expect(found.explanation.contains(words), "\(found)")
    }

    @Test func boundsNesting() {
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                ("<plist>" + String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
                    + "</plist>").utf8)
        }
        #expect(defect(in: nested(200)) == nil)
        #expect(defect(in: nested(100_000)) != nil)
        #expect(defect(in: binary((0..<200).map { $0 < 199 ? [$0 + 1] : [] })) == nil)
        #expect(
            defect(in: binary((0..<300).map { $0 < 299 ? [$0 + 1] : [] }))?.explanation == "nested more than 256 deep")
        // The deep end is measured first, by another path.
        let deepEndFirst = [[200, 1]] + (1..<400).map { $0 < 399 ? [$0 + 1] : [] }
        #expect(defect(in: binary(deepEndFirst))?.explanation == "nested more than 256 deep")
    }

    /// Arrays by their references, in the form of `bplist00`.
    private func binary(_ arrays: [[Int]]) -> [UInt8] {
        var body = Array("bplist00".utf8)
        var offsets: [Int] = []
        for references in arrays {
            offsets.append(body.count)
            body +=
                references.count < 15
                ? [0xA0 | UInt8(references.count)]
                : [0xAF, 0x11, UInt8(references.count >> 8), UInt8(references.count & 0xFF)]
            for reference in references { body += [UInt8(reference >> 8), UInt8(reference & 0xFF)] }
        }
        let table = body.count
        for offset in offsets { body += [UInt8(offset >> 8 & 0xFF), UInt8(offset & 0xFF)] }
        func long(_ number: Int) -> [UInt8] { (0..<8).map { UInt8(number >> (56 - 8 * $0) & 0xFF) } }
        return body + [0, 0, 0, 0, 0, 0, 2, 2] + long(arrays.count) + long(0) + long(table)
    }

    @Test func refusesBinaryBombs() {
        #expect(defect(in: binary([[1, 1], [2, 2], []])) == nil)
        let doubling = (0..<60).map { $0 < 59 ? [$0 + 1, $0 + 1] : [] }
        #expect(defect(in: binary(doubling))?.explanation.contains("shared references") == true)
        #expect(defect(in: binary([[0]]))?.explanation == "object 0 contains itself")
        #expect(defect(in: binary([[1], [2], [0]]))?.explanation.contains("contains itself") == true)
        #expect(defect(in: binary([[7]]))?.explanation == "object 0 of the binary property list is damaged")
        let wide = Array(repeating: 1, count: 300)
        #expect(
            defect(in: binary([wide, wide.map { _ in 2 }, wide.map { _ in 3 }, []]))?.explanation.contains(
                "shared references") == true)
    }

    /// Foundation also reads sets, and on Linux crashes on one.
    @Test func refusesWhatNoPropertyListHas() {
        func list(of object: [UInt8]) -> [UInt8] {
            var body = binary([[1], []])
            let at = body.count - 32 - 4 - 1
            body.replaceSubrange(at...at, with: object)
            body[body.count - 1] += UInt8(object.count - 1)
            return body
        }
        #expect(defect(in: list(of: [0xA0])) == nil)
        #expect(defect(in: list(of: [0x09])) == nil)
        #expect(defect(in: list(of: [0x80, 1])) == nil)
        for object in [[0xC0], [0xB0], [0x00], [0x0F], [0x70], [0x15, 0], [0x20, 0], [0xF0]] as [[UInt8]] {
            #expect(
                defect(in: list(of: object))?.explanation.contains("of no kind that property lists have") == true,
                "\(object)")
        }
        #expect(
            defect(in: list(of: [0x5F, 0x10, 0xFF]))?.explanation == "object 1 of the binary property list is damaged")
    }

    /// Damaged trailers: numbers that overflow, tables outside of the file.
    @Test func survivesEveryTrailer() throws {
        let body = try Self.list(.binary)
        for index in body.count - 32..<body.count {
            for byte in [0, 1, 0x7F, 0x80, 0xFF] as [UInt8] {
                var copy = body
                copy[index] = byte
                _ = defect(in: copy)
            }
        }
        var extreme = body
        for index in extreme.count - 24..<extreme.count { extreme[index] = 0xFF }
        #expect(defect(in: extreme) != nil)
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func survivesDamage(_ format: PropertyListSerialization.PropertyListFormat) throws {
        let body = try Self.list(format)
        var random = SeededGenerator(seed: 7)
        var refused = 0
        for _ in 0..<5_000 where defect(in: body.mutated(by: &random)) != nil { refused += 1 }
        #expect(refused > 1_000)
    }
}
