/// The objects of a binary property list by number, and their contents.
struct BinaryPropertyListObjects {
    enum Kind { case number, data, ascii, unicode, array, dictionary }

    struct Contents {
        let kind: Kind
        /// The object's first byte.
        let marker: UInt8
        /// Where the contents begin.
        let start: Int
        /// Bytes of a number or of data, characters of a text, elements of an array, pairs of a dictionary.
        let count: Int
    }

    let body: [UInt8]
    let count: Int
    let top: Int
    private let offsetSize: Int
    private let referenceSize: Int
    private let table: Int

    /// The trailer: the last 32 bytes.
    init(_ body: [UInt8]) throws(BodyDefect) {
        self.body = body
        let trailer = body.count - 32
        guard trailer >= 8 else { throw BodyDefect("a binary property list that is cut off after \(body.count) bytes") }
        func number(_ start: Int) -> Int? {
            Int(exactly: (0..<8).reduce(UInt64(0)) { $0 << 8 | UInt64(body[trailer + start + $1]) })
        }
        offsetSize = Int(body[trailer + 6])
        referenceSize = Int(body[trailer + 7])
        guard let count = number(8), let top = number(16), let table = number(24), (1...8).contains(offsetSize),
            (1...8).contains(referenceSize), count > 0, count <= body.count, top < count, table >= 8,
            table <= trailer, count * offsetSize <= trailer - table
        else { throw BodyDefect("the trailer of the binary property list is damaged or cut off") }
        (self.count, self.top, self.table) = (count, top, table)
    }

    // MARK: What an object is

    /// Refuses objects that the format has but no property list: sets, null.
    func contents(of object: Int) throws(BodyDefect) -> Contents {
        guard let offset = integer(at: table + object * offsetSize, size: offsetSize), offset >= 8, offset < table
        else {
            throw damaged(object)
        }
        let marker = body[offset]
        let low = Int(marker & 0x0F)
        func number(_ size: Int) throws(BodyDefect) -> Contents {
            guard size <= table - offset - 1 else { throw damaged(object) }
            return Contents(kind: .number, marker: marker, start: offset + 1, count: size)
        }
        func counted(_ kind: Kind, bytes: Int) throws(BodyDefect) -> Contents {
            guard let (start, count) = length(after: offset, low), count * bytes <= table - start else {
                throw damaged(object)
            }
            return Contents(kind: kind, marker: marker, start: start, count: count)
        }
        switch (marker >> 4, low) {
        case (0x0, 0x8), (0x0, 0x9): return try number(0)
        case (0x1, 0...4): return try number(1 << low)
        case (0x2, 2...3): return try number(1 << low)
        case (0x3, 3): return try number(8)
        case (0x4, _): return try counted(.data, bytes: 1)
        case (0x5, _): return try counted(.ascii, bytes: 1)
        case (0x6, _): return try counted(.unicode, bytes: 2)
        // A reference within a keyed archive.
        case (0x8, 0...7): return try number(low + 1)
        case (0xA, _): return try counted(.array, bytes: referenceSize)
        case (0xD, _): return try counted(.dictionary, bytes: 2 * referenceSize)
        default:
            let kind = String(marker, radix: 16, uppercase: true)
            throw BodyDefect(
                "object \(object) of the binary property list is of no kind that property lists have, 0x\(kind)")
        }
    }

    /// - Parameter low: the length, or 15: an integer follows.
    private func length(after offset: Int, _ low: Int) -> (start: Int, length: Int)? {
        guard low == 0x0F else { return (offset + 1, low) }
        guard offset + 1 < table, body[offset + 1] >> 4 == 1, body[offset + 1] & 0x0F <= 3 else { return nil }
        let size = 1 << Int(body[offset + 1] & 0x0F)
        guard let length = integer(at: offset + 2, size: size), length <= body.count else { return nil }
        return (offset + 2 + size, length)
    }

    func damaged(_ object: Int) -> BodyDefect { BodyDefect("object \(object) of the binary property list is damaged") }

    // MARK: What it contains

    /// References of an array or a dictionary, keys first; empty for other objects.
    func references(of object: Int) throws(BodyDefect) -> [Int] {
        let contents = try contents(of: object)
        guard contents.kind == .array || contents.kind == .dictionary else { return [] }
        let count = contents.kind == .dictionary ? 2 * contents.count : contents.count
        var found: [Int] = []
        found.reserveCapacity(count)
        for index in 0..<count {
            guard let reference = integer(at: contents.start + index * referenceSize, size: referenceSize),
                reference < self.count
            else {
                throw damaged(object)
            }
            if contents.kind == .dictionary, index < contents.count {
                let kind = try self.contents(of: reference).kind
                guard kind == .ascii || kind == .unicode else {
                    throw BodyDefect("object \(object) of the binary property list has a key that is not a string")
                }
            }
            found.append(reference)
        }
        return found
    }

    /// The bytes of a text or of data; nil for other objects.
    func text(of object: Int) throws(BodyDefect) -> ArraySlice<UInt8>? {
        let contents = try contents(of: object)
        switch contents.kind {
        case .number, .array, .dictionary: return nil
        case .data, .ascii: return body[contents.start..<contents.start + contents.count]
        case .unicode: return body[contents.start..<contents.start + 2 * contents.count]
        }
    }

    /// Refuses what is of its kind by its first byte only.
    func check(_ object: Int) throws(BodyDefect) {
        guard try contents(of: object).kind == .ascii, let text = try text(of: object) else { return }
        guard text.allSatisfy({ $0 < 0x80 }) else { throw damaged(object) }
    }

    /// The value of an object that was checked and contains no others.
    func scalar(_ object: Int) throws(BodyDefect) -> PropertyListValue {
        let contents = try contents(of: object)
        switch contents.kind {
        case .array, .dictionary: throw damaged(object)
        case .number: return number(contents)
        case .data: return .data(Array(try text(of: object) ?? []))
        case .ascii: return .string(String(decoding: try text(of: object) ?? [], as: UTF8.self))
        case .unicode:
            let bytes = try text(of: object) ?? []
            let units = stride(from: bytes.startIndex, to: bytes.endIndex, by: 2).map {
                UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
            }
            return .string(String(decoding: units, as: UTF16.self))
        }
    }

    private func number(_ contents: Contents) -> PropertyListValue {
        let bytes = body[contents.start..<contents.start + contents.count]
        switch contents.marker >> 4 {
        case 0x0: return .bool(contents.marker == 0x09)
        case 0x1:
            let number = bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
            // Integers of eight bytes are signed, shorter ones unsigned.
            return .integer(
                bytes.count == 8 ? Int128(Int64(truncatingIfNeeded: number)) : Int128(truncatingIfNeeded: number))
        case 0x2, 0x3:
            let bits = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let number =
                bytes.count == 4
                ? Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))) : Double(bitPattern: bits)
            // Dates count from 2001.
            return contents.marker >> 4 == 0x2 ? .real(number) : .date(number + 978_307_200)
        default: return .reference(bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
    }

    private func integer(at start: Int, size: Int) -> Int? {
        guard start >= 0, start + size <= body.count else { return nil }
        var value: UInt64 = 0
        for index in 0..<size { value = value << 8 | UInt64(body[start + index]) }
        return Int(exactly: value)
    }
}
