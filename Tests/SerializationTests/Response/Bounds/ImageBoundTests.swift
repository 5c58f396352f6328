import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// Small images that would be expensive are refused with the limit that they exceed, before a library decodes them.
@Suite(.timeLimit(.minutes(1))) struct ImageBoundTests {
    // MARK: JPEG

    private func segment(_ marker: UInt8, _ contents: [UInt8]) -> [UInt8] {
        [0xFF, marker] + ImageFiles.bytes(contents.count + 2, 2) + contents
    }

    private func layout(_ bytes: [UInt8]) -> JPEGLayout { bytes.withUnsafeBufferPointer { JPEGLayout($0) } }

    /// A carry out of the segment length's low byte once hid the next frame.
    @Test func aProgressiveFrameIsFoundAfterASegmentOfAnyLength() throws {
        let progressive = ImageFiles.seed("progressive")
        let tooLittle = ImageLimits(memory: 17 * 11 * 8)
        for length in 2...600 {
            let hidden =
                progressive[..<2] + segment(0xE5, Array(repeating: 0xAB, count: length - 2)) + progressive[2...]
            #expect(layout(Array(hidden)).isHeldWhole, "\(length)")
            #expect(explanation(Array(hidden), tooLittle)?.contains("need more memory") == true, "\(length)")
            #expect(explanation(Array(hidden)) == nil, "\(length)")
        }
    }

    /// Stray bytes are skipped, as in libjpeg; a scan's data are too.
    @Test func markersAreFoundAsLibjpegFindsThem() throws {
        let (baseline, progressive) = (ImageFiles.seed("jpeg"), ImageFiles.seed("progressive"))
        #expect(!layout(baseline).isHeldWhole && layout(baseline).scans == 1)
        #expect(layout(progressive).isHeldWhole && layout(progressive).scans == 10)
        #expect(layout(Array(progressive[..<2] + [0x00, 0x12, 0xFF, 0xFF, 0xFF] + progressive[3...])).isHeldWhole)
        // A picture inside a segment doesn't count.
        #expect(!layout(Array(baseline[..<2] + segment(0xE1, progressive) + baseline[2...])).isHeldWhole)
        for length in 0..<progressive.count { _ = layout(Array(progressive[..<length])) }
    }

    /// A first scan with one of three components also makes libjpeg hold the whole image.
    @Test func aBaselineImageOfSeveralScansIsHeldWhole() throws {
        var several = ImageFiles.seed("jpeg")
        let scan = try #require(several.indices.dropLast().last { several[$0] == 0xFF && several[$0 + 1] == 0xDA })
        several[scan + 4] = 1
        #expect(layout(several).isHeldWhole)
    }

    @Test func scansAreCounted() throws {
        #expect(explanation(ImageFiles.jpeg(moreScans: 99)) == "JPEG: 109 scans: the limit is 100")
        #expect(
            explanation(ImageFiles.jpeg(moreScans: 7), ImageLimits(pixels: 17 * 11))
                == "JPEG: 17 scans of 17 x 11 pixels are more than \(16 * 17 * 11) pixels in all")
    }

    // MARK: PNG

    /// 1,150 compressed texts of 8 MB each.
    @Test(arguments: ["zTXt", "iTXt", "iCCP"]) func compressedTextsOfAPNGAreBounded(type: String) throws {
        let text = ImageFiles.chunk(type, Array("k\0\0".utf8) + Array(repeating: 0x55, count: 8_000))
        #expect(
            explanation(ImageFiles.png((0..<34).flatMap { _ in text }))
                == "PNG: its texts may expand to more than \(256 << 20) bytes")
        // Many small ones are normal for a camera.
        let small = ImageFiles.chunk("tEXt", Array("k\0v".utf8))
        #expect(explanation(ImageFiles.png((0..<500).flatMap { _ in small })) == nil)
    }

    @Test func chunksOfAPNGAreCounted() throws {
        let empty = ImageFiles.chunk("tEXt")
        #expect(explanation(ImageFiles.png((0..<70_000).flatMap { _ in empty })) == "PNG: more than 65536 chunks")
    }

    // MARK: Frames

    @Test func framesOfAGIFAreCounted() {
        #expect(explanation(ImageFiles.gif(frames: 1_000)) == nil)
        #expect(explanation(ImageFiles.gif(frames: 10_001)) == "GIF: more than 10000 frames")
    }

    /// libwebp went from the first frame to each of 182,000.
    @Test func framesOfAWebPAreCounted() throws {
        #expect(explanation(ImageFiles.webp(frames: 100)) == nil)
        #expect(explanation(ImageFiles.webp(frames: 10_001)) == "WebP: more than 10000 frames")
        let unknown = ImageFiles.riff("none", [])
        #expect(
            explanation(ImageFiles.riff("RIFF", Array("WEBP".utf8) + (0..<70_000).flatMap { _ in unknown }))
                == "WebP: more than 65536 chunks")
    }

    // MARK: AVIF

    /// libavif looked up each of 364,000 items among all of them.
    @Test func itemsOfAnAVIFAreBounded() {
        #expect(
            explanation(ImageFiles.avif(items: 5_000)) == "AVIF: the tables of its items are longer than 65536 bytes")
        // Several tables are counted together.
        let associations = ImageFiles.box("ipma", [UInt8](repeating: 0, count: 5_000))
        let properties = ImageFiles.box("iprp", (0..<14).flatMap { _ in associations })
        #expect(
            explanation(ImageFiles.avif(ImageFiles.box("meta", [0, 0, 0, 0] + properties)))
                == "AVIF: the tables of its items are longer than 65536 bytes")
    }

    /// An item of many parts that all have the same bytes.
    @Test(arguments: [0, 1, 2]) func partsOfItemsCountEachTime(version: Int) {
        let parts = 5_000
        var location: [UInt8] = [UInt8(version), 0, 0, 0, 0x44, 0]
        location +=
            version < 2
            ? ImageFiles.bytes(1, 2) + ImageFiles.bytes(1, 2) : ImageFiles.bytes(1, 4) + ImageFiles.bytes(1, 4)
        if version > 0 { location += [0, 0] }
        location +=
            [0, 0] + ImageFiles.bytes(parts, 2)
            + (0..<parts).flatMap { _ in ImageFiles.bytes(0, 4) + ImageFiles.bytes(30_000, 4) }
        let file = ImageFiles.avif(
            ImageFiles.box("meta", [0, 0, 0, 0] + ImageFiles.box("iloc", location))
                + ImageFiles.box("mdat", Array(repeating: 0, count: 30_000)))
        #expect(explanation(file) == "AVIF: its items consist of more than \(4 * file.count + 1 << 20) bytes in all")
    }

    @Test(arguments: [("stco", 4), ("co64", 8), ("stsc", 12), ("stts", 8), ("stss", 4), ("stsz", 4)])
    func samplesOfAnAVIFAreBounded(name: String, size: Int) {
        let table = ImageFiles.box(name, [UInt8](repeating: 0, count: 12 + 10_001 * size))
        let track = ImageFiles.box(
            "trak", ImageFiles.box("mdia", ImageFiles.box("minf", ImageFiles.box("stbl", table))))
        #expect(explanation(ImageFiles.avif(ImageFiles.box("moov", track))) == "AVIF: more than 10000 samples")
    }

    @Test func boxesAndTracksAreCounted() {
        let many = (0..<20_000).flatMap { _ in ImageFiles.box("free", []) }
        #expect(explanation(ImageFiles.avif(many)) == "AVIF: more than 16384 boxes")
        let tracks = (0..<17).flatMap { _ in ImageFiles.box("trak", []) }
        #expect(explanation(ImageFiles.avif(ImageFiles.box("moov", tracks))) == "AVIF: more than 16 tracks")
        let nested = (0..<20).reduce([UInt8]()) { inner, _ in ImageFiles.box("moov", inner) }
        #expect(explanation(ImageFiles.avif(nested)) == "AVIF: its boxes are nested more than 8 deep")
    }

    // MARK: XBM

    /// An XBM was once searched with backtracking, and cost an array for each number.
    @Test func aLongXBMIsReadInOnePass() {
        let start = Array("#define a_width 1000\n#define a_height 8000\nstatic char bits[] = {".utf8)
        #expect(explanation(start + (0..<1_000_000).flatMap { _ in Array("1,".utf8) } + Array("}".utf8)) == nil)
        for words in ["#define width", "#define a_width ", "width ", "#define #define\t"] {
            let text = String(repeating: words, count: 250_000 / words.utf8.count)
            #expect(
                explanation(Array("#define ".utf8) + Array(text.utf8)) == "XBM: width or height is not defined",
                "\(words)")
        }
        #expect(
            explanation(Array("#define x_width 8\n#define x_height 1\n{ 0x1ff11 }".utf8))
                == "XBM: its bits contain something else than numbers")
        #expect(
            explanation(Array("#define x_width 8\n#define x_height 1\n{ +5 }".utf8))
                == "XBM: its bits contain something else than numbers")
    }
}
