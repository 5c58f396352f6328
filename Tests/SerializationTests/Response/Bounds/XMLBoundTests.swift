import Testing

@testable import PinproxySerialization

/// Documents that would cost libxml2 minutes. Each was measured without the limit; the suite's time limit would then
/// fail.
@Suite(.timeLimit(.minutes(1))) struct XMLBoundTests {
    private func defect(in text: String) -> BodyDefect? {
        caught { () throws(BodyDefect) in try XMLResponseSerializer().check(body: Array(text.utf8)) }
    }

    private func list(_ count: Int, _ separator: String, _ piece: (Int) -> String) -> String {
        (0..<count).map(piece).joined(separator: separator)
    }

    private static let tooLong = "its document type declaration is longer than \(XMLDocument.longestSubset) bytes"

    @Test func attributesOfAnElementAreBounded() {
        func element(_ count: Int) -> String { "<a " + list(count, " ") { "a\($0)=''" } + "/>" }
        #expect(defect(in: element(1_400)) == nil)
        #expect(defect(in: element(50_000))?.explanation == "an element has more than 1400 attributes")
        #expect(defect(in: element(200_000))?.explanation == "an element has more than 1400 attributes")
        // Lists of different elements don't add up.
        #expect(defect(in: "<r>" + list(20, "") { _ in element(1_000) } + "</r>") == nil)
    }

    /// In these encodings a byte search for angle brackets finds none.
    @Test(arguments: ["UTF-16", "UTF-7"]) func attributesAreBoundedInEveryCoding(name: String) {
        let element = "<a " + list(50_000, " ") { "a\($0)=''" } + "/>"
        var body: [UInt8]
        if name == "UTF-7" {
            body = Array("<?xml version='1.0' encoding='UTF-7'?>".utf8)
            body += element.replacing("<", with: "+ADw-").replacing(">", with: "+AD4-").utf8
        } else {
            body = [0xFF, 0xFE] + element.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        }
        let found = caught { () throws(BodyDefect) in try XMLResponseSerializer().check(body: body) }
        #expect(found?.explanation == "an element has more than 1400 attributes", "\(String(describing: found))")
    }

    /// 3,000 defaults were added to each of 30,000 elements.
    @Test func defaultsOfAttributesCostNothing() {
        let defaults = list(3_000, " ") { "a\($0) CDATA 'x'" }
        #expect(
            defect(in: "<!DOCTYPE a [<!ATTLIST a \(defaults)>]><r>\(String(repeating: "<a/>", count: 30_000))</r>")
                == nil)
    }

    @Test(arguments: ["", "NOTATION "]) func listsOfADeclarationAreBounded(kind: String) {
        func document(_ count: Int) -> String {
            "<!DOCTYPE a [<!ATTLIST a b \(kind)(" + list(count, "|") { "n\($0)" } + ") #IMPLIED>]><a/>"
        }
        #expect(defect(in: document(5_000)) == nil)
        #expect(defect(in: document(200_000))?.explanation == Self.tooLong)
    }

    /// The list is hidden: its separators are references to characters, and it is read once the entity is referred to.
    @Test func listsOfAParameterEntityAreBounded() {
        let hidden = "&#60;!ATTLIST a b (" + list(5_000, "&#124;") { "\($0)" } + ") #IMPLIED&#62;"
        #expect(defect(in: "<!DOCTYPE a [<!ENTITY % p \"\(hidden)\">%p;]><a/>") == nil)
        let longer = "&#60;!ATTLIST a b (" + list(100_000, "&#124;") { "n\($0)" } + ") #IMPLIED&#62;"
        #expect(defect(in: "<!DOCTYPE a [<!ENTITY % p \"\(longer)\">%p;]><a/>")?.explanation == Self.tooLong)
        let doubling =
            "<!ENTITY % p0 \"" + list(3_000, "&#124;") { "n\($0)" } + "\">"
            + (1...10).map { "<!ENTITY % p\($0) \"&#37;p\($0 - 1);&#124;&#37;p\($0 - 1);\">" }.joined()
        #expect(
            defect(in: "<!DOCTYPE a [\(doubling)<!ENTITY % q \"&#60;!ATTLIST a b (&#37;p10;) #IMPLIED&#62;\">%q;]><a/>")
                != nil)
    }

    /// Each prefix was looked up among 250,000.
    @Test func namespacesCostNothing() {
        let open = list(250, "") { depth in "<n " + list(1_000, " ") { "xmlns:x\(depth)_\($0)='u'" } + ">" }
        let document =
            "<r xmlns:q='u'>\(open)\(String(repeating: "<q:e/>", count: 50_000))"
            + String(repeating: "</n>", count: 250) + "</r>"
        #expect(defect(in: document) == nil)
    }

    /// libxml2 continued to the end, and wrote a message for each fault.
    @Test func readingEndsWithTheFirstFault() {
        let found = defect(in: "<r>" + String(repeating: "<a b/>", count: 1_300_000) + "</r>")
        #expect(found?.explanation == "Specification mandates value for attribute b" && found?.place?.column == 8)
    }

    @Test func documentsWithDeclarationsOfTheirOwnAreRead() {
        let entities = list(500, "\n") { "<!ENTITY name\($0) \"http://www.example.org/namespaces/\($0)\">" }
        let uses = list(500, "") { "<a href=\"&name\($0);\">&name\($0);</a>" }
        #expect(defect(in: "<!DOCTYPE r [\(entities)]><r>\(uses)</r>") == nil)
    }
}
