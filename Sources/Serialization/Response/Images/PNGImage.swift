internal import CPinproxyPNG

/// libpng's simplified interface, which reports errors without longjmp. It is loaded with the first image.
enum PNGImage {
    /// Encoders make those of pixels 8 KiB long or longer.
    private static let mostChunks = 1 << 16
    /// Bytes that compressed texts and a colour profile may come to. libpng expands each, to 8 MB at most.
    private static let mostText = 256 << 20

    static var isAvailable: Bool { library != nil }

    private static let library = OptionalLibrary.load(SHIM_PNG_FILE, shim_png(), shim_png_load)

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        guard let library else {
            throw ImageDefect("can't be checked: \(SHIM_PNG_FILE) is not installed (Debian package libpng16-16)")
        }
        try checkChunks(body)
        var image = png_image()
        image.version = png_uint_32(PNG_IMAGE_VERSION)
        defer { library.free(&image) }
        // The body's memory has to stay where it is from the first call to the last.
        return try body.withUnsafeBufferPointer { bytes throws(ImageDefect) in
            guard library.beginReadFromMemory(&image, bytes.baseAddress, bytes.count) != 0 else { throw defect(image) }
            let (width, height) = (Int(image.width), Int(image.height))
            var budget = ImageBudget(limits)
            try budget.take(width: width, height: height, bytesPerPixel: 1)
            // Grey is the least that holds a pixel: whether it can be decoded doesn't depend on it.
            image.format = 0
            let pixels = UnsafeMutableRawPointer.allocate(byteCount: width * height, alignment: 1)
            defer { pixels.deallocate() }
            var background = png_color(red: 0, green: 0, blue: 0)
            guard library.finishRead(&image, &background, pixels, png_int_32(width), nil) != 0 else {
                throw defect(image)
            }
            return ImageSummary(format: .png, width: width, height: height, frames: 1)
        }
    }

    /// libpng stops at the last pixel: whether the file ends as it should is seen here.
    private static func checkChunks(_ body: [UInt8]) throws(ImageDefect) {
        var at = 8
        var (chunks, text) = (0, 0)
        while at + 12 <= body.count {
            let length = body[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
            let type = body[at + 4..<at + 8]
            chunks += 1
            guard chunks <= mostChunks else { throw ImageDefect("more than \(mostChunks) chunks") }
            if ["zTXt", "iTXt", "iCCP"].contains(where: { type.elementsEqual($0.utf8) }) {
                // DEFLATE expands 1032 times at most.
                text += min(1032 * length, 8_000_000)
                guard text <= mostText else { throw ImageDefect("its texts may expand to more than \(mostText) bytes") }
            }
            let isEnd = type.elementsEqual("IEND".utf8)
            at += 12 + length
            if isEnd, at <= body.count { return }
        }
        throw .truncated
    }

    private static func defect(_ image: png_image) -> ImageDefect {
        withUnsafeBytes(of: image.message) {
            ImageDefect(ShownBytes.line(String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)))
        }
    }
}
