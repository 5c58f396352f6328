/// The cost of decoding strips and tiles of all pages, which may exceed their page and share bytes.
struct TIFFStripBudget {
    /// Each strip starts its decoder again. A tile has 256 pixels or more.
    private static let mostStrips = ImageLimits().pixels / 256
    /// Pixels on a side of a tile that is larger than its page. Those of small overviews are as large as the others.
    private static let longestTile = 4096

    private let memory: Int
    private let mostStored: Int
    private var count = 0
    private var decoded = 0
    private var stored = 0

    /// - Parameter length: of the file.
    init(_ limits: ImageLimits, length: Int) {
        memory = limits.memory
        mostStored = TIFFLayout.mostShared(of: length)
    }

    func check(tile: (width: Int, height: Int), of page: (width: Int, height: Int)) throws(ImageDefect) {
        // Sides of tiles are multiples of 16.
        guard tile.width <= max(Self.longestTile, page.width + 15),
            tile.height <= max(Self.longestTile, page.height + 15)
        else {
            throw ImageDefect(
                "a tile of \(tile.width) x \(tile.height) pixels in a page of \(page.width) x \(page.height)")
        }
    }

    /// Before those of a page are decoded.
    mutating func take(_ more: Int, ofSize size: Int) throws(ImageDefect) {
        count += more
        guard count <= Self.mostStrips else { throw ImageDefect("more than \(Self.mostStrips) strips or tiles") }
        let (bytes, overflows) = size.multipliedReportingOverflow(by: more)
        guard !overflows, bytes <= memory - decoded else {
            throw ImageDefect("its strips or tiles are more than \(memory) bytes in all when they are decoded")
        }
        decoded += bytes
    }

    /// Before one is read.
    mutating func take(stored bytes: UInt64) throws(ImageDefect) {
        // Bytes beyond the end can't be read.
        stored += Int(clamping: min(bytes, UInt64(mostStored) + 1))
        guard stored <= mostStored else {
            throw ImageDefect("its strips or tiles refer to more than \(mostStored) bytes in all")
        }
    }
}
