/// X bitmaps, which are C source: two definitions, and the bytes that these require.
enum XBMImage {
    static func check(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        guard let width = definition("width", in: body), let height = definition("height", in: body) else {
            throw ImageDefect("width or height is not defined")
        }
        var budget = ImageBudget(limits)
        try budget.take(width: width, height: height, bytesPerPixel: 1)
        guard let start = body.firstIndex(of: UInt8(ascii: "{")) else { throw ImageDefect("it has no bits") }
        guard let end = body[start...].firstIndex(of: UInt8(ascii: "}")) else { throw .truncated }
        let count = try countNumbers(body[start + 1..<end])
        // X10 has 16 bits in a number.
        let perRow = (width + 7) / 8
        guard count >= perRow * height || count >= (width + 15) / 16 * height else { throw .truncated }
        return ImageSummary(format: .xbm, width: width, height: height, frames: 1)
    }

    /// The number in the first line `#define NAME_width 10`.
    private static func definition(_ name: String, in body: [UInt8]) -> Int? {
        // How many words of the line were found.
        var found = 0
        for word in Words(body) {
            switch found {
            case 1 where word.ends(with: name): found = 2
            case 2
            where word.count <= 9 && word.allSatisfy { (0x30...0x39).contains($0) } && word.endIndex < body.count:
                return word.reduce(0) { 10 * $0 + Int($1 - 0x30) }
            default: found = word.ends(with: "#define") ? 1 : 0
            }
        }
        return nil
    }

    /// The words between white space.
    private struct Words: Sequence, IteratorProtocol {
        private let body: [UInt8]
        private var at = 0

        init(_ body: [UInt8]) { self.body = body }

        mutating func next() -> ArraySlice<UInt8>? {
            while at < body.count, body[at].isCSpace { at += 1 }
            guard at < body.count else { return nil }
            let start = at
            while at < body.count, !body[at].isCSpace { at += 1 }
            return body[start..<at]
        }
    }

    /// Counts numbers between commas. A comma may follow the last.
    private static func countNumbers(_ bits: ArraySlice<UInt8>) throws(ImageDefect) -> Int {
        var count = 0
        var number: [UInt8] = []
        for byte in bits {
            if byte == UInt8(ascii: ",") {
                try check(number)
                count += 1
                number.removeAll(keepingCapacity: true)
            } else if !byte.isCSpace {
                number.append(byte)
            }
        }
        guard !number.isEmpty else { return count }
        try check(number)
        return count + 1
    }

    private static func check(_ number: [UInt8]) throws(ImageDefect) {
        let isHexadecimal = number.starts(with: "0x".utf8) || number.starts(with: "0X".utf8)
        let digits = isHexadecimal ? number.dropFirst(2) : number[...]
        guard (1...(isHexadecimal ? 4 : 5)).contains(digits.count), Hexadecimal.digit(digits[digits.startIndex]) != nil,
            UInt16(String(decoding: digits, as: UTF8.self), radix: isHexadecimal ? 16 : 10) != nil
        else { throw ImageDefect("its bits contain something else than numbers") }
    }
}

extension UInt8 {
    fileprivate var isCSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}

extension ArraySlice<UInt8> {
    fileprivate func ends(with text: String) -> Bool {
        count >= text.utf8.count && suffix(text.utf8.count).elementsEqual(text.utf8)
    }
}
