internal import CPinproxyWebP

/// libwebp: a still image, or each frame of an animation. It is loaded with the first image.
enum WebPImage {
    static var isAvailable: Bool { library != nil }

    private static let library = OptionalLibrary.load(SHIM_WEBP_FILE, shim_webp(), shim_webp_load)

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        try body.withUnsafeBufferPointer { bytes throws(ImageDefect) in try decode(bytes, limits) }
    }

    private static func decode(
        _ bytes: UnsafeBufferPointer<UInt8>, _ limits: ImageLimits
    ) throws(ImageDefect) -> ImageSummary {
        guard var library else {
            throw ImageDefect("can't be checked: \(SHIM_WEBP_FILE) is not installed (Debian package libwebpdemux2)")
        }
        try WebPLayout.check(bytes)
        var data = WebPData(bytes: bytes.baseAddress, size: bytes.count)
        guard let container = shim_webp_demux(&library, &data) else {
            throw ImageDefect("its parts are damaged or cut off")
        }
        defer { library.demuxDelete(container) }
        var budget = ImageBudget(limits)
        let width = Int(library.demuxGetI(container, WEBP_FF_CANVAS_WIDTH))
        let height = Int(library.demuxGetI(container, WEBP_FF_CANVAS_HEIGHT))
        try budget.check(canvas: width, height)
        var frame = WebPIterator()
        guard library.demuxGetFrame(container, 1, &frame) != 0 else { throw ImageDefect("it has no frame") }
        defer { library.demuxReleaseIterator(&frame) }
        var frames = 0
        repeat {
            guard frame.complete != 0 else { throw .truncated }
            try decode(frame.fragment, &library, &budget)
            frames += 1
        } while library.demuxNextFrame(&frame) != 0
        return ImageSummary(format: .webp, width: width, height: height, frames: frames)
    }

    private static func decode(
        _ fragment: WebPData, _ library: inout shim_webp, _ budget: inout ImageBudget
    ) throws(ImageDefect) {
        var config = WebPDecoderConfig()
        guard shim_webp_init(&library, &config) != 0 else {
            throw ImageDefect("another version of libwebp is installed")
        }
        try check(shim_webp_features(&library, fragment.bytes, fragment.size, &config.input))
        // The output, and as much again within the decoder for a lossless image.
        try budget.take(width: Int(config.input.width), height: Int(config.input.height), bytesPerPixel: 8)
        config.output.colorspace = MODE_RGBA
        defer { library.freeDecBuffer(&config.output) }
        try check(library.decode(fragment.bytes, fragment.size, &config))
    }

    private static func check(_ status: VP8StatusCode) throws(ImageDefect) {
        switch status {
        case VP8_STATUS_OK: return
        case VP8_STATUS_NOT_ENOUGH_DATA, VP8_STATUS_SUSPENDED: throw .truncated
        case VP8_STATUS_BITSTREAM_ERROR: throw ImageDefect("its bit stream is damaged")
        case VP8_STATUS_UNSUPPORTED_FEATURE: throw ImageDefect("it uses what libwebp doesn't support")
        case VP8_STATUS_OUT_OF_MEMORY: throw ImageDefect("no memory to decode it")
        default: throw ImageDefect("libwebp refuses it, code \(status.rawValue)")
        }
    }
}
