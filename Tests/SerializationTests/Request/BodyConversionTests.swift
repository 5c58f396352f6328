import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// Bodies converted between form, JSON and property list, and what is refused.
@Suite struct BodyConversionTests {
    private static let form = "application/x-www-form-urlencoded"

    private func convert(_ body: String, _ from: BodyConversion.Form, _ to: BodyConversion.Form) throws -> String {
        try String(
            decoding: BodyConversion(from: from, to: to).convert(Array(body.utf8), contentType: from.contentType),
            as: UTF8.self)
    }

    private func refusal(
        _ body: [UInt8], _ from: BodyConversion.Form, _ to: BodyConversion.Form, type: String? = nil
    ) -> String? {
        do {
            _ = try BodyConversion(from: from, to: to).convert(body, contentType: type ?? from.contentType)
            return nil
        } catch {
            return error.description
        }
    }

    private func list(_ inner: String) -> String { "<plist version=\"1.0\">\(inner)</plist>" }

    @Test(
        arguments: [
            (.form, "application/x-www-form-urlencoded", true),
            (.form, "Application/X-WWW-Form-Urlencoded; charset=utf-8", true),
            (.form, "multipart/form-data; boundary=x", false), (.form, "", false), (.form, "application/json", false),
            (.json, "application/json", true), (.json, "text/json", true), (.json, "application/jsonp", false),
            (.propertyList, "application/x-plist", true), (.propertyList, "application/xml", false),
            (.json, "application/json, application/json", false),
        ] as [(BodyConversion.Form, String, Bool)])
    func appliesToItsTypeAlone(_ from: BodyConversion.Form, _ type: String, _ applies: Bool) {
        #expect(BodyConversion(from: from, to: from == .json ? .form : .json).applies(to: type) == applies)
    }

