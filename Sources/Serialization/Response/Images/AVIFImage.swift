internal import CPinproxyAVIF

/// libavif: every frame, by one thread. It is loaded with the first image.
enum AVIFImage {
    static var isAvailable: Bool { library != nil }

    /// Debian's package of the library.
    static let package = SHIM_AVIF_PACKAGE

    private static let library = OptionalLibrary.load(SHIM_AVIF_FILE, shim_avif(), shim_avif_load)

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        try body.withUnsafeBufferPointer { bytes throws(ImageDefect) in try decode(bytes, limits) }
    }

    private static func decode(
        _ bytes: UnsafeBufferPointer<UInt8>, _ limits: ImageLimits
    ) throws(ImageDefect) -> ImageSummary {
        guard let library else {
            throw ImageDefect("can't be checked: \(SHIM_AVIF_FILE) is not installed (Debian package \(package))")
        }
        try AVIFLayout.check(bytes)
        guard let decoder = library.decoderCreate() else { throw ImageDefect("no memory for a decoder") }
        defer { library.decoderDestroy(decoder) }
        decoder.pointee.maxThreads = 1
        // Planes of two bytes and of full size, each twice: in the codec and here.
        let most = min(limits.pixels, limits.memory / 16)
        decoder.pointee.imageSizeLimit = UInt32(clamping: min(most, Int(AVIF_DEFAULT_IMAGE_SIZE_LIMIT)))
        decoder.pointee.imageCountLimit = UInt32(AVIFLayout.mostSamples)
        decoder.pointee.ignoreExif = AVIF_TRUE
        decoder.pointee.ignoreXMP = AVIF_TRUE
        try check(library.decoderSetIOMemory(decoder, bytes.baseAddress, bytes.count), decoder, library)
        try check(library.decoderParse(decoder), decoder, library)
        guard let image = decoder.pointee.image else { throw ImageDefect("damaged") }
        let (width, height) = (Int(image.pointee.width), Int(image.pointee.height))
        var budget = ImageBudget(limits)
        var frames = 0
        for _ in 0..<max(decoder.pointee.imageCount, 1) {
            try budget.take(width: width, height: height, bytesPerPixel: 16)
            try check(library.decoderNextImage(decoder), decoder, library)
            frames += 1
        }
        return ImageSummary(format: .avif, width: width, height: height, frames: frames)
    }

    private static func check(
        _ result: avifResult, _ decoder: UnsafeMutablePointer<avifDecoder>, _ library: shim_avif
    ) throws(ImageDefect) {
        guard result != AVIF_RESULT_OK else { return }
        if result == AVIF_RESULT_TRUNCATED_DATA { throw .truncated }
        let detail = withUnsafeBytes(of: decoder.pointee.diag.error) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        let name = library.resultToString(result).map { String(cString: $0) } ?? "error \(result.rawValue)"
        throw ImageDefect(ShownBytes.line(detail.isEmpty ? name : "\(name): \(detail)"))
    }
}
