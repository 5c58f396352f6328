import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

@Suite struct XMLResponseTests {
    private func defect(in text: String) -> BodyDefect? { defect(in: Array(text.utf8)) }

    private func defect(in body: [UInt8]) -> BodyDefect? {
        caught { () throws(BodyDefect) in try XMLResponseSerializer().check(body: body) }
    }

    @Test(arguments: [
        "<a/>",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a b=\"c\">text &amp; &#233; <![CDATA[<x>]]></a>\n<!-- end -->",
        "<!DOCTYPE a [<!ENTITY e \"text\"> <!ELEMENT a ANY>]><a b=\"&e;\">&e;</a>", "\u{FEFF}<a/>", "<x:a/>",
        """
        <!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \
        \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\"><html/>
        """,
    ])
    func acceptsXML(_ text: String) { #expect(defect(in: text) == nil) }

    @Test(arguments: [
        ("<a>\n  <b>\n</a>", 3, "Opening and ending tag mismatch"), ("{\"a\":1}", 1, "Start tag expected"),
        (" ", 1, "Start tag expected"),
        ("<a>&nope;</a>", 1, "nope"), ("<a", 1, "end of Start Tag"), ("<a/><b/>", 1, "Extra content"),
        ("<a b=1/>", 1, "AttValue"),
        ("<a b=\"1\"\n b=\"2\"/>", 2, "redefined"), ("<a>\u{1}</a>", 1, "invalid Char"),
        (" <?xml version=\"1.0\"?><a/>", 1, "XML declaration"),
        ("<a>\u{1B}[31m</a>", 1, "invalid Char"),
    ])
    func saysWhatIsWrongAndWhere(_ text: String, _ line: Int, _ words: String) throws {
        let found = try #require(defect(in: text))
        #expect(found.place?.line == line, "\(found)")
        #expect(found.place?.column != nil)
        #expect(found.explanation.contains(words), "\(found)")
        #expect(!found.explanation.contains("\u{1B}"))
    }

    @Test func readsOtherEncodings() throws {
        let text = "<a>é😀</a>"
        #expect(defect(in: Array(try #require(("\u{FEFF}" + text).data(using: .utf16LittleEndian)))) == nil)
        #expect(defect(in: Array(try #require(("\u{FEFF}" + text).data(using: .utf16BigEndian)))) == nil)
        // Without a mark it is UTF-16 only if a declaration says so (XML 1.0, appendix F).
        #expect(defect(in: Array(try #require(text.data(using: .utf16LittleEndian)))) != nil)
        let declared = "<?xml version=\"1.0\" encoding=\"UTF-16\"?>" + text
        #expect(defect(in: Array(try #require(declared.data(using: .utf16LittleEndian)))) == nil)
        #expect(
            defect(in: Array("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>".utf8) + [0xE9] + Array("</a>".utf8))
                == nil)
        #expect(defect(in: Array("<a>".utf8) + [0xE9] + Array("</a>".utf8)) != nil)
    }

