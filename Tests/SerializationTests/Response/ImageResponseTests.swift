import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

@Suite struct ImageResponseTests {
    private func defect(in body: [UInt8], _ limits: ImageLimits = ImageLimits()) -> BodyDefect? {
        caught { () throws(BodyDefect) in try ImageResponseSerializer(limits: limits).check(body: body) }
    }

    @Test(arguments: ImageSeeds.all) func decodes(_ seed: ImageSeeds.Seed) throws {
        #expect(try ImageResponseSerializer().value(ofBody: seed.bytes) == seed.summary)
    }

    @Test(arguments: ImageSeeds.all) func refusesWhatIsCutOff(_ seed: ImageSeeds.Seed) {
        for length in Array(stride(from: 1, to: seed.bytes.count, by: 64)) + [seed.bytes.count - 4] {
            #expect(defect(in: Array(seed.bytes[..<length])) != nil, "\(length) of \(seed.bytes.count)")
        }
    }

    @Test(arguments: ImageSeeds.all) func survivesDamage(_ seed: ImageSeeds.Seed) {
        var random = SeededGenerator(seed: 8)
        let limits = ImageLimits(pixels: 1 << 16, memory: 4 << 20)
        var refused = 0
        // The same each time; `make fuzz TARGET=image` searches for others.
        for _ in 0..<2_000 where defect(in: seed.bytes.mutated(by: &random), limits) != nil { refused += 1 }
        #expect(refused > 10)
    }

    @Test(arguments: ImageSeeds.all) func boundsPixels(_ seed: ImageSeeds.Seed) throws {
        let pixels =
            seed.summary.width * seed.summary.height * (seed.name == "webpAnimation" || seed.name == "gif" ? 2 : 1)
        guard seed.name != "ico" else { return }
        #expect(defect(in: seed.bytes, ImageLimits(pixels: pixels)) == nil)
        let found = try #require(defect(in: seed.bytes, ImageLimits(pixels: pixels - 1)))
        #expect(seed.name == "avif" || found.explanation.contains("are too many"), "\(found)")
    }

    @Test(arguments: ["png", "jpeg", "progressive", "webpLossless", "avif", "tiffDeflate"]) func boundsMemory(
        _ name: String
    ) throws {
        let seed = try #require(ImageSeeds.all.first { $0.name == name })
        #expect(defect(in: seed.bytes, ImageLimits(memory: 16)) != nil)
    }

    /// 30,000 × 30,000 pixels are refused before any is decoded.
    @Test func refusesPNGBombs() throws {
        var bomb = try #require(ImageSeeds.all.first { $0.name == "png" }).bytes
        bomb.replaceSubrange(16..<24, with: [0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30])
        let crc = ImageFiles.crc32(bomb[12..<29])
        bomb.replaceSubrange(29..<33, with: (0..<4).map { UInt8(truncatingIfNeeded: crc >> (24 - 8 * $0)) })
        #expect(defect(in: bomb)?.explanation == "PNG: 30000 x 30000 pixels are too many: the limit is 67108864 in all")
    }

    /// A frame of few pixels on a canvas that costs a client gigabytes.
    @Test func refusesCanvasBombs() {
        var gif = ImageFiles.gif(frames: 1)
        #expect(defect(in: gif) == nil)
        gif.replaceSubrange(6..<10, with: [0xFF, 0xFF, 0xFF, 0xFF])
        #expect(
            defect(in: gif)?.explanation
                == "GIF: the 65535 x 65535 pixels of its canvas are too many: the limit is 67108864")
        var webp = ImageFiles.webp(frames: 1)
        #expect(defect(in: webp) == nil)
        webp.replaceSubrange(24..<30, with: [0xFF, 0xFF, 0, 0xFF, 0x0F, 0])
        #expect(
            defect(in: webp)?.explanation
                == "WebP: the 65536 x 4096 pixels of its canvas are too many: the limit is 67108864")
    }

    @Test func saysWhatIsWrong() throws {
        func seed(_ name: String) throws -> [UInt8] { try #require(ImageSeeds.all.first { $0.name == name }).bytes }
        var png = try seed("png")
        png[png.count - 14] ^= 0xFF
        #expect(
            defect(in: png)?.explanation.hasPrefix("PNG: IDAT: CRC error") == true,
            "\(String(describing: defect(in: png)))")
        #expect(defect(in: Array(try seed("png").dropLast(20)))?.explanation == "PNG: it is cut off")
        #expect(defect(in: Array(try seed("jpeg").dropLast(40)))?.explanation == "JPEG: Premature end of JPEG file")
        #expect(defect(in: Array(try seed("gif").dropLast(10)))?.explanation == "GIF: it is cut off")
        #expect(defect(in: Array(try seed("webpLossy").dropLast(10)))?.explanation.hasPrefix("WebP: ") == true)
        #expect(defect(in: Array("<html>".utf8))?.explanation == "it begins like no known image format")
        #expect(defect(in: Array("<svg/>".utf8)) != nil)
        #expect(defect(in: [0x20]) != nil)
    }
}
