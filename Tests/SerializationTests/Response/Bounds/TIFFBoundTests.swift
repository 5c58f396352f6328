import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// A TIFF is refused if its directories, strips and tiles cost more than its length suggests. The error names the
/// limit.
@Suite(.timeLimit(.minutes(1))) struct TIFFBoundTests {
    /// A page of the given size, a byte per pixel by default, uncompressed in one strip.
    private func page(
        width: Int, height: Int, compression: Int = 1, stored: Int, samples: Int = 1, bits: Int = 8
    ) -> [ImageFiles.Tag] {
        [
            (256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, bits), (259, 3, 1, compression), (262, 3, 1, 1),
            (273, 4, 1, 8),
            (277, 3, 1, samples), (278, 4, 1, height), (279, 4, 1, stored), (284, 3, 1, 1),
        ]
    }

    @Test func pagesOfATIFFAreRead() {
        #expect(
            explanation(
                ImageFiles.tiff(Array(repeating: 7, count: 64), pages: 3, page(width: 8, height: 8, stored: 64))) == nil
        )
        #expect(
            explanation(ImageFiles.tiff([7], pages: 1_001, page(width: 1, height: 1, stored: 1)))
                == "TIFF: more than 1000 pages")
    }

    /// A tile of 512 MiB in a page of one pixel, decoded for each of a thousand pages.
    @Test func aTileIsNotMuchLargerThanItsPage() {
        let tags = ImageFiles.tiled(side: (width: 32_768, height: 16_384))
        #expect(
            explanation(ImageFiles.tiff(Array(repeating: 0, count: 8), pages: 1_000, tags))
                == "TIFF: a tile of 32768 x 16384 pixels in a page of 1 x 1")
    }

    /// Shared data is read and decoded for each page.
    @Test func sharedStripsCountForEachPage() {
        let data = [UInt8](repeating: 0, count: 600_000)
        let shared = ImageFiles.tiff(data, pages: 100, page(width: 1_000, height: 600, stored: data.count))
        let most = 4 * shared.count + 1 << 20
        #expect(explanation(shared) == "TIFF: its strips or tiles refer to more than \(most) bytes in all")
        let heavy = ImageFiles.tiff(data, pages: 3, page(width: 1_000, height: 75, stored: data.count, bits: 64))
        #expect(explanation(heavy) == nil)
        #expect(
            explanation(heavy, ImageLimits(memory: 1_500_000))
                == "TIFF: its strips or tiles are more than 1500000 bytes in all when they are decoded")
    }

    @Test func stripsAreCounted() {
        let count = 262_145
        let data =
            (0..<count).flatMap { _ in ImageFiles.littleEndian(8, 4) }
            + (0..<count).flatMap { _ in ImageFiles.littleEndian(1, 4) }
        let tags: [ImageFiles.Tag] = [
            (256, 4, 1, 1), (257, 4, 1, count), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, count, 8),
            (277, 3, 1, 1),
            (278, 4, 1, 1), (279, 4, count, 8 + 4 * count), (284, 3, 1, 1),
        ]
        #expect(explanation(ImageFiles.tiff(data, pages: 1, tags)) == "TIFF: more than 262144 strips or tiles")
    }

    /// Each page has the same description; each unknown tag makes libtiff sort all previous tags.
    @Test func tagsAreBounded() {
        let text = [UInt8](repeating: 0x41, count: 100_000)
        let described = ImageFiles.tiff(
            text, pages: 100, page(width: 1, height: 1, stored: 1) + [(270, 2, text.count, 8)])
        #expect(explanation(described)?.contains("its tags refer to more than") == true)
        func unknown(_ count: Int) -> [ImageFiles.Tag] { (0..<count).map { (1_000 + $0, 1, 1, 0) } }
        #expect(explanation(ImageFiles.tiff([7], pages: 1, page(width: 1, height: 1, stored: 1) + unknown(100))) == nil)
        #expect(
            explanation(ImageFiles.tiff([7], pages: 1, page(width: 1, height: 1, stored: 1) + unknown(4_000)))
                == "TIFF: a page has 4010 tags: the limit is 512")
        // The next directory begins within this one.
        var overlapping = Array("II*\0".utf8) + ImageFiles.littleEndian(8, 4) + ImageFiles.littleEndian(500, 2)
        for index in 0..<500 {
            overlapping +=
                ImageFiles.littleEndian(index, 2) + ImageFiles.littleEndian(1, 2) + ImageFiles.littleEndian(1, 4)
                + ImageFiles.littleEndian(0, 4)
        }
        overlapping += ImageFiles.littleEndian(8, 4)
        #expect(explanation(overlapping)?.contains("its tags refer to more than") == true)
    }

    /// BigTIFF and the other byte order are checked in the same way.
    @Test func everyKindOfTIFFIsBounded() {
        for (start, big) in [("II*\0", false), ("MM\0*", false), ("II+\0", true), ("MM\0+", true)] {
            let isLittle = start.hasPrefix("I")
            func number(_ value: Int, _ size: Int) -> [UInt8] {
                isLittle ? ImageFiles.littleEndian(value, size) : ImageFiles.bytes(value, size)
            }
            var file = Array(start.utf8) + (big ? number(8, 2) + number(0, 2) + number(16, 8) : number(8, 4))
            file += number(513, big ? 8 : 2)
            file += [UInt8](repeating: 0, count: 513 * (big ? 20 : 12) + 8)
            #expect(explanation(file) == "TIFF: a page has 513 tags: the limit is 512", "\(start)")
        }
    }
}
