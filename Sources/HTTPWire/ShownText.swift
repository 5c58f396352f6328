/// A text that a peer sent, or somebody wrote, as people may see it: in errors, answers and the log.
///
/// It may be a URL, and that may hold secrets. User information, query and fragment become `***`; where it isn't
/// clear where they end (`http://user:p?ss@host`), more than that does. It stays on one line, and within
/// ``longest`` scalars.
///
/// ```
/// ftp://ada:secret@a.test/x?token=1   →  ftp://***:***@a.test/x?***
/// ```
package struct ShownText: Sendable, Hashable, CustomStringConvertible {
    package static let longest = 200

    package let description: String

    package init(_ text: String) {
        description = Self.onOneLine(Self.hidingSecrets(in: text))
    }

    /// The whole text with `***` for what may be secret, in the shape of the original.
    package static func hidingSecrets(in text: String) -> String {
        let scheme = scheme(of: text)
        // Not characters: a combining mark would be one with the ?, @ or : before it.
        let rest = text.unicodeScalars[scheme.endIndex...]
        let end = rest.firstIndex { $0 == "?" || ($0 == "#" && !scheme.isEmpty) } ?? rest.endIndex
        let (front, back) = (rest[..<end], rest[end...])
        let tail = back.isEmpty ? "" : "\(Substring(back.prefix(1)))***"
        // An @ after a ? may end user information that holds the ?.
        if back.contains("@") { return scheme + "***" + tail }
        guard let at = front.lastIndex(of: "@") else {
            return scheme + (scheme.isEmpty ? String(front) : hidingPassword(in: front)) + tail
        }
        let user = front[..<at].contains(":") ? "***:***" : "***"
        return scheme + user + Substring(front[at...]) + tail
    }

    /// `SCHEME://` (RFC 3986 section 3.1); empty if the text doesn't begin so.
    private static func scheme(of text: String) -> Substring {
        let name = text.utf8.prefix { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard let first = name.first, first >= UInt8(ascii: "A") else { return text.prefix(0) }
        let mark = text.utf8[name.endIndex...].prefix(3)
        return mark.elementsEqual("://".utf8) ? text[..<mark.endIndex] : text.prefix(0)
    }

    /// Hides the password of a URL that ends before its host (`http://user:password`): text that isn't a port.
    private static func hidingPassword(in rest: Substring.UnicodeScalarView) -> String {
        let authority = rest.prefix { $0 != "/" }
        guard let colon = authority.lastIndex(of: ":") else { return String(rest) }
        let port = authority[authority.index(after: colon)...]
        guard port.contains(where: { !("0"..."9" ~= $0) }), port.last != "]" else { return String(rest) }
        return Substring(authority[...colon]) + "***" + Substring(rest[authority.endIndex...])
    }

    private static func onOneLine(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars.prefix(longest) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
                line += "\\u{\(String(scalar.value, radix: 16))}"
            default: line.unicodeScalars.append(scalar)
            }
        }
        return text.unicodeScalars.count > longest ? line + "…" : line
    }
}
