/// Decodes images: AFImageResponseSerializer. The value describes the image, without its pixels.
///
/// The body's first bytes choose the decoder, not its type. Every frame and page is decoded; ICO, BMP and XBM are
/// judged by headers and lengths.
public struct ImageResponseSerializer: ResponseSerializer {
    /// The content types of AFNetworking, and webp and avif.
    public static let contentTypes = [MediaRange].known(
        "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp", "image/x-bmp",
        "image/x-xbitmap", "image/x-win-bitmap", "image/webp", "image/avif")

    public var format: String { "an image" }
    /// The accepted statuses; 2xx by default.
    public var acceptableStatuses: [StatusRange] = [.success]
    public var acceptableContentTypes: [MediaRange]? = Self.contentTypes
    /// The limits of an image's size.
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
