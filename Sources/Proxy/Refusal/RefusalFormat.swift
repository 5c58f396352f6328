package import HTTPWire

/// What a refusal's body is written as.
package enum RefusalFormat: Sendable, Equatable {
    /// `application/problem+json` (RFC 9457).
    case problem
    case html

    /// What the client's Accept field prefers (RFC 9110 section 12.5.1); `problem` unless HTML is
    /// named and weighs more: programs don't ask for HTML by name, browsers do.
    package static func preferred(by accept: ByteRange?, in bytes: Span<UInt8>) -> RefusalFormat {
        guard let accept else { return .problem }
        var html = Preference()
        var problem = Preference()
        var ranges = MediaRanges(accept.offsets.map { bytes[$0] })
        while let range = ranges.next() {
            switch range.name {
            case "text/html", "application/xhtml+xml": html.take(range.quality, specificity: 3)
            case "text/*": html.take(range.quality, specificity: 2)
            case "application/problem+json", "application/json": problem.take(range.quality, specificity: 3)
            case "application/*": problem.take(range.quality, specificity: 2)
            case "*/*":
                html.take(range.quality, specificity: 1)
                problem.take(range.quality, specificity: 1)
            default: break
            }
        }
        guard html.quality > 0 else { return .problem }
        return (html.quality, html.specificity) > (problem.quality, problem.specificity) ? .html : .problem
    }

    /// The weight of the most specific range that fits, in thousandths.
    private struct Preference {
        var quality = 0
        var specificity = 0

        mutating func take(_ quality: Int, specificity: Int) {
            guard specificity >= self.specificity else { return }
            self.quality = specificity == self.specificity ? max(self.quality, quality) : quality
            self.specificity = specificity
        }
    }
}

/// The media ranges of an Accept field, one after another; those that are malformed are skipped.
private struct MediaRanges {
    struct Element {
        /// In lower case, without parameters.
        let name: String
        /// In thousandths.
        let quality: Int
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func next() -> Element? {
        while position < bytes.count {
            let name = part()
            var quality: Int? = 1000
            while position < bytes.count, bytes[position] == UInt8(ascii: ";") {
                position += 1
                let parameter = part()
                if parameter.hasPrefix("q=") { quality = Self.thousandths(parameter.dropFirst(2)) }
            }
            position += 1
            if !name.isEmpty, let quality { return Element(name: name, quality: quality) }
        }
        return nil
    }

    /// Up to the next comma or semicolon that is not quoted, in lower case, without white space around it.
    private mutating func part() -> String {
        var text: [UInt8] = []
        var isQuoted = false
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            if isQuoted, byte == UInt8(ascii: "\\") { position += 1 }
            if !isQuoted, byte == UInt8(ascii: ",") || byte == UInt8(ascii: ";") { break }
            if byte != 0x20, byte != 0x09 { text.append(byte) }
            position += 1
        }
        return String(decoding: text, as: UTF8.self).lowercased()
    }

    /// qvalue: 0 to 1 with at most three decimals.
    private static func thousandths(_ text: Substring) -> Int? {
        let digits = Array(text.utf8)
        guard let first = digits.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1"),
            digits.count <= 5, digits.count == 1 || digits[1] == UInt8(ascii: "."),
            digits.dropFirst(2).allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { return nil }
        var value = Int(first & 1)
        for index in 2..<5 { value = value * 10 + (index < digits.count ? Int(digits[index] & 0x0F) : 0) }
        return value <= 1000 ? value : nil
    }
}
