/// The boxes of an AVIF (ISO/IEC 14496-12, 23008-12), checked first: libavif's look-ups are quadratic.
struct AVIFLayout {
    /// Bytes of the tables of items. One of a thousand cells takes 60 KB.
    private static let mostItemTables = 64 << 10
    /// Entries in a table of samples. A frame needs at most one.
    static let mostSamples = 10_000
    /// Colours, alpha, and some more.
    private static let mostTracks = 16
    /// Boxes within others.
    private static let mostBoxes = 1 << 14
    private static let deepest = 8

    private let bytes: UnsafeBufferPointer<UInt8>
    private var itemTables = 0
    private var boxes = 0
    private var tracks = 0
    /// Bytes of the file that items consist of, in all.
    private var stored = 0

    private var mostStored: Int { 4 * bytes.count + 1 << 20 }

    /// - Throws: what is too much. What is damaged is libavif's to say.
    static func check(_ bytes: UnsafeBufferPointer<UInt8>) throws(ImageDefect) {
        var layout = AVIFLayout(bytes: bytes)
        try layout.check(0..<bytes.count, depth: 0)
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private mutating func check(_ range: Range<Int>, depth: Int) throws(ImageDefect) {
        guard depth < Self.deepest else { throw ImageDefect("its boxes are nested more than \(Self.deepest) deep") }
        var at = range.lowerBound
        while let box = box(at: at, within: range) {
            boxes += 1
            guard boxes <= Self.mostBoxes else { throw ImageDefect("more than \(Self.mostBoxes) boxes") }
            try check(box.type, box.contents, depth)
            at = box.contents.upperBound
        }
    }

    private mutating func check(_ type: String, _ contents: Range<Int>, _ depth: Int) throws(ImageDefect) {
        switch type {
        case "trak":
            tracks += 1
            guard tracks <= Self.mostTracks else { throw ImageDefect("more than \(Self.mostTracks) tracks") }
            try check(contents, depth: depth + 1)
        case "moov", "mdia", "minf", "stbl", "iprp", "ipco": try check(contents, depth: depth + 1)
        // Version and flags come first.
        case "meta": try check(contents.dropFirst(4), depth: depth + 1)
        case "iloc":
            try takeItemTable(contents)
            try checkLocations(contents)
        case "iinf", "iref", "ipma": try takeItemTable(contents)
        case "stco", "stss": try checkSamples(contents, entrySize: 4)
        case "co64", "stts": try checkSamples(contents, entrySize: 8)
        case "stsc": try checkSamples(contents, entrySize: 12)
        // The size of all samples comes before their number.
        case "stsz": try checkSamples(contents.dropFirst(4), entrySize: 4)
        default: break
        }
    }

    private mutating func takeItemTable(_ contents: Range<Int>) throws(ImageDefect) {
        itemTables += contents.count
        guard itemTables <= Self.mostItemTables else {
            throw ImageDefect("the tables of its items are longer than \(Self.mostItemTables) bytes")
        }
    }

    private func checkSamples(_ contents: Range<Int>, entrySize: Int) throws(ImageDefect) {
        guard contents.count <= Self.mostSamples * entrySize + 8 else {
            throw ImageDefect("more than \(Self.mostSamples) samples")
        }
    }

    /// ISO/IEC 14496-12 section 8.11.3: several items, and several parts of one, may lie in the same bytes.
    private mutating func checkLocations(_ contents: Range<Int>) throws(ImageDefect) {
        var at = contents.lowerBound
        func next(_ size: Int) -> Int? {
            guard size > 0 else { return 0 }
            guard let number = number(at, size, within: contents) else { return nil }
            at += size
            return number
        }
        guard let start = next(4), let sizes = next(2) else { return }
        let version = start >> 24
        let (offsetSize, lengthSize, baseSize) = (sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15)
        let indexSize = version == 0 ? 0 : sizes & 15
        guard let items = next(version < 2 ? 2 : 4) else { return }
        for _ in 0..<items {
            // Number, construction method, data reference, base offset.
            guard next(version < 2 ? 2 : 4) != nil, next(version == 0 ? 0 : 2) != nil, next(2) != nil,
                next(baseSize) != nil,
                let extents = next(2)
            else { return }
            for _ in 0..<extents {
                guard next(indexSize) != nil, next(offsetSize) != nil, let length = next(lengthSize) else { return }
                // 0: to the end.
                stored += length == 0 ? bytes.count : min(length, bytes.count)
                guard stored <= mostStored else {
                    throw ImageDefect("its items consist of more than \(mostStored) bytes in all")
                }
            }
        }
    }

    // MARK: Boxes

    private func box(at start: Int, within range: Range<Int>) -> (type: String, contents: Range<Int>)? {
        guard let short = number(start, 4, within: range), start + 8 <= range.upperBound else { return nil }
        var (header, size) = (8, short)
        if short == 1 {
            guard let long = number(start + 8, 8, within: range) else { return nil }
            (header, size) = (16, long)
        }
        // 0: to the end.
        if short == 0 { size = range.upperBound - start }
        guard size >= header else { return nil }
        let type = String(decoding: bytes[start + 4..<start + 8], as: UTF8.self)
        return (type, start + header..<min(size, range.upperBound - start) + start)
    }

    /// Nil: it isn't within the range, or beyond what a file can have.
    private func number(_ start: Int, _ size: Int, within range: Range<Int>) -> Int? {
        guard size <= 8, start >= range.lowerBound, start <= range.upperBound - size else { return nil }
        return Int(exactly: bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
