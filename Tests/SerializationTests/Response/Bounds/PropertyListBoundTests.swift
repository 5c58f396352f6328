import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// Small property lists that would be expensive are refused before they are built, or read in time linear in their
/// length.
@Suite(.timeLimit(.minutes(1))) struct PropertyListBoundTests {
    private func defect(in body: [UInt8]) -> BodyDefect? {
        caught { () throws(BodyDefect) in try PropertyListResponseSerializer().check(body: body) }
    }

    // MARK: Binary

    private func text(_ length: Int) -> [UInt8] {
        PropertyListFiles.counted(5, length, Array(repeating: 0x41, count: length))
    }

    private func list(_ references: [UInt8]) -> [UInt8] { PropertyListFiles.counted(10, references.count, references) }

    /// 146 KB grew to 5 GB.
    @Test(arguments: [0x4, 0x5] as [UInt8]) func sharedTextsAndDataCountForEachReference(kind: UInt8) throws {
        let bomb = PropertyListFiles.sharing(kind: kind, 73_000)
        #expect(
            defect(in: bomb)?.explanation
                == "shared references expand its texts and data to more than \(32 * bomb.count) bytes")
        #expect(throws: BodyDefect.self) { try PropertyListResponseSerializer().value(ofBody: bomb) }
        for form in [BodyConversion.Form.json, .form] {
            let conversion = BodyConversion(from: .propertyList, to: form)
            #expect(throws: RequestSerializationError.self) {
                try conversion.convert(bomb, contentType: "application/x-plist")
            }
        }
    }

    @Test func sharedTextsCountThroughContainersAndAsKeys() {
        let many = Array(repeating: 1 as UInt8, count: 200)
        let nested = PropertyListFiles.binary([list(many), list(many.map { _ in 2 }), text(5_000)])
        #expect(defect(in: nested)?.explanation.contains("texts and data") == true)
        let pairs = [[0xD1, 2, 3], text(50_000), [0x09]] as [[UInt8]]
        #expect(
            defect(in: PropertyListFiles.binary([list(Array(repeating: 1, count: 100))] + pairs))?.explanation.contains(
                "texts and data")
                == true)
    }

    /// Names shared by a thousand dictionaries, as writers produce them.
    @Test func whatWritersShareIsRead() throws {
        let row: [String: Any] = [
            "identifier": "row", "displayName": "A name of some length", "count": 1, "url": "https://example.org/",
        ]
        let body = try Array(
            PropertyListSerialization.data(
                fromPropertyList: Array(repeating: row, count: 5_000), format: .binary, options: 0))
        #expect(defect(in: body) == nil)
        guard case .array(let rows)? = try PropertyListResponseSerializer().value(ofBody: body) else {
            return #expect(Bool(false))
        }
        #expect(rows.count == 5_000)
    }

    /// Each text is a separate object, and all use the same bytes.
    @Test func objectsThatOverlapAreRefused() {
        let count = 200
        let references = PropertyListFiles.counted(10, count, (1...count).flatMap { ImageFiles.bytes($0, 2) })
        let overlapping = PropertyListFiles.binary(
            [references, text(50_000)], referenceSize: 2, places: [0] + Array(repeating: 1, count: count))
        #expect(defect(in: overlapping)?.explanation == "its objects overlap")
    }

    /// A converted body is limited while it is written.
    @Test func aConversionWritesNoMoreThanItsLimit() {
        let body = PropertyListFiles.binary([list(Array(repeating: 1, count: 100)), text(10_000)])
        #expect(defect(in: body) == nil)
        for form in [BodyConversion.Form.json, .propertyList] {
            let conversion = BodyConversion(from: .propertyList, to: form)
            #expect(throws: RequestSerializationError(.tooLong(limit: 50_000))) {
                try conversion.convert(body, contentType: "application/x-plist", limit: 50_000)
            }
        }
    }

    // MARK: XML

    /// 250 dictionaries around 20,000 truth values took a minute.
    @Test func nestingCostsNothing() throws {
        let (depth, count) = (250, 20_000)
        let text =
            "<plist>" + String(repeating: "<dict><key>a</key>", count: depth) + "<array>"
            + String(repeating: "<true/>", count: count)
            + "</array>" + String(repeating: "</dict>", count: depth) + "</plist>"
        #expect(defect(in: Array(text.utf8)) == nil)
        var value = try PropertyListResponseSerializer().value(ofBody: Array(text.utf8))
        for _ in 0..<depth {
            guard case .dictionary(let pairs)? = value else { break }
            value = pairs["a"]
        }
        #expect(value == .array(Array(repeating: .bool(true), count: count)))
    }

    /// Whatever Foundation's reader accepts is accepted, with the same values; nearly everything else is refused.
    @Test(arguments: [
        "<string>a&lt;&#65;&#x42;&amp;</string>", "<string>a<![CDATA[<b>]]>c</string>", "<string></string>",
        "<true></true>",
        "<integer>12</integer>", "<integer> 12</integer>", "<integer>+12</integer>", "<integer>- 12</integer>",
        "<integer>0x1F</integer>",
        "<integer>-0xff</integer>", "<integer>007</integer>", "<integer>9223372036854775808</integer>",
        "<integer>1.5</integer>",
        "<integer>18446744073709551615</integer>", "<integer>18446744073709551616</integer>",
        "<integer>-9223372036854775808</integer>",
        "<integer>-9223372036854775809</integer>", "<integer>12x</integer>", "<integer></integer>",
        "<integer>0x</integer>",
        "<real>1.5</real>", "<real>2.0</real>", "<real>-0.0</real>", "<real>1e400</real>", "<real>-Infinity</real>",
        "<real>.5</real>",
        "<real>5.</real>", "<real>1e19</real>", "<real>1e300</real>", "<real>0x1p3</real>", "<real>1,5</real>",
        "<real> 1.5</real>",
        "<real>1e</real>", "<real></real>", "<date>2011-05-03T12:30:15Z</date>", "<date>2011-13-03T12:30:15Z</date>",
        "<date>2012-02-30T25:61:61Z</date>", "<date>12011-05-03T12:30:15Z</date>", "<date>2011-05-03</date>",
        "<date></date>",
        "<date>2011-05-03T12:30:15+01:00</date>", "<date>2011-5-3T1:3:1Z</date>", "<data>AAEC</data>",
        "<data> AA EC\n </data>",
        "<data>AAE</data>", "<data>AA==</data>", "<data>A!AEC</data>", "<data>AA==AA==</data>", "<data></data>",
        "<array> x <true/></array>",
        "<array><!-- c --><?pi?><true/></array>", "<dict><key>a</key>x<true/></dict>",
        "<dict><key>a</key><true/><key>a</key><false/></dict>",
        "<dict><true/></dict>", "<dict><key>a</key></dict>", "<dict><key>a</key><key>b</key><true/></dict>",
        "<true>x</true>",
        "<string>a<!-- c -->b</string>", "<string>&foo;</string>", "<string><b/></string>", "<plist></plist>",
        "<plist><dict/><dict/></plist>", "<plist><foo/></plist>", "<String>a</String>", "<key>a</key>",
        "<array><key>a</key></array>",
        "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><string>&a;</string></plist>",
        "<dict><key>a<b/></key><true/></dict>",
        "<array><plist><true/></plist></array>", "<dict><plist><true/></plist></dict>",
        "<dict><key>a</key><plist><true/></plist></dict>",
    ]) func readsAsFoundationDoes(text: String) {
        // Its reader needs something after the last tag.
        let text = text + "\n"
        let theirs = try? PropertyListDecoder().decode(AnyValue.self, from: Data(text.utf8)).value
        var ours: PropertyListValue?
        do throws(BodyDefect) { ours = try PropertyListResponseSerializer().value(ofBody: Array(text.utf8)) } catch {}
        #expect(ours == theirs || isNaN(ours) && isNaN(theirs), "\(text)")
        #expect((defect(in: Array(text.utf8)) == nil) == (ours != nil), "\(text)")
    }

    private func isNaN(_ value: PropertyListValue?) -> Bool {
        if case .real(let number)? = value { number.isNaN } else { false }
    }

    /// A keyed archive in XML has a dictionary where a binary one has a reference.
    @Test func aReferenceOfAnArchiveIsRead() throws {
        let text = "<plist><array><dict><key>CF$UID</key><integer>3</integer></dict></array></plist>"
        #expect(try PropertyListResponseSerializer().value(ofBody: Array(text.utf8)) == .array([.reference(3)]))
    }
}

/// Any value, as Foundation's decoder returns it.
private struct AnyValue: Decodable {
    let value: PropertyListValue

    init(from decoder: any Decoder) throws {
        let single = try decoder.singleValueContainer()
        if let text = try? single.decode(String.self) {
            value = .string(text)
        } else if let number = try? single.decode(Int64.self) {
            value = .integer(Int128(number))
        } else if let pairs = try? single.decode([String: AnyValue].self) {
            value = .dictionary(pairs.mapValues(\.value))
        } else if let list = try? single.decode([AnyValue].self) {
            value = .array(list.map(\.value))
        } else if let truth = try? single.decode(Bool.self) {
            value = .bool(truth)
        } else if let number = try? single.decode(UInt64.self) {
            value = .integer(Int128(number))
        } else if let number = try? single.decode(Double.self) {
            value = .real(number)
        } else if let date = try? single.decode(Date.self) {
            value = .date(date.timeIntervalSince1970)
        } else {
            value = .data([UInt8](try single.decode(Data.self)))
        }
    }
}