    @Test(arguments: [
        ("user[name]=x&tags[]=a", #"{"user":{"name":"x"},"tags":["a"]}"#),
        ("user%5Bname%5D=x&user%5Btags%5D%5B%5D=a&user%5Btags%5D%5B%5D=b", #"{"user":{"name":"x","tags":["a","b"]}}"#),
        ("b=1&a=2", #"{"b":"1","a":"2"}"#), ("a=1&a=2&b=3&a=4", #"{"a":["1","2","4"],"b":"3"}"#),
        ("a=x+y%2Bz", #"{"a":"x y+z"}"#), ("a&b=", #"{"a":null,"b":""}"#), ("&&a=1&", #"{"a":"1"}"#), ("&", "{}"),
        ("=x", #"{"":"x"}"#), ("a=b=c", #"{"a":"b=c"}"#), ("%C3%A9=%F0%9F%91%8D", #"{"é":"👍"}"#),
        ("a[][b]=1&a[][c]=2&a[][b]=3", #"{"a":[{"b":"1","c":"2"},{"b":"3"}]}"#),
        ("a[][b][c]=1&a[][b][d]=2&a[][b][c]=3", #"{"a":[{"b":{"c":"1","d":"2"}},{"b":{"c":"3"}}]}"#),
        ("a[][b][]=1&a[][b][]=2", #"{"a":[{"b":["1","2"]}]}"#), ("a[0]=x&a[1]=y", #"{"a":{"0":"x","1":"y"}}"#),
        ("a[b=1&a]b=2&[c]=3&a[b]c=4&a[[b]]=5", #"{"a[b":"1","a]b":"2","[c]":"3","a[b]c":"4","a[[b]]":"5"}"#),
        ("a=%00%22%5C%0A", #"{"a":"\u0000\"\\\n"}"#), ("e%CC%81=1&%C3%A9=2", "{\"e\u{301}\":\"1\",\"é\":\"2\"}"),
    ]) func formsBecomeJSON(_ form: String, _ json: String) throws {
        #expect(Array(try convert(form, .form, .json).utf8) == Array(json.utf8))
    }

    @Test(arguments: [
        ("a=%", "line 1, column 3: % is not followed by two hexadecimal digits"),
        ("x=1&a=%4", "line 1, column 7: % is not followed by two hexadecimal digits"),
        ("%4&1=x", "line 1, column 1: % is not followed"), ("a=%GG", "line 1, column 3: % is not followed"),
        ("x&a=%FF", "line 1, column 3: the bytes from here aren't valid UTF-8"),
        ("%C3=%A9", "line 1, column 1: the bytes from here aren't valid UTF-8"),
        ("a[%ED%A0%80]=1", "aren't valid UTF-8"), ("a=1&a[b]=2", "line 1, column 5: a[b] has a value already"),
        ("a[b]=1&a=2", "line 1, column 8: a contains others already"),
        ("a[]=1&a[b]=2", "a[b] is a list, and can't have keys"),
        ("a[b]=1&a[]=2", "a[] has keys, and can't be a list"), ("a=1&a[]=2", "a[] has a value already"),
        ("a[][]=1", "a[][] is a list within a list"), ("a%0A%1B[]=1&a%0A%1B=2", "a\\u{A}\\u{1B} contains others"),
    ]) func wrongFormsAreRefusedWithThePlace(_ form: String, _ words: String) {
        let text = refusal(Array(form.utf8), .form, .json)
        #expect(text?.hasPrefix("The body is not a form: ") == true)
        #expect(text?.contains(words) == true, "\(text ?? "converted")")
    }

    @Test func aFormInAnotherCharsetIsRefused() {
        #expect(refusal([0x61], .form, .json, type: Self.form + "; charset=utf-8") == nil)
        #expect(refusal([0x61], .form, .json, type: Self.form + ";Charset=\"UTF-8\"") == nil)
        #expect(
            refusal([0x61], .form, .json, type: Self.form + "; charset=iso-8859-1")
                == "The body is not a form: charset iso-8859-1 is not supported; send UTF-8")
    }

    @Test(arguments: [
        (
            #"{"user":{"name":"x y","tags":["a","b"]},"n":1.10,"t":true,"z":null}"#,
            "user%5Bname%5D=x%20y&user%5Btags%5D%5B%5D=a&user%5Btags%5D%5B%5D=b&n=1.10&t=true&z"
        ),
        (" { } ", ""), (#"{"a":[],"b":{}}"#, ""),
        (#"{"\u00e9\/\"\\\b\f\n\r\t":"\ud83d\udc4d"}"#, "%C3%A9/%22%5C%08%0C%0A%0D%09=%F0%9F%91%8D"),
        (
            #"{ "a" : [ 1 , -0 , 12345678901234567890 ] , "b" : [ { "c" : false } ] }"#,
            "a%5B%5D=1&a%5B%5D=-0&a%5B%5D=12345678901234567890&b%5B%5D%5Bc%5D=false"
        ),
        ("\u{FEFF}{\"a\":\"\\u0000\u{FEFF}\"}", "a=%00%EF%BB%BF"),
    ]) func jsonBecomesAForm(_ json: String, _ form: String) throws {
        #expect(try convert(json, .json, .form) == form)
    }

    @Test(arguments: [
        ("[1]", "The top is an array, which a form can't express"),
        ("1", "The top is a single value, which a form can't express"),
        ("{\n  \"a\": 1,\n  \"a\": 2}", "The body is not JSON: line 3, column 3: the key \"a\" is written twice"),
        (#"{"\u0061":1,"a":2}"#, "line 1, column 13: the key \"a\" is written twice"),
        (#"{"a":[{"b":1,"b":1}]}"#, "the key \"b\" is written twice"), (#"{"a":1e400}"#, "line 1, column 6"),
        (#"{"a":"\ud800"}"#, "line 1, column 7"), (#"{"a":"\udc00\ud800"}"#, "line 1"),
        ("{\"a\":\n01}", "line 2, column"),
        ("{\"a\":1", "line 1, column 7"), ("{'a':1}", "line 1, column 2"), ("{\"a\":NaN}", "line 1, column 6"),
        ("a=1", "line 1, column 1"),
    ]) func wrongJSONIsRefusedWithThePlace(_ json: String, _ words: String) {
        let text = refusal(Array(json.utf8), .json, .form)
        #expect(text?.contains(words) == true, "\(text ?? "converted")")
    }

    @Test func propertyListsBecomeJSON() throws {
        let body = list(
            """
            <dict><key>b</key><array><integer>-5</integer><integer>18446744073709551615</integer><real>1.5</real><true/\
            ><false/></array>
            """
                + "<key>a</key><string>x &amp; y</string></dict>")
        #expect(
            try convert(body, .propertyList, .json) == #"{"a":"x & y","b":[-5,18446744073709551615,1.5,true,false]}"#)
        #expect(
            try convert(body, .propertyList, .form)
                == "a=x%20%26%20y&b%5B%5D=-5&b%5B%5D=18446744073709551615&b%5B%5D=1.5&b%5B%5D=true&b%5B%5D=false")
        let binary = try PropertyListSerialization.data(
            fromPropertyList: ["a": ["x", true, 1, 2.5]] as NSDictionary, format: .binary, options: 0)
        let json = try BodyConversion(from: .propertyList, to: .json).convert(
            Array(binary), contentType: "application/x-plist")
        #expect(String(decoding: json, as: UTF8.self) == #"{"a":["x",true,1,2.5]}"#)
    }

    @Test(arguments: [
        ("<dict><key>a</key><array><date>2026-01-01T00:00:00Z</date></array></dict>", "a[] is a date"),
        ("<dict><key>a</key><dict><key>b</key><data>AAAA</data></dict></dict>", "a[b] is data"),
        ("<dict><key>a</key><real>nan</real></dict>", "a is not a finite number"),
        ("<dict><key>a</key><real>inf</real></dict>", "a is not a finite number"),
    ]) func whatOnlyPropertyListsHaveIsNamed(_ inner: String, _ words: String) {
        for to in [BodyConversion.Form.json, .form] {
            #expect(refusal(Array(list(inner).utf8), .propertyList, to)?.contains(words) == true)
        }
    }

    @Test func whatPropertyListsDoNotHaveIsNamed() {
        #expect(
            refusal(Array(#"{"a":{"b":[null]}}"#.utf8), .json, .propertyList)
                == "a[b][] is null, which a property list can't express")
        #expect(refusal(Array("a=1&b".utf8), .form, .propertyList) == "b is null, which a property list can't express")
        #expect(
            refusal(Array("a=%00".utf8), .form, .propertyList)?.contains(
                "a is a text with a character that XML forbids") == true)
    }

    /// Errors never repeat any part of a value: it may be a password.
    @Test func valuesAreNeverShown() {
        for (body, from, to) in [
            ("password=hunter2%", .form, .json), ("password=hunter2&password[a]=hunter2", .form, .json),
            ("password=hunter2%FF", .form, .json), ("password=hunter2%00", .form, .propertyList),
            (#"{"password":"hunter2","password":"hunter2"}"#, .json, .form),
        ] as [(String, BodyConversion.Form, BodyConversion.Form)] {
            let text = refusal(Array(body.utf8), from, to)
            #expect(text?.contains("hunter2") == false, "\(text ?? "converted \(body)")")
        }
    }

    @Test func anEmptyBodyStaysEmpty() throws {
        for from in BodyConversion.Form.allCases {
            for to in BodyConversion.Form.allCases where to != from { #expect(try convert("", from, to) == "") }
        }
    }

    // MARK: Bounds

    @Test func depthIsBounded() throws {
        let deep = 100_000
        let form = "a" + String(repeating: "[b]", count: deep) + "=1"
        #expect(
            refusal(Array(form.utf8), .form, .json)
                == "The body is not a form: line 1, column 1: the name is nested more than 256 deep")
        let arrays = String(repeating: "[", count: deep) + String(repeating: "]", count: deep)
        let objects = String(repeating: "{\"a\":", count: deep) + "1" + String(repeating: "}", count: deep)
        for json in [arrays, objects] {
            #expect(
                refusal(Array(json.utf8), .json, .propertyList)?.hasPrefix("The body is not JSON: line 1, column ")
                    == true)
        }
        let lists = list(String(repeating: "<array>", count: deep) + String(repeating: "</array>", count: deep))
        #expect(
            refusal(Array(lists.utf8), .propertyList, .json)?.hasPrefix("The body is not a property list: ") == true)
        // Within the limit it is converted.
        let shallow = "a" + String(repeating: "[b]", count: 255) + "=1"
        #expect(refusal(Array(shallow.utf8), .form, .propertyList) == nil)
        let nested = String(repeating: "{\"a\":", count: 500) + "1" + String(repeating: "}", count: 500)
        for to in [BodyConversion.Form.form, .propertyList] { #expect(refusal(Array(nested.utf8), .json, to) == nil) }
    }

    /// A long name over many values, and deeply nested values.
    @Test func whatComesOutIsBounded() throws {
        let ones = String(repeating: "1,", count: 100_000) + "1"
        let wide = "{\"\(String(repeating: "k", count: 100_000))\":[\(ones)]}"
        #expect(refusal(Array(wide.utf8), .json, .form) == "The body is longer than 8388608 bytes when it is converted")
        let deep = String(repeating: "[", count: 400) + ones + String(repeating: "]", count: 400)
        #expect(
            refusal(Array(deep.utf8), .json, .propertyList)
                == "The body is longer than 8388608 bytes when it is converted")
    }

    /// Many keys, and one key many times, in linear time.
    @Test func manyPairsAreRead() throws {
        let many = (0..<50_000).map { "k\($0)=v" }.joined(separator: "&")
        #expect(try convert(many, .form, .json).utf8.count > many.utf8.count)
        let one = Array(repeating: "k=v", count: 50_000).joined(separator: "&")
        #expect(try convert(one, .form, .json).utf8.count == 8 + 50_000 * 4 - 1)
    }

    // MARK: Round trips, and garbage

    /// A form converted to JSON and back is the same, if it is unambiguous.
    @Test func aFormSurvivesTheWayToJSONAndBack() throws {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<2000 {
            // Distinct keys, values that are texts, lists of texts and dictionaries.
            func texts(_ depth: Int) -> [ParameterValue.Pair] {
                random.pairs(depth: 0).enumerated().map { index, pair in
                    let value: ParameterValue =
                        switch Int.random(in: 0..<(depth > 0 ? 4 : 2), using: &random) {
                        case 0: .string(random.text())
                        case 1: .null
                        case 2: .array((0..<Int.random(in: 1..<4, using: &random)).map { _ in .string(random.text()) })
                        default: .dictionary(texts(depth - 1))
                        }
                    return .init(key: "\(index)" + pair.key, value: value)
                }
            }
            let pairs = texts(3)
            let query = QueryEncoder.encode(pairs)
            let json = try BodyConversion(from: .form, to: .json).convert(query, contentType: Self.form)
            #expect(json == (try JSONWriter.write(.dictionary(pairs))))
            #expect(try BodyConversion(from: .json, to: .form).convert(json, contentType: "application/json") == query)
        }
    }

    private static let samples: [(BodyConversion.Form, String)] = [
        (.form, "user%5Bname%5D=Gr%C3%BC%C3%9Fe+x&user[tags][]=a&user[tags][]=b&n=1.5&flag&a[][b]=1&a[][c]=2&k=1&k=2"),
        (
            .json,
            #"{"user": {"name": "Gr\u00fcße \ud83d\udc4d\n", "tags": ["a", 1.5e-7, true, null]}, "n": [[], {}, -0]}"#
        ),
        (
            .propertyList,
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict><key>a</key><array><string>x &amp; \
            y</string><integer>5</integer><real>1.5</real><true/>
            <date>2026-01-01T00:00:00Z</date><data>AAAA</data></array><key>b</key><dict/></dict></plist>
            """
        ),
    ]

    /// Every truncated body, and every one with changed bytes, is converted or refused.
    @Test(arguments: samples) func rubbishIsConvertedOrRefused(_ from: BodyConversion.Form, _ sample: String) {
        let long = Array(String(repeating: sample, count: 40).utf8)
        let body = Array(sample.utf8)
        var outcomes = (converted: 0, refused: 0)
        func feed(_ bytes: [UInt8]) {
            for to in BodyConversion.Form.allCases where to != from {
                if refusal(bytes, from, to) == nil { outcomes.converted += 1 } else { outcomes.refused += 1 }
            }
        }
        for end in stride(from: 0, to: long.count, by: 64) { feed(Array(long[..<end])) }
        for end in body.indices { feed(Array(body[..<end])) }
        var random = SeededGenerator(seed: 6)
        let bytes = Array("[]{}<>&=%\"\\+/!?x0\u{0}\u{FF}".utf8) + [0x80, 0xC3, 0xED, 0xF4, 0xFF]
        // The same each time; `make fuzz TARGET=body-conversion` searches for others.
        for _ in 0..<2_000 {
            var mutant = body
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let at = Int.random(in: 0..<mutant.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: mutant[at] = bytes.randomElement(using: &random)!
                case 1: mutant.insert(bytes.randomElement(using: &random)!, at: at)
                case 2 where mutant.count > 1: mutant.remove(at: at)
                default: mutant.swapAt(at, Int.random(in: 0..<mutant.count, using: &random))
                }
            }
            feed(mutant)
        }
        // The mutants reach both outcomes.
        #expect(outcomes.refused > 1000)
        if from != .propertyList { #expect(outcomes.converted > 100) }
    }
}
