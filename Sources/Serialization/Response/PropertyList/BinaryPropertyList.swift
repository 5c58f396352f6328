/// The frame of a binary property list (`bplist00`): a table of objects that refer to each other. It is gone through
/// before it is read, since reading follows every reference: a few hundred bytes can refer to the same array in
/// so many ways that no memory holds it.
struct BinaryPropertyList {
    /// Arrays and dictionaries within each other, as XML may have them.
    private static let deepest = 256
    /// Objects that may come out beyond one for each reference in the file.
    private static let allowance = 100_000

    static func begins(_ body: [UInt8]) -> Bool { body.starts(with: "bplist".utf8) }

    static func value(of body: [UInt8]) throws(BodyDefect) -> PropertyListValue {
        var list = try BinaryPropertyList(body)
        try list.measure()
        return try list.value(of: list.top)
    }

    private let body: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    private let top: Int
    private let table: Int

    /// What one object comes to with all that it refers to; nil: not measured yet.
    private var sizes: [Int?]
    private var depths: [Int]

    /// The trailer: the last 32 bytes.
    private init(_ body: [UInt8]) throws(BodyDefect) {
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
        sizes = Array(repeating: nil, count: count)
        depths = Array(repeating: 0, count: count)
    }

    /// Depth first, each object once.
    private mutating func measure() throws(BodyDefect) {
        var path: [(object: Int, references: [Int], next: Int, size: Int, depth: Int)] = []
        var isOnPath = Array(repeating: false, count: count)
        var references = 0
        func enter(_ object: Int) throws(BodyDefect) {
            guard path.count < Self.deepest else { throw BodyDefect("nested more than \(Self.deepest) deep") }
            let found = try self.references(of: object)
            references += found.count
            // More references than bytes: containers overlap.
            guard references <= body.count else { throw BodyDefect("its containers overlap") }
            isOnPath[object] = true
            path.append((object, found, 0, 1, 1))
        }
        try enter(top)
        while let last = path.last {
            guard last.next < last.references.count else {
                sizes[last.object] = last.size
                depths[last.object] = last.depth
                isOnPath[last.object] = false
                path.removeLast()
                if !path.isEmpty { try add(last.size, last.depth, to: &path[path.count - 1]) }
                continue
            }
            path[path.count - 1].next += 1
            let object = last.references[last.next]
            if let size = sizes[object] {
                try add(size, depths[object], to: &path[path.count - 1])
            } else {
                guard !isOnPath[object] else { throw BodyDefect("object \(object) contains itself") }
                try enter(object)
            }
        }
        guard let all = sizes[top], all <= references + Self.allowance else {
            throw BodyDefect("shared references expand it to more than \(references + Self.allowance) objects")
        }
    }

    private func add(
        _ size: Int, _ depth: Int, to container: inout (object: Int, references: [Int], next: Int, size: Int, depth: Int)
    ) throws(BodyDefect) {
        container.size = min(container.size + size, 1 << 40)
        container.depth = max(container.depth, depth + 1)
        guard container.depth <= Self.deepest else { throw BodyDefect("nested more than \(Self.deepest) deep") }
    }

    /// Of an array or a dictionary; others have none.
    private func references(of object: Int) throws(BodyDefect) -> [Int] {
        let (kind, start, length) = try contents(of: object)
        guard kind == .array || kind == .dictionary else { return [] }
        let count = kind == .dictionary ? 2 * length : length
        guard count * referenceSize <= table - start else { throw damaged(object) }
        var found: [Int] = []
        found.reserveCapacity(count)
        for index in 0..<count {
            guard let reference = integer(at: start + index * referenceSize, size: referenceSize), reference < self.count else {
                throw damaged(object)
            }
            // The first half of a dictionary is its keys.
            if kind == .dictionary, index < length {
                guard try contents(of: reference).kind == .string else {
                    throw BodyDefect("object \(object) of the binary property list has a key that is not a string")
                }
            }
            found.append(reference)
        }
        return found
    }

