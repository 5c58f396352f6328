internal import CTurboJPEG
internal import Glibc

/// libjpeg-turbo. It is loaded with the first image.
enum JPEGImage {
    /// Nil if the library isn't there.
    private static let library: shim_jpeg? = {
        var functions = shim_jpeg()
        guard let handle = dlopen(SHIM_JPEG_FILE, RTLD_NOW | RTLD_LOCAL), shim_jpeg_load(handle, &functions) else { return nil }
        return functions
    }()

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        guard let library else { throw ImageDefect("can't be judged: \(SHIM_JPEG_FILE) is not installed (Debian package libturbojpeg0)") }
        guard let decoder = library.initDecompress() else { throw ImageDefect("no memory for a decoder") }
        defer { _ = library.destroy(decoder) }
        let result = body.withUnsafeBufferPointer { bytes -> Result<ImageSummary, ImageDefect> in
            do throws(ImageDefect) { return .success(try decode(bytes, decoder, library, limits)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private static func decode(
        _ bytes: UnsafeBufferPointer<UInt8>, _ decoder: tjhandle, _ library: shim_jpeg, _ limits: ImageLimits
    ) throws(ImageDefect) -> ImageSummary {
        var (width, height, subsampling, colours): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard library.decompressHeader3(decoder, bytes.baseAddress, UInt(bytes.count), &width, &height, &subsampling, &colours) == 0
        else { throw defect(decoder, library) }
        var budget = ImageBudget(limits)
        // A progressive image is held whole, as coefficients of two bytes for each of at most four components.
        try budget.take(width: Int(width), height: Int(height), bytesPerPixel: isProgressive(bytes) ? 9 : 1)
        let pixels = UnsafeMutablePointer<UInt8>.allocate(capacity: Int(width) * Int(height))
        defer { pixels.deallocate() }
        // Scans without end would cost time without end.
        let flags = TJFLAG_LIMITSCANS | TJFLAG_FASTDCT
        let pixelFormat = colours == TJCS_CMYK.rawValue || colours == TJCS_YCCK.rawValue ? TJPF_CMYK : TJPF_GRAY
        if pixelFormat == TJPF_CMYK {
            let four = UnsafeMutablePointer<UInt8>.allocate(capacity: 4 * Int(width) * Int(height))
            defer { four.deallocate() }
            let result = library.decompress2(
                decoder, bytes.baseAddress, UInt(bytes.count), four, width, 0, height, pixelFormat.rawValue, flags)
            try check(result, decoder, library)
        } else {
            let result = library.decompress2(
                decoder, bytes.baseAddress, UInt(bytes.count), pixels, width, 0, height, pixelFormat.rawValue, flags)
            try check(result, decoder, library)
        }
        return ImageSummary(format: .jpeg, width: Int(width), height: Int(height), frames: 1)
    }

    /// A warning is a part of the image that is missing or wrong; bytes too many between two parts are not: cameras
    /// leave them.
    private static func check(_ result: Int32, _ decoder: tjhandle, _ library: shim_jpeg) throws(ImageDefect) {
        guard result != 0 else { return }
        let defect = defect(decoder, library)
        guard library.getErrorCode(decoder) == TJERR_WARNING.rawValue, defect.explanation.contains("extraneous bytes") else { throw defect }
    }

    private static func defect(_ decoder: tjhandle, _ library: shim_jpeg) -> ImageDefect {
        ImageDefect(library.getErrorStr2(decoder).map { ShownBytes.line(String(cString: $0)) } ?? "damaged")
    }

    /// By the marker of the frame: SOF2, SOF6, SOF10 or SOF14 (ITU-T T.81, table B.1).
    private static func isProgressive(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var at = 2
        while at + 4 <= bytes.count, bytes[at] == 0xFF {
            let marker = bytes[at + 1]
            switch marker {
            case 0xFF: at += 1
            case 0x01, 0xD0...0xD8: at += 2
            case 0xC2, 0xC6, 0xCA, 0xCE: return true
            case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF, 0xDA: return false
            default: at += 2 + Int(bytes[at + 2]) << 8 | Int(bytes[at + 3])
            }
        }
        // It isn't clear: the dearer.
        return true
    }
}
