/// Hand-made image files for tests: valid, or of a kind that is expensive.
package enum ImageFiles {
    /// A number in the encoding of files, high byte first.
    package static func bytes(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: number >> (8 * (size - 1 - $0))) }
    }

    /// The same with the low byte first.
    package static func littleEndian(_ number: Int, _ size: Int) -> [UInt8] { bytes(number, size).reversed() }

    /// One of the pictures made by Debian's encoders.
    package static func seed(_ name: String) -> [UInt8] { ImageSeeds.all.first { $0.name == name }?.bytes ?? [] }

    // MARK: TIFF

    /// Type 3 is a number of two bytes, 4 one of four.
    package typealias Tag = (tag: Int, type: Int, count: Int, value: Int)

    /// A classic TIFF: data at byte 8, then a directory for each page.
    package static func tiff(_ data: [UInt8], pages: Int, _ tags: [Tag]) -> [UInt8] {
        var file = Array("II*\0".utf8) + [0, 0, 0, 0] + data
        if file.count % 2 == 1 { file.append(0) }
        var link = 4
        let tail = tags.flatMap {
            littleEndian($0.tag, 2) + littleEndian($0.type, 2) + littleEndian($0.count, 4) + littleEndian($0.value, 4)
        }
        for _ in 0..<pages {
            file.replaceSubrange(link..<link + 4, with: littleEndian(file.count, 4))
            file += littleEndian(tags.count, 2) + tail
            link = file.count
            file += [0, 0, 0, 0]
        }
        return file
    }

    /// A page that is a single tile.
    package static func tiled(side: (width: Int, height: Int)) -> [Tag] {
        [
            (256, 3, 1, 1), (257, 3, 1, 1), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (277, 3, 1, 1),
            (322, 4, 1, side.width), (323, 4, 1, side.height), (324, 4, 1, 8), (325, 4, 1, 8),
        ]
    }

    // MARK: PNG

    /// A PNG with these chunks before the pixels.
    package static func png(_ chunks: [UInt8]) -> [UInt8] {
        let png = seed("png")
        return Array(png[..<33] + chunks + png[33...])
    }

    /// A chunk with its checksum.
    package static func chunk(_ type: String, _ contents: [UInt8] = []) -> [UInt8] {
        let named = Array(type.utf8) + contents
        return bytes(contents.count, 4) + named + bytes(Int(crc32(named)), 4)
    }

    package static func crc32(_ bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(~0) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
    }

    // MARK: Frames

    /// Frames of one pixel.
    package static func gif(frames: Int) -> [UInt8] {
        let frame: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]
        return Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
            + (0..<frames).flatMap { _ in frame } + [0x3B]
    }

    package static func riff(_ name: String, _ contents: [UInt8]) -> [UInt8] {
        Array(name.utf8) + littleEndian(contents.count, 4) + contents + (contents.count % 2 == 1 ? [0] : [])
    }

    package static func webp(frames: Int) -> [UInt8] {
        let still = seed("webpLossless").dropFirst(12)
        let frame = riff("ANMF", [0, 0, 0, 0, 0, 0, 16, 0, 0, 10, 0, 0, 1, 0, 0, 0] + still)
        let extended = riff("VP8X", [2, 0, 0, 0, 16, 0, 0, 10, 0, 0]) + riff("ANIM", [0, 0, 0, 0, 0, 0])
        return riff("RIFF", Array("WEBP".utf8) + extended + (0..<frames).flatMap { _ in frame })
    }

    /// The progressive picture with its last scan repeated.
    package static func jpeg(moreScans: Int) -> [UInt8] {
        let progressive = seed("progressive")
        guard
            let last = progressive.indices.dropLast().last(where: {
                progressive[$0] == 0xFF && progressive[$0 + 1] == 0xDA
            })
        else { return [] }
        let scan = progressive[last..<progressive.count - 2]
        return Array(progressive[..<last] + (0...moreScans).flatMap { _ in scan } + progressive.suffix(2))
    }

    // MARK: AVIF

    package static func box(_ type: String, _ contents: [UInt8]) -> [UInt8] {
        bytes(contents.count + 8, 4) + Array(type.utf8) + contents
    }

    package static func avif(_ boxes: [UInt8]) -> [UInt8] { box("ftyp", Array("avif\0\0\0\0avifmif1".utf8)) + boxes }

    package static func avif(items: Int) -> [UInt8] {
        let entry = box("infe", [2, 0, 0, 0, 0, 1, 0, 0] + Array("av01\0".utf8))
        let entries = (0..<items).flatMap { _ in entry }
        return avif(box("meta", [0, 0, 0, 0] + box("iinf", [1, 0, 0, 0] + bytes(items, 4) + entries)))
    }
}

/// Hand-made property lists.
package enum PropertyListFiles {
    /// A `bplist00` of encoded objects, the root first, with offsets of four bytes.
    /// - Parameter given: which of these each object is, by its number; nil: each is itself.
    package static func binary(_ objects: [[UInt8]], referenceSize: Int = 1, places given: [Int]? = nil) -> [UInt8] {
        var body = Array("bplist00".utf8)
        var offsets: [Int] = []
        for object in objects {
            offsets.append(body.count)
            body += object
        }
        if let given { offsets = given.map { offsets[$0] } }
        let table = body.count
        for offset in offsets { body += ImageFiles.bytes(offset, 4) }
        return body + [0, 0, 0, 0, 0, 0, 4, UInt8(referenceSize)] + ImageFiles.bytes(offsets.count, 8)
            + ImageFiles.bytes(0, 8) + ImageFiles.bytes(table, 8)
    }

    /// An object of many parts.
    /// - Parameter kind: 4 data, 5 text, 10 a list.
    package static func counted(_ kind: UInt8, _ count: Int, _ contents: [UInt8]) -> [UInt8] {
        [kind << 4 | 15, 0x12] + ImageFiles.bytes(count, 4) + contents
    }

    /// A list with `count` references to one text, or to data, of `count` bytes.
    package static func sharing(kind: UInt8 = 5, _ count: Int) -> [UInt8] {
        binary([
            counted(10, count, Array(repeating: 1, count: count)),
            counted(kind, count, Array(repeating: 0x41, count: count)),
        ])
    }
}
