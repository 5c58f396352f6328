/// The known image formats, recognized by a file's first bytes.
public enum ImageFormat: String, Sendable, CaseIterable {
    /// ISO/IEC 15948.
    case png = "PNG"
    /// ISO/IEC 10918.
    case jpeg = "JPEG"
    /// GIF87a and GIF89a.
    case gif = "GIF"
    /// RFC 9649.
    case webp = "WebP"
    /// TIFF 6.0.
    case tiff = "TIFF"
    /// AV1 in HEIF.
    case avif = "AVIF"
    /// Icons of Windows.
    case ico = "ICO"
    /// Bitmaps of Windows.
    case bmp = "BMP"
    /// Bitmaps of X.
    case xbm = "XBM"

    /// - Returns: nil if the bytes begin like none of them.
    public init?(of bytes: [UInt8]) {
        func begins(_ start: [UInt8], at offset: Int = 0) -> Bool {
            bytes.count >= offset + start.count && bytes[offset..<offset + start.count].elementsEqual(start)
        }
        func says(_ text: StaticString, at offset: Int = 0) -> Bool {
            begins(text.withUTF8Buffer { Array($0) }, at: offset)
        }
        if begins([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if begins([0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if says("GIF87a") || says("GIF89a") {
            self = .gif
        } else if says("RIFF"), says("WEBP", at: 8) {
            self = .webp
        } else if begins([0x49, 0x49, 42, 0]) || begins([0x4D, 0x4D, 0, 42]) || begins([0x49, 0x49, 43, 0])
            || begins([0x4D, 0x4D, 0, 43])
        {
            self = .tiff
        } else if says("ftyp", at: 4), says("avif", at: 8) || says("avis", at: 8) || says("mif1", at: 8) {
            self = .avif
        } else if begins([0, 0, 1, 0]) || begins([0, 0, 2, 0]) {
            self = .ico
        } else if says("BM") {
            self = .bmp
        } else if says("#define ") || says("/*") {
            self = .xbm
        } else {
            return nil
        }
    }
}
