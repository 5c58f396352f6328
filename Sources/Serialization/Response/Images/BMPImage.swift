/// Windows bitmaps: the headers, and that the pixels which they promise are there.
enum BMPImage {
    /// BITMAPCOREHEADER, OS/2's of two lengths, BITMAPINFOHEADER and its successors.
    private static let headerSizes: Set<Int> = [12, 16, 40, 52, 56, 64, 108, 124]

    static func check(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        let reader = LittleEndianReader(body)
        let pixels = try reader.long(10)
        let headerSize = try reader.long(14)
        guard headerSizes.contains(headerSize) else {
            throw ImageDefect("its header has an unknown length, \(headerSize)")
        }
        let isCore = headerSize == 12
        let width = try isCore ? reader.word(18) : reader.signedLong(18)
        let height = abs(try isCore ? reader.word(20) : reader.signedLong(22))
        let bits = try reader.word(isCore ? 24 : 28)
        let compression = try isCore || headerSize == 16 ? 0 : reader.long(30)
        guard [1, 2, 4, 8, 16, 24, 32].contains(bits) else { throw ImageDefect("\(bits) bits a pixel") }
        var budget = ImageBudget(limits)
        try budget.take(width: width, height: height, bytesPerPixel: 1)
        guard pixels >= 14 + headerSize, pixels < body.count else { throw .truncated }
        // Uncompressed, or bit fields; the length of others isn't known without decoding.
        if compression == 0 || compression == 3 {
            let row = (width * bits + 31) / 32 * 4
            guard pixels + row * height <= body.count else { throw .truncated }
        } else if compression > 13 {
            throw ImageDefect("its compression is unknown, \(compression)")
        }
        return ImageSummary(format: .bmp, width: width, height: height, frames: 1)
    }
}
