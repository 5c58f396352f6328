/// Limits for decoding an image.
public struct ImageLimits: Sendable, Hashable {
    /// Most pixels of all frames or pages together.
    public var pixels: Int
    /// Bytes that a decoder may need at one time, by the image's dimensions and kind.
    public var memory: Int

    /// See the properties.
    public init(pixels: Int = 64 << 20, memory: Int = 512 << 20) {
        self.pixels = pixels
        self.memory = memory
    }
}

/// The format and size of an image.
public struct ImageSummary: Sendable, Hashable {
    /// The format of the bytes, whatever the content type says.
    public let format: ImageFormat
    /// The width of the canvas or the first page, in pixels.
    public let width: Int
    /// The height in pixels.
    public let height: Int
    /// Frames of an animation, pages, or sizes of an icon.
    public let frames: Int
}

struct ImageDefect: Error {
    let explanation: String

    init(_ explanation: String) { self.explanation = explanation }

    static let truncated = ImageDefect("it is cut off")
}

struct ImageBudget {
    private let limits: ImageLimits
    private var pixels = 0

    init(_ limits: ImageLimits) { self.limits = limits }

    /// The canvas of frames that may cover only a part of it: clients allocate all of it.
    func check(canvas width: Int, _ height: Int) throws(ImageDefect) {
        guard width > 0, height > 0 else { throw ImageDefect("a canvas of \(width) x \(height) pixels") }
        let (area, overflows) = width.multipliedReportingOverflow(by: height)
        guard !overflows, area <= limits.pixels else {
            throw ImageDefect(
                "the \(width) x \(height) pixels of its canvas are too many: the limit is \(limits.pixels)")
        }
    }

    /// Before a frame is decoded. `bytesPerPixel` is the memory that its decoder needs.
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
