/// An absolute-form request target (RFC 9112 section 3.2.2), cut into its parts.
package struct AbsoluteTarget: Sendable, Equatable {
    package enum Scheme: Sendable { case http, https, other }

    package let scheme: Scheme
    /// The text between `//` and the path; `Authority.parse` validates it.
    package let authority: ByteRange
    /// Path and query; empty for `http://host`, and without its first slash for `http://host?query`.
    package let pathAndQuery: ByteRange

    /// The parts of `range`; nil if it doesn't begin with a scheme, `://` and an authority.
    package static func split(_ range: ByteRange, in bytes: Span<UInt8>) -> AbsoluteTarget? {
        guard !range.isEmpty, bytes[range.start].isLetter else { return nil }
        var colon = range.start + 1
        let schemeText = ASCIISet.scheme
        while colon < range.end, schemeText.contains(bytes[colon]) { colon += 1 }
        let lower = colon + 3
        guard lower < range.end, bytes[colon] == UInt8(ascii: ":"),
            bytes[colon + 1] == UInt8(ascii: "/"), bytes[colon + 2] == UInt8(ascii: "/")
        else { return nil }

        var upper = lower
        while upper < range.end, bytes[upper] != UInt8(ascii: "/"), bytes[upper] != UInt8(ascii: "?") { upper += 1 }
        guard upper > lower else { return nil }

        let name = ByteRange(range.start, colon)
        let scheme: Scheme =
            if bytes.equals(name, ignoringCase: "http") { .http } else if bytes.equals(name, ignoringCase: "https") {
                .https
            } else { .other }
        return AbsoluteTarget(
            scheme: scheme, authority: ByteRange(lower, upper), pathAndQuery: ByteRange(upper, range.end))
    }
}
