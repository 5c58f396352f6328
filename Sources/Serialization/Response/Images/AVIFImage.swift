internal import CAVIF

/// libavif: every frame, by one thread.
enum AVIFImage {
    private static let mostFrames: UInt32 = 10_000

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        let result = body.withUnsafeBufferPointer { bytes -> Result<ImageSummary, ImageDefect> in
            do throws(ImageDefect) { return .success(try decode(bytes, limits)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private static func decode(_ bytes: UnsafeBufferPointer<UInt8>, _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        guard let decoder = avifDecoderCreate() else { throw ImageDefect("no memory for a decoder") }
        defer { avifDecoderDestroy(decoder) }
        decoder.pointee.maxThreads = 1
        // Planes of two bytes and of full size, each twice: in the codec and here.
        let most = min(limits.pixels, limits.memory / 16)
        decoder.pointee.imageSizeLimit = UInt32(clamping: min(most, Int(AVIF_DEFAULT_IMAGE_SIZE_LIMIT)))
        decoder.pointee.imageCountLimit = mostFrames
        decoder.pointee.ignoreExif = AVIF_TRUE
        decoder.pointee.ignoreXMP = AVIF_TRUE
        try check(avifDecoderSetIOMemory(decoder, bytes.baseAddress, bytes.count), decoder)
        try check(avifDecoderParse(decoder), decoder)
        guard let image = decoder.pointee.image else { throw ImageDefect("damaged") }
        let (width, height) = (Int(image.pointee.width), Int(image.pointee.height))
        var budget = ImageBudget(limits)
        var frames = 0
        for _ in 0..<max(decoder.pointee.imageCount, 1) {
            try budget.take(width: width, height: height, bytesPerPixel: 16)
            try check(avifDecoderNextImage(decoder), decoder)
            frames += 1
        }
        return ImageSummary(format: .avif, width: width, height: height, frames: frames)
    }

    private static func check(_ result: avifResult, _ decoder: UnsafeMutablePointer<avifDecoder>) throws(ImageDefect) {
        guard result != AVIF_RESULT_OK else { return }
        if result == AVIF_RESULT_TRUNCATED_DATA { throw .truncated }
        let detail = withUnsafeBytes(of: decoder.pointee.diag.error) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let name = String(cString: avifResultToString(result))
        throw ImageDefect(ShownBytes.line(detail.isEmpty ? name : "\(name): \(detail)"))
    }
}