    @Test func boundsNesting() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        #expect(defect(in: nested(250)) == nil)
        #expect(try #require(defect(in: nested(100_000))).explanation.contains("depth"))
        #expect(defect(in: String(repeating: "<a>", count: 100_000)) != nil)
    }

    /// In content, in attributes, and by parameter entities; quadratic blow-up too.
    @Test func refusesEntitiesThatAmplify() {
        let laughs = (1...30).map { "<!ENTITY l\($0) \"\(String(repeating: "&l\($0 - 1);", count: 10))\">" }.joined()
        let declared = "<!DOCTYPE a [<!ENTITY l0 \"lol\">\(laughs)]>"
        #expect(defect(in: declared + "<a>&l30;</a>") != nil)
        #expect(defect(in: declared + "<a b=\"&l30;\"/>") != nil)
        #expect(defect(in: "<!DOCTYPE a [<!ENTITY x \"&y;\"><!ENTITY y \"&x;\">]><a>&x;</a>") != nil)
        let parameters = (1...30).map { "<!ENTITY % p\($0) \"\(String(repeating: "&#37;p\($0 - 1);", count: 10))\">" }
            .joined()
        #expect(defect(in: "<!DOCTYPE a [<!ENTITY % p0 \"<!-- -->\">\(parameters)%p30;]><a/>") != nil)
        let long = String(repeating: "x", count: 50_000)
        #expect(
            defect(in: "<!DOCTYPE a [<!ENTITY x \"\(long)\">]><a b=\"\(String(repeating: "&x;", count: 50_000))\"/>")
                != nil)
    }

    /// The file is a pipe: opening it would wait for a writer, which would show.
    @Test func neverFetches() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "pinproxy-xml-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let pipe = directory.appending(path: "pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        let reader = open(pipe, O_RDWR | O_NONBLOCK)
        defer { close(reader) }
        let secret = "<!ELEMENT a ANY>"
        #expect(
            secret.utf8.withContiguousStorageIfAvailable { write(reader, $0.baseAddress, $0.count) }
                == secret.utf8.count)
        _ = defect(in: "<!DOCTYPE a SYSTEM \"file://\(pipe)\"><a/>")
        _ = defect(in: "<!DOCTYPE a [<!ENTITY e SYSTEM \"file://\(pipe)\">]><a>&e;</a>")
        _ = defect(in: "<!DOCTYPE a [<!ENTITY % e SYSTEM \"file://\(pipe)\">%e;]><a/>")
        _ = defect(in: "<a xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include href=\"file://\(pipe)\"/></a>")
        // All of it is still in the pipe.
        var left = [UInt8](repeating: 0, count: 64)
        #expect(read(reader, &left, left.count) == secret.utf8.count)
    }

    /// expat agrees: it refuses the same documents, except for entities and their limits.
    @Test func judgesAsExpatDoes() throws {
        let seeds = [
            "<?xml version=\"1.0\"?><r a=\"1\" b='2'><c>text &amp; &#x41;</c><!-- note --><![CDATA[<raw>]]><d/></r>",
            "<root>\n  <item id=\"1\">é😀</item>\n  <?pi data?>\n</root>\n",
        ].map { Array($0.utf8) }
        var random = SeededGenerator(seed: 3)
        let bodies = (0..<10_000).map { seeds[$0 % 2].mutated(by: &random) }
        let verdicts = bodies.map { defect(in: $0) == nil || $0.isEmpty }
        let program = """
            import sys, xml.parsers.expat
            print('"', end="")
            for line in sys.stdin:
                parser = xml.parsers.expat.ParserCreate()
                try: parser.Parse(bytes.fromhex(line), True); print(1, end="")
                except xml.parsers.expat.ExpatError: print(0, end="")
            print('"')
            """
        let lines = bodies.map { $0.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "\n" }
        let said = Array(try #require(PeerProgram.python.run(program, input: Array(lines.joined().utf8)) as? String))
        try #require(said.count == bodies.count)
        var differ: [String] = []
        for (index, body) in bodies.enumerated() where (said[index] == "1") != verdicts[index] && !body.isEmpty {
            differ.append(
                "\(verdicts[index]) \(String(decoding: body, as: UTF8.self)) \(String(describing: defect(in: body)))")
        }
        #expect(differ.count <= 30, "\(differ.count): \(differ.prefix(20).joined(separator: "\n"))")
        #expect(verdicts.count(where: { $0 }) > 500)
    }

    @Test func refusesEveryPrefix() {
        let text = Array("<?xml version=\"1.0\"?><r a=\"1\"><c>text &amp; &#x41;</c><![CDATA[<raw>]]></r>".utf8)
        for length in 1..<text.count { #expect(defect(in: Array(text[..<length])) != nil, "\(length)") }
    }
}
