/// A binary property list (`bplist00`): a table of objects that refer to each other. It is measured first, since shared
/// references can expand a few hundred bytes beyond any memory.
struct BinaryPropertyList {
    /// Arrays and dictionaries within each other, as XML may have them.
    private static let deepest = 256
    /// Objects that may come out beyond one for each reference in the file.
    private static let objectAllowance = 100_000
    /// The largest expansion of texts and data, by references, beyond ``byteAllowance``. Writers mostly share names of
    /// less than 32 bytes.
    private static let byteRatio = 32
    private static let byteAllowance = 1 << 20

    static func begins(_ body: [UInt8]) -> Bool { body.starts(with: "bplist".utf8) }

    static func value(of body: [UInt8]) throws(BodyDefect) -> PropertyListValue {
        var list = try BinaryPropertyList(body)
        try list.measure()
        return try list.value(of: list.objects.top)
    }

    static func check(_ body: [UInt8]) throws(BodyDefect) {
        var list = try BinaryPropertyList(body)
        try list.measure()
    }

    /// The size of an object with all that it refers to.
    private struct Measure {
        /// As far as they are counted.
        private static let most = 1 << 31

        /// Bytes of strings and data.
        var bytes = 0
        var objects: UInt32 = 1
        /// 0: it isn't measured yet.
        var depth: UInt16 = 1

        static let none = Measure(bytes: 0, objects: 0, depth: 0)

        mutating func add(_ other: Measure) throws(BodyDefect) {
            objects = UInt32(min(Int(objects) + Int(other.objects), Self.most))
            bytes = min(bytes + other.bytes, 1 << 60)
            depth = max(depth, other.depth + 1)
            guard depth <= BinaryPropertyList.deepest else { throw BinaryPropertyList.tooDeep }
        }
    }

    /// A container on the way down from the top.
    private struct Step {
        let object: Int
        let references: [Int]
        var next = 0
        var measure = Measure()
    }

    private let objects: BinaryPropertyListObjects
    /// The measure of each object.
    private var measures: [Measure]
    /// Values made already: objects shared in the file are shared in memory.
    private var made: [Int: PropertyListValue] = [:]

    private init(_ body: [UInt8]) throws(BodyDefect) {
        objects = try BinaryPropertyListObjects(body)
        measures = Array(repeating: .none, count: objects.count)
    }

    private static var tooDeep: BodyDefect { BodyDefect("nested more than \(deepest) deep") }

    // MARK: Measuring

    /// Depth first, each object once.
    private mutating func measure() throws(BodyDefect) {
        let length = objects.body.count
        var path: [Step] = []
        var isOnPath = Array(repeating: false, count: objects.count)
        var (references, contents) = (0, 0)
        func enter(_ object: Int) throws(BodyDefect) {
            guard path.count < Self.deepest else { throw Self.tooDeep }
            let found = try objects.references(of: object)
            let bytes = try objects.text(of: object)?.count ?? 0
            references += found.count
            contents += bytes
            // More references or texts than the file has room for.
            guard references <= length, contents <= length else { throw BodyDefect("its objects overlap") }
            try objects.check(object)
            isOnPath[object] = true
            var measure = Measure()
            measure.bytes = bytes
            path.append(Step(object: object, references: found, measure: measure))
        }
        try enter(objects.top)
        while let last = path.indices.last {
            guard path[last].next < path[last].references.count else {
                let done = path.removeLast()
                measures[done.object] = done.measure
                isOnPath[done.object] = false
                if last > 0 { try path[last - 1].measure.add(done.measure) }
                continue
            }
            let object = path[last].references[path[last].next]
            path[last].next += 1
            if measures[object].depth > 0 {
                try path[last].measure.add(measures[object])
            } else {
                guard !isOnPath[object] else { throw BodyDefect("object \(object) contains itself") }
                try enter(object)
            }
        }
        try bound(measures[objects.top], references: references, length: length)
    }

    private func bound(_ all: Measure, references: Int, length: Int) throws(BodyDefect) {
        let mostObjects = references + Self.objectAllowance
        guard all.objects <= mostObjects else {
            throw BodyDefect("shared references expand it to more than \(mostObjects) objects")
        }
        let mostBytes = max(Self.byteAllowance, Self.byteRatio * length)
        guard all.bytes <= mostBytes else {
            throw BodyDefect("shared references expand its texts and data to more than \(mostBytes) bytes")
        }
    }

    // MARK: Making

    /// Makes the value of an object in a measured list: its depth and size are limited.
    private mutating func value(of object: Int) throws(BodyDefect) -> PropertyListValue {
        switch try objects.contents(of: object).kind {
        case .array:
            var list: [PropertyListValue] = []
            for reference in try objects.references(of: object) { list.append(try value(of: reference)) }
            return .array(list)
        case .dictionary:
            let all = try objects.references(of: object)
            var dictionary: [String: PropertyListValue] = [:]
            for index in 0..<all.count / 2 {
                guard case .string(let key) = try value(of: all[index]) else { throw objects.damaged(object) }
                dictionary[key] = try value(of: all[all.count / 2 + index])
            }
            return .dictionary(dictionary)
        case .number, .data, .ascii, .unicode:
            if let value = made[object] { return value }
            let value = try objects.scalar(object)
            made[object] = value
            return value
        }
    }
}
