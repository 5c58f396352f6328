/// The request paths that a rule of the pin file applies to (`rules: [{path: …}]`).
///
/// | pattern        | matches                                     | doesn't match           |
/// |----------------|---------------------------------------------|-------------------------|
/// | `/v1/users`    | `/v1/users`                                 | `/v1/users/`, `/v1`     |
/// | `/v1/*`        | `/v1/users`, `/v1/`                         | `/v1`, `/v1/users/7`    |
/// | `/v1/**`       | `/v1`, `/v1/`, `/v1/users/7`                | `/v10`                  |
/// | `/**/upload`   | `/upload`, `/a/b/upload`                    | `/a/uploads`            |
/// | `/files/**.gz` | `/files/a.gz`, `/files/a/b.gz`              | `/files/a.gz/b`         |
/// | `/v*/users`    | `/v1/users`, `/v/users`                     | `/v1/x/users`           |
///
/// `*` stands for any characters within a segment, none included, and `**` for any characters at all.
/// Where `**` is a whole segment, that segment may be missing together with its slash, just as `**.example.com`
/// includes the name itself. Everything else stands for itself, and case counts.
///
/// **What is compared.** The path without the query, percent-decoded and with its dot segments resolved
/// (``PathReadings``). So a pattern is written decoded, `/a b` and not `/a%20b`, and one that no such path
/// can have, as `/a/../b`, is an error rather than a rule that never applies.
package struct PathPattern: Sendable, Hashable, CustomStringConvertible {
    package static let longest = 255

    package let description: String
    let automaton: PathAutomaton

    package init(_ text: String) throws(PathPatternError) {
        let bytes = Array(text.utf8)
        if let error = Self.defect(of: bytes) { throw error }
        description = text
        automaton = PathAutomaton(Self.elements(of: bytes))
    }

    /// Whether one reading of a path, from ``PathReadings``, matches. Takes O(path length × pattern length).
    package func matches(_ path: [UInt8]) -> Bool { automaton.accepts(path) }

    private static func elements(of bytes: [UInt8]) -> [PathAutomaton.Element] {
        let (slash, star) = (UInt8(ascii: "/"), UInt8(ascii: "*"))
        var segments = bytes.dropFirst().split(separator: slash, omittingEmptySubsequences: false).map(Array.init)
        // Several in a row mean the same as one.
        for index in segments.indices.dropFirst().reversed() where segments[index] == [star, star] {
            if segments[index - 1] == [star, star] { segments.remove(at: index) }
        }
        var elements: [PathAutomaton.Element] = []
        for segment in segments {
            if segment == [star, star] {
                elements += [.optionalSlash, .anything]
                continue
            }
            elements.append(.literal(slash))
            var index = 0
            while index < segment.count {
                if segment[index] != star {
                    elements.append(.literal(segment[index]))
                } else if index + 1 < segment.count, segment[index + 1] == star {
                    elements.append(.anything)
                    index += 1
                } else {
                    elements.append(.anythingButSlash)
                }
                index += 1
            }
        }
        return elements
    }

    private static func defect(of bytes: [UInt8]) -> PathPatternError? {
        guard let first = bytes.first else { return .empty }
        if first != UInt8(ascii: "/") { return .notAbsolute }
        if bytes.count > longest { return .tooLong }
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case UInt8(ascii: "?"), UInt8(ascii: "#"): return .query
            case UInt8(ascii: "\\"): return .backslash
            case UInt8(ascii: ";"): return .parameters
            case UInt8(ascii: "%"):
                if let escape = PercentEscape(bytes, at: index) { return .encoded(escape.value) }
            case 0..<0x20, 0x7F: return .control
            case UInt8(ascii: "*") where bytes[index...].starts(with: "***".utf8): return .stars
            default: break
            }
        }
        let segments = bytes.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            if segment.isEmpty, index < segments.count - 1 { return .emptySegment }
            if segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8) { return .dotSegment }
        }
        return nil
    }
}

package enum PathPatternError: Error, Sendable, Hashable, CustomStringConvertible {
    case empty, notAbsolute, tooLong, query, backslash, parameters, control, stars, emptySegment, dotSegment
    case encoded(UInt8)

    package var description: String {
        switch self {
        case .empty: "the pattern is empty; write /** for every path"
        case .notAbsolute: "a path begins with a slash; write e.g. /v1/** or /**/upload"
        case .tooLong: "the pattern is longer than \(PathPattern.longest) bytes"
        case .query: "only the path is compared, without the query; remove the text from ? or #"
        case .backslash: "segments are separated by /, not by a backslash"
        case .parameters: "; ends a segment for some servers, so a pattern can't contain it"
        case .control: "the pattern contains a control character"
        case .stars: "\"***\" has no meaning; write * (within a segment) or ** (across segments)"
        case .emptySegment: "\"//\" never matches, because paths are compared with repeated slashes merged"
        case .dotSegment: "\".\" and \"..\" never match, because paths are compared with them resolved"
        case .encoded(let byte):
            byte > 0x20 && byte < 0x7F
                ? "paths are compared decoded; write \(Character(Unicode.Scalar(byte))) for its escape"
                : "paths are compared decoded; write the character itself, not its escape"
        }
    }
}

/// `%XX` in a path.
struct PercentEscape {
    let value: UInt8

    /// Nil if two hexadecimal digits don't follow the `%` at the index.
    init?(_ bytes: [UInt8], at index: Int) {
        guard index + 2 < bytes.count, let high = bytes[index + 1].hexValue, let low = bytes[index + 2].hexValue else {
            return nil
        }
        value = high << 4 | low
    }
}