    /// Of an object in a list that was measured: its depth and its size are bounded.
    private func value(of object: Int) throws(BodyDefect) -> PropertyListValue {
        let (kind, start, length) = try contents(of: object)
        switch kind {
        case .array:
            var list: [PropertyListValue] = []
            for reference in try references(of: object) { list.append(try value(of: reference)) }
            return .array(list)
        case .dictionary:
            let all = try references(of: object)
            var dictionary: [String: PropertyListValue] = [:]
            for index in 0..<length {
                guard case .string(let key) = try value(of: all[index]) else { throw damaged(object) }
                dictionary[key] = try value(of: all[length + index])
            }
            return .dictionary(dictionary)
        case .scalar, .string:
            guard let marker = integer(at: table + object * offsetSize, size: offsetSize).map({ body[$0] }),
                let value = scalar(marker, body[start..<start + (marker >> 4 == 6 ? 2 * length : length)])
            else { throw damaged(object) }
            return value
        }
    }

    private func scalar(_ marker: UInt8, _ bytes: ArraySlice<UInt8>) -> PropertyListValue? {
        switch marker >> 4 {
        case 0x0: return .bool(marker == 0x09)
        case 0x1:
            let number = bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
            // Those of eight bytes have a sign, shorter ones none.
            return .integer(bytes.count == 8 ? Int128(Int64(truncatingIfNeeded: number)) : Int128(truncatingIfNeeded: number))
        case 0x2, 0x3:
            let bits = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let number = bytes.count == 4 ? Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))) : Double(bitPattern: bits)
            // Dates count from 2001.
            return marker >> 4 == 0x2 ? .real(number) : .date(number + 978_307_200)
        case 0x4: return .data(Array(bytes))
        case 0x5: return bytes.allSatisfy { $0 < 0x80 } ? .string(String(decoding: bytes, as: UTF8.self)) : nil
        case 0x6:
            let units = stride(from: bytes.startIndex, to: bytes.endIndex, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
            return .string(String(decoding: units, as: UTF16.self))
        default: return .reference(bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
    }

    private enum Kind { case scalar, string, array, dictionary }

    /// What an object is, where its contents begin, and how many it has: bytes, characters, elements.
    ///
    /// What no property list has is refused, though the format has it (sets, null): on Linux, Foundation ends the
    /// process over a set.
    private func contents(of object: Int) throws(BodyDefect) -> (kind: Kind, start: Int, length: Int) {
        guard let offset = integer(at: table + object * offsetSize, size: offsetSize), offset >= 8, offset < table else {
            throw damaged(object)
        }
        let low = Int(body[offset] & 0x0F)
        func scalar(_ size: Int) throws(BodyDefect) -> (Kind, Int, Int) {
            guard size <= table - offset - 1 else { throw damaged(object) }
            return (.scalar, offset + 1, size)
        }
        func counted(_ kind: Kind, bytes: Int) throws(BodyDefect) -> (Kind, Int, Int) {
            guard let (start, length) = length(after: offset, low), length * bytes <= table - start else { throw damaged(object) }
            return (kind, start, length)
        }
        switch (body[offset] >> 4, low) {
        case (0x0, 0x8), (0x0, 0x9): return try scalar(0)
        case (0x1, 0...4): return try scalar(1 << low)
        case (0x2, 2...3): return try scalar(1 << low)
        case (0x3, 3): return try scalar(8)
        case (0x4, _): return try counted(.scalar, bytes: 1)
        case (0x5, _): return try counted(.string, bytes: 1)
        case (0x6, _): return try counted(.string, bytes: 2)
        // A reference within a keyed archive.
        case (0x8, 0...7): return try scalar(low + 1)
        case (0xA, _): return try counted(.array, bytes: referenceSize)
        case (0xD, _): return try counted(.dictionary, bytes: 2 * referenceSize)
        default:
            let marker = String(body[offset], radix: 16, uppercase: true)
            throw BodyDefect("object \(object) of the binary property list is of no kind that property lists have, 0x\(marker)")
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

    private func damaged(_ object: Int) -> BodyDefect { BodyDefect("object \(object) of the binary property list is damaged") }

    private func integer(at start: Int, size: Int) -> Int? {
        guard start >= 0, start + size <= body.count else { return nil }
        var value: UInt64 = 0
        for index in 0..<size { value = value << 8 | UInt64(body[start + index]) }
        return Int(exactly: value)
    }
}
