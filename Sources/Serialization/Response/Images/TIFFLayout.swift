/// Checks the directories of a TIFF, one per page, before libtiff reads them: they may share bytes, which libtiff
/// copies for each, and its comparisons of entries and tags are quadratic.
enum TIFFLayout {
    static let mostPages = 1_000
    /// Most entries of one directory. Those of cameras have about a hundred.
    private static let mostEntries = 512
    /// Most distinct tags of the file. TIFF 6.0 and its supplements have less than three hundred.
    private static let mostTags = 512
    /// Most bytes referred to, as a multiple of the file's length: pages may share a colour profile.
    private static let sharing = 4
    private static let sharingAllowance = 1 << 20

    /// Most bytes that a file of that length may refer to, in all.
    static func mostShared(of length: Int) -> Int { sharing * length + sharingAllowance }

    /// - Throws: the exceeded limit. Damage is left to libtiff.
    static func check(_ body: [UInt8]) throws(ImageDefect) {
        guard let file = TIFFNumbers(body) else { return }
        var next = file.firstDirectory
        var (pages, shared) = (0, 0)
        var tags: Set<Int> = []
        while let at = next, at > 0 {
            pages += 1
            guard pages <= mostPages else { throw ImageDefect("more than \(mostPages) pages") }
            guard let count = file.number(at, file.isBig ? 8 : 2) else { return }
            guard count <= mostEntries else {
                throw ImageDefect("a page has \(count) tags: the limit is \(mostEntries)")
            }
            let entries = at + (file.isBig ? 8 : 2)
            shared += count * file.entrySize
            for index in 0..<count {
                guard let entry = file.entry(entries + index * file.entrySize) else { return }
                tags.insert(entry.tag)
                // Bytes beyond the end can't be read.
                shared += min(entry.length, body.count)
            }
            guard tags.count <= mostTags else { throw ImageDefect("more than \(mostTags) different tags") }
            guard shared <= mostShared(of: body.count) else {
                throw ImageDefect("its tags refer to more than \(mostShared(of: body.count)) bytes in all")
            }
            next = file.number(entries + count * file.entrySize, file.offsetSize)
        }
    }
}

/// The numbers in a TIFF, in its byte order, of the classic kind or of BigTIFF.
private struct TIFFNumbers {
    private let body: [UInt8]
    private let isLittleEndian: Bool
    let isBig: Bool
    let firstDirectory: Int?

    var offsetSize: Int { isBig ? 8 : 4 }
    var entrySize: Int { isBig ? 20 : 12 }

    init?(_ body: [UInt8]) {
        guard body.count >= 16 else { return nil }
        self.body = body
        isLittleEndian = body[0] == UInt8(ascii: "I")
        isBig = body[isLittleEndian ? 2 : 3] == 43
        firstDirectory = Self.number(body, isBig ? 8 : 4, isBig ? 8 : 4, isLittleEndian)
    }

    /// Nil: it isn't within the file, or beyond what a file can have.
    func number(_ offset: Int, _ size: Int) -> Int? { Self.number(body, offset, size, isLittleEndian) }

    private static func number(_ body: [UInt8], _ offset: Int, _ size: Int, _ isLittleEndian: Bool) -> Int? {
        guard offset >= 0, offset <= body.count - size else { return nil }
        var number: UInt64 = 0
        for index in 0..<size {
            number |= UInt64(body[offset + index]) << UInt64(8 * (isLittleEndian ? index : size - 1 - index))
        }
        return Int(exactly: number)
    }

    /// - length: bytes of its values stored elsewhere.
    func entry(_ offset: Int) -> (tag: Int, length: Int)? {
        guard let tag = number(offset, 2), let type = number(offset + 2, 2) else { return nil }
        let count = number(offset + 4, offsetSize) ?? .max
        let (length, overflows) = count.multipliedReportingOverflow(by: Self.size(ofType: type))
        guard !overflows else { return (tag, .max) }
        return (tag, length > offsetSize ? length : 0)
    }

    /// TIFF 6.0 section 2, and BigTIFF.
    private static func size(ofType type: Int) -> Int {
        switch type {
        case 3, 8: 2
        case 4, 9, 11, 13: 4
        case 5, 10, 12, 16, 17, 18: 8
        default: 1
        }
    }
}
