internal import CPinproxyTurboJPEG

/// libjpeg-turbo. It is loaded with the first image.
enum JPEGImage {
    /// Encoders make ten of a progressive image, and those that look for the best order some more.
    private static let mostScans = 100
    /// Most pixels of all scans together, as a multiple of an image's limit.
    private static let mostPasses = 16

    static var isAvailable: Bool { library != nil }

    private static let library = OptionalLibrary.load(SHIM_JPEG_FILE, shim_jpeg(), shim_jpeg_load)

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        guard let library else {
            throw ImageDefect("can't be checked: \(SHIM_JPEG_FILE) is not installed (Debian package libturbojpeg0)")
        }
        guard let decoder = library.initDecompress() else { throw ImageDefect("no memory for a decoder") }
        defer { _ = library.destroy(decoder) }
        return try body.withUnsafeBufferPointer { bytes throws(ImageDefect) in
            try decode(bytes, decoder, library, limits)
        }
    }

    private static func decode(
        _ bytes: UnsafeBufferPointer<UInt8>, _ decoder: tjhandle, _ library: shim_jpeg, _ limits: ImageLimits
    ) throws(ImageDefect) -> ImageSummary {
        var (width, height, subsampling, colours): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard
            library.decompressHeader3(
                decoder, bytes.baseAddress, UInt(bytes.count), &width, &height, &subsampling, &colours) == 0
        else { throw defect(decoder, library) }
        let layout = JPEGLayout(bytes)
        guard layout.scans <= mostScans else { throw ImageDefect("\(layout.scans) scans: the limit is \(mostScans)") }
        let isFourColours = colours == TJCS_CMYK.rawValue || colours == TJCS_YCCK.rawValue
        let pixelSize = isFourColours ? 4 : 1
        var budget = ImageBudget(limits)
        // A decoder that holds the whole image has two bytes for each coefficient of at most four components.
        try budget.take(width: Int(width), height: Int(height), bytesPerPixel: pixelSize + (layout.isHeldWhole ? 8 : 0))
        let area = Int(width) * Int(height)
        guard area * layout.scans <= mostPasses * limits.pixels else {
            throw ImageDefect(
                """
                \(layout.scans) scans of \(width) x \(height) pixels are more than \(mostPasses * limits.pixels) \
                pixels in all
                """
            )
        }
        let pixels = UnsafeMutablePointer<UInt8>.allocate(capacity: pixelSize * area)
        defer { pixels.deallocate() }
        let result = library.decompress2(
            decoder, bytes.baseAddress, UInt(bytes.count), pixels, width, 0, height,
            (isFourColours ? TJPF_CMYK : TJPF_GRAY).rawValue, TJFLAG_LIMITSCANS | TJFLAG_FASTDCT)
        try check(result, decoder, library)
        return ImageSummary(format: .jpeg, width: Int(width), height: Int(height), frames: 1)
    }

    /// A warning means a missing or wrong part of the image, but not extra bytes between parts, as cameras leave them.
    private static func check(_ result: Int32, _ decoder: tjhandle, _ library: shim_jpeg) throws(ImageDefect) {
        guard result != 0 else { return }
        let defect = defect(decoder, library)
        guard library.getErrorCode(decoder) == TJERR_WARNING.rawValue, defect.explanation.contains("extraneous bytes")
        else { throw defect }
    }

    private static func defect(_ decoder: tjhandle, _ library: shim_jpeg) -> ImageDefect {
        ImageDefect(library.getErrorStr2(decoder).map { ShownBytes.line(String(cString: $0)) } ?? "damaged")
    }
}
