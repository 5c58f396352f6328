/// The encoding of a JSON text: UTF-8 (RFC 8259 section 8.1), or, as with JSONSerialization, UTF-16 and UTF-32, by a
/// byte order mark or the place of zeros (RFC 4627 section 3).
struct JSONEncoding {
    private enum Unit { case utf8, utf16, utf32 }

    private let unit: Unit
    private let isBigEndian: Bool
    let mark: Int

    static let utf8 = JSONEncoding(.utf8, isBigEndian: false, mark: 0)

    private init(_ unit: Unit, isBigEndian: Bool, mark: Int) {
        self.unit = unit
        self.isBigEndian = isBigEndian
        self.mark = mark
    }

    init(of bytes: [UInt8]) {
        let four = (0..<4).map { $0 < bytes.count ? bytes[$0] : nil }
        self =
            switch (four[0], four[1], four[2], four[3]) {
            case (0xEF, 0xBB, 0xBF, _): Self(.utf8, isBigEndian: false, mark: 3)
            case (0x00, 0x00, 0xFE, 0xFF): Self(.utf32, isBigEndian: true, mark: 4)
            case (0xFF, 0xFE, 0x00, 0x00): Self(.utf32, isBigEndian: false, mark: 4)
            case (0xFE, 0xFF, _, _): Self(.utf16, isBigEndian: true, mark: 2)
            case (0xFF, 0xFE, _, _): Self(.utf16, isBigEndian: false, mark: 2)
            case (0, 0, 0, _?): Self(.utf32, isBigEndian: true, mark: 0)
            case (_?, 0, 0, 0): Self(.utf32, isBigEndian: false, mark: 0)
            case (0, _?, 0?, _?), (0, _?, nil, nil): Self(.utf16, isBigEndian: true, mark: 0)
            case (_?, 0, _?, 0?), (_?, 0, nil, nil): Self(.utf16, isBigEndian: false, mark: 0)
            default: .utf8
            }
    }

    /// The text after the byte order mark, as UTF-8; up to the first defect if it isn't in the encoding.
    func utf8(of bytes: [UInt8]) -> (text: [UInt8], isWhole: Bool) {
        switch unit {
        case .utf8: return (mark == 0 ? bytes : Array(bytes[mark...]), true)
        case .utf16: return Self.transcode(units(UInt16.self, of: bytes), UTF16.self, isWhole: bytes.count % 2 == 0)
        case .utf32: return Self.transcode(units(UInt32.self, of: bytes), UTF32.self, isWhole: bytes.count % 4 == 0)
        }
    }

    /// The reverse of ``utf8(of:)``, without the mark.
    func bytes(of utf8: [UInt8]) -> [UInt8] {
        switch unit {
        case .utf8: return utf8
        case .utf16: return String(decoding: utf8, as: UTF8.self).utf16.flatMap { bytes(ofUnit: $0) }
        case .utf32: return String(decoding: utf8, as: UTF8.self).unicodeScalars.flatMap { bytes(ofUnit: $0.value) }
        }
    }

    private func units<Unit: FixedWidthInteger>(_: Unit.Type, of bytes: [UInt8]) -> [Unit] {
        let size = Unit.bitWidth / 8
        return stride(from: mark, to: bytes.count - size + 1, by: size).map { start in
            (0..<size).reduce(0) { unit, index in
                unit << 8 | Unit(bytes[start + (isBigEndian ? index : size - 1 - index)])
            }
        }
    }

    private func bytes<Unit: FixedWidthInteger>(ofUnit unit: Unit) -> [UInt8] {
        let size = Unit.bitWidth / 8
        return (0..<size).map { index in
            UInt8(truncatingIfNeeded: unit >> Unit(8 * (isBigEndian ? size - 1 - index : index)))
        }
    }

    private static func transcode<Encoding: UnicodeCodec>(
        _ units: [Encoding.CodeUnit], _: Encoding.Type, isWhole: Bool
    ) -> (text: [UInt8], isWhole: Bool) {
        var text: [UInt8] = []
        text.reserveCapacity(units.count)
        var codec = Encoding()
        var iterator = units.makeIterator()
        while true {
            switch codec.decode(&iterator) {
            case .scalarValue(let scalar): text.append(contentsOf: UTF8.encode(scalar)!)
            case .emptyInput: return (text, isWhole)
            case .error: return (text, false)
            }
        }
    }
}
