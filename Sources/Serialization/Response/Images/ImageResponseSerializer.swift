/// Decodes images: AFImageResponseSerializer. The value says what the image is; its pixels are dropped.
///
/// How the body begins decides the decoder, as in the original: a PNG under `image/gif` is shown by every client.
/// Every frame of an animation and every page is decoded. ICO, BMP and XBM are judged by their headers and lengths.
public struct ImageResponseSerializer: ResponseSerializer {
    /// The original's, and webp and avif.
    public static let contentTypes = [MediaRange].known(
        "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp", "image/x-bmp",
        "image/x-xbitmap", "image/x-win-bitmap", "image/webp", "image/avif")

    public var format: String { "an image" }
    /// 2xx, if nothing else is said.
    public var acceptableStatuses: [StatusRange] = [.success]
    public var acceptableContentTypes: [MediaRange]? = Self.contentTypes
    /// How large an image may be.
    public var limits: ImageLimits

    /// - Parameter limits: beyond them a response is refused before it is decoded.
    public init(limits: ImageLimits = ImageLimits()) { self.limits = limits }

    /// - Returns: nil if the body is empty.
    public func value(ofBody body: [UInt8]) throws(BodyDefect) -> ImageSummary? {
        guard !body.isEmpty else { return nil }
        guard let format = ImageFormat(of: body) else { throw BodyDefect("it begins like no known image format") }
        do {
            return try decode(body, format)
        } catch {
            throw BodyDefect("\(format.rawValue): \(error.explanation)")
        }
    }

    private func decode(_ body: [UInt8], _ format: ImageFormat) throws(ImageDefect) -> ImageSummary {
        switch format {
        case .png: try PNGImage.decode(body, limits)
        case .jpeg: try JPEGImage.decode(body, limits)
        case .gif: try GIFImage.decode(body, limits)
        case .webp: try WebPImage.decode(body, limits)
        case .tiff: try TIFFImage.decode(body, limits)
        case .avif: try AVIFImage.decode(body, limits)
        case .ico: try ICOImage.check(body, limits)
        case .bmp: try BMPImage.check(body, limits)
        case .xbm: try XBMImage.check(body, limits)
        }
    }
}

/// What decoding an image may take.
public struct ImageLimits: Sendable, Hashable {
    /// Of all frames or pages together.
    public var pixels: Int
    /// Bytes that a decoder may need at one time, by the image's dimensions and kind.
    public var memory: Int

    /// See the properties.
    public init(pixels: Int = 64 << 20, memory: Int = 512 << 20) {
        self.pixels = pixels
        self.memory = memory
    }
}

/// What an image is.
public struct ImageSummary: Sendable, Hashable {
    /// What the bytes are, whatever the content type says.
    public let format: ImageFormat
    /// In pixels, of the canvas or the first page.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// Frames of an animation, pages, or sizes of an icon.
    public let frames: Int
}

struct ImageDefect: Error {
    let explanation: String

    init(_ explanation: String) { self.explanation = explanation }

    static let truncated = ImageDefect("it is cut off")
}

/// Counts what decoding has taken of its limits.
struct ImageBudget {
    private let limits: ImageLimits
    private var pixels = 0

    init(_ limits: ImageLimits) { self.limits = limits }

    /// Before a frame is decoded.
    ///
    /// - Parameter bytesPerPixel: memory that its decoder needs.
    mutating func take(width: Int, height: Int, bytesPerPixel: Int) throws(ImageDefect) {
        guard width > 0, height > 0 else { throw ImageDefect("\(width) x \(height) pixels") }
        let (area, overflows) = width.multipliedReportingOverflow(by: height)
        guard !overflows, area <= limits.pixels, pixels + area <= limits.pixels else {
            throw ImageDefect("\(width) x \(height) pixels are too many: the limit is \(limits.pixels) in all")
        }
        guard area * bytesPerPixel <= limits.memory else {
            throw ImageDefect("\(width) x \(height) pixels need more memory than the limit, \(limits.memory) bytes")
        }
        pixels += area
    }
}
