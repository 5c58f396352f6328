/// The one question that the proxy has about an Accept field (RFC 9110 section 12.5.1).
enum Accept {
    /// Whether HTML is named, and preferred no less than JSON or `*/*`. Allocates nothing: it runs for every request.
    static func prefersHTML(_ value: Span<UInt8>) -> Bool {
        guard value.count >= 9 else { return false }
        var html = 0
        var other = 0
        var start = 0
        while start < value.count {
            var end = start
            while end < value.count, value[end] != UInt8(ascii: ",") { end += 1 }
            let range = start..<end
            let name = mediaRange(of: range, in: value)
            if matches(value, name, "text/html") || matches(value, name, "application/xhtml+xml") {
                html = max(html, quality(after: name.upperBound, to: end, in: value))
            } else if matches(value, name, "*/*") || matches(value, name, "application/json")
                || matches(value, name, "application/problem+json") || matches(value, name, "application/*")
            {
                other = max(other, quality(after: name.upperBound, to: end, in: value))
            }
            start = end + 1
        }
        return html > 0 && html >= other
    }

    /// Without parameters and blanks.
    private static func mediaRange(of element: Range<Int>, in value: Span<UInt8>) -> Range<Int> {
        var lower = element.lowerBound
        while lower < element.upperBound, isBlank(value[lower]) { lower += 1 }
        var upper = lower
        while upper < element.upperBound, value[upper] != UInt8(ascii: ";"), !isBlank(value[upper]) { upper += 1 }
        return lower..<upper
    }

    /// Thousandths; 1000 without a `q`, 0 for one that isn't a number between 0 and 1.
    private static func quality(after lower: Int, to upper: Int, in value: Span<UInt8>) -> Int {
        var index = lower
        while index < upper {
            guard value[index] == UInt8(ascii: ";") else {
                index += 1
                continue
            }
            index += 1
            while index < upper, isBlank(value[index]) { index += 1 }
            if index + 1 < upper, value[index] | 0x20 == UInt8(ascii: "q"), value[index + 1] == UInt8(ascii: "=") {
                return thousandths(from: index + 2, to: upper, in: value)
            }
        }
        return 1000
    }

    private static func thousandths(from lower: Int, to upper: Int, in value: Span<UInt8>) -> Int {
        guard lower < upper, value[lower] == UInt8(ascii: "0") || value[lower] == UInt8(ascii: "1") else { return 0 }
        var result = Int(value[lower] - UInt8(ascii: "0")) * 1000
        guard lower + 1 < upper, value[lower + 1] == UInt8(ascii: ".") else { return result }
        var weight = 100
        var index = lower + 2
        while index < upper, weight > 0, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(value[index]) {
            result += Int(value[index] - UInt8(ascii: "0")) * weight
            weight /= 10
            index += 1
        }
        return min(result, 1000)
    }

    private static func matches(_ value: Span<UInt8>, _ range: Range<Int>, _ lowercase: StaticString) -> Bool {
        guard range.count == lowercase.utf8CodeUnitCount else { return false }
        return lowercase.withUTF8Buffer { expected in
            for offset in 0..<expected.count {
                let byte = value[range.lowerBound + offset]
                let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                if (isUpper ? byte | 0x20 : byte) != expected[offset] { return false }
            }
            return true
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
