public import PinproxySerialization

/// An image as a server sent it, and what its decoder found.
public struct LoadedImage: Sendable, Hashable {
    /// The encoded image.
    public let bytes: [UInt8]
    /// The format and the dimensions.
    public let summary: ImageSummary
}

/// Keeps the bytes of an image that can be decoded.
struct LoadedImageSerializer: ResponseSerializer {
    let images: ImageResponseSerializer

    var format: String { images.format }
    var acceptableStatuses: [StatusRange] { images.acceptableStatuses }
    var acceptableContentTypes: [MediaRange]? { images.acceptableContentTypes }

    func value(ofBody body: [UInt8]) throws(BodyDefect) -> LoadedImage? {
        try images.value(ofBody: body).map { LoadedImage(bytes: body, summary: $0) }
    }
}
