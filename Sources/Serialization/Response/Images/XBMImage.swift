/// X bitmaps, which are C: two definitions, and as many bytes as they ask for.
enum XBMImage {
    static func check(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        let text = String(decoding: body, as: UTF8.self)
        guard let width = text.firstMatch(of: /#define\s+\S*width\s+(\d{1,9})\s/).flatMap({ Int($0.1) }),
            let height = text.firstMatch(of: /#define\s+\S*height\s+(\d{1,9})\s/).flatMap({ Int($0.1) })
        else { throw ImageDefect("width or height is not defined") }
        var budget = ImageBudget(limits)
        try budget.take(width: width, height: height, bytesPerPixel: 1)
        guard let start = body.firstIndex(of: UInt8(ascii: "{")) else { throw ImageDefect("it has no bits") }
        guard let end = body[start...].firstIndex(of: UInt8(ascii: "}")) else { throw .truncated }
        let numbers = body[start + 1..<end].split(separator: UInt8(ascii: ",")).map { number in
            number.filter { !($0 == 0x20 || (0x09...0x0D).contains($0)) }
        }
        let bytes = numbers.last?.isEmpty == true ? numbers.dropLast() : numbers[...]
        guard bytes.allSatisfy(isNumber) else { throw ImageDefect("its bits contain something else than numbers") }
        // X10 has 16 bits in a number.
        let perRow = (width + 7) / 8
        guard bytes.count >= perRow * height || bytes.count >= (width + 15) / 16 * height else { throw .truncated }
        return ImageSummary(format: .xbm, width: width, height: height, frames: 1)
    }

    private static func isNumber(_ text: [UInt8]) -> Bool {
        if text.starts(with: "0x".utf8) || text.starts(with: "0X".utf8) {
            return (3...6).contains(text.count) && UInt16(String(decoding: text.dropFirst(2), as: UTF8.self), radix: 16) != nil
        }
        return UInt16(String(decoding: text, as: UTF8.self)) != nil
    }
}
