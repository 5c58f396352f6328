/// All readings of a request's path by servers.
///
/// All servers decode `%61` to `a`, once. They disagree about these:
///
/// | in the path        | read as                  | or as                                     |
/// |--------------------|--------------------------|-------------------------------------------|
/// | `/a//b`            | `/a/b` (nginx)           | `/a//b` (Node)                            |
/// | `/a/../b`, `%2e%2e`| `/b` (nginx, Python)     | unchanged (a router on Node)              |
/// | `/a%2fb`           | `/a/b` (nginx, Python)   | one segment (routers that decode late)    |
/// | `/a\b`, `%5c`      | `/a/b` (WHATWG URL, IIS) | one segment (nginx, Python)               |
/// | `/a;x=1/b`         | `/a/b` (servlets)        | unchanged (nginx, Node, Python)           |
/// | `/a`, then 85 or A0 | `/a` (http.server)      | unchanged (nginx, Node, Go)               |
///
/// The last row is about unescaped bytes at a target's end, blanks in Latin-1: Python's http.server splits the request
/// line at them.
///
/// A rule that compared only one reading could be bypassed at a server that reads another. So all are compared: a path
/// is judged only if every reading selects the same rule, and is otherwise ambiguous (`RuleLayers`). Nearly all paths
/// lack these, and have one reading. The query is ignored; case counts.
///
/// Reuse a value: taking a path keeps the storage of the previous one.
package struct PathReadings: Sendable {
    /// Details of a path that servers treat differently; as options, the treatments of one reading.
    private struct Treatment: OptionSet {
        let rawValue: UInt8
        static let mergesSlashes = Treatment(rawValue: 1)
        static let resolvesDots = Treatment(rawValue: 2)
        static let decodesSlashes = Treatment(rawValue: 4)
        static let turnsBackslashes = Treatment(rawValue: 8)
        static let dropsParameters = Treatment(rawValue: 16)
        static let dropsLastBlanks = Treatment(rawValue: 32)
        static let all: [Treatment] = [
            .mergesSlashes, .resolvesDots, .decodesSlashes, .turnsBackslashes, .dropsParameters, .dropsLastBlanks,
        ]
    }

    /// The last requested reading, decoded.
    package private(set) var bytes: [UInt8] = []
    /// The last requested reading has a `..` with no segment to leave.
    private var goesAboveRoot = false
    private var path: [UInt8] = []
    private var differences: Treatment = []
    /// The length of `path` without the bytes at a target's end that are blanks in Latin-1.
    private var trimmedCount = 0
    /// Where the last segment of `bytes` begins, while it is written.
    private var segmentStart = 0

    package init() {}

    /// How many readings there are: 1 for most paths, 64 at most. Some may be equal.
    package var count: Int { 1 << differences.rawValue.nonzeroBitCount }

    /// Takes the path of a request target: origin-form (`/a?b`), absolute-form without authority, or `*`.
    package mutating func take(_ target: Span<UInt8>) {
        path.removeAll(keepingCapacity: true)
        var blanks = 0
        for index in target.indices {
            if target[index] == UInt8(ascii: "?") {
                blanks = 0
                break
            }
            blanks = target[index] == 0x85 || target[index] == 0xA0 ? blanks + 1 : 0
            path.append(target[index])
        }
        trimmedCount = path.count - blanks
        if path.isEmpty { path.append(UInt8(ascii: "/")) }
        findDifferences()
    }

    /// Takes a path from text, for the command line and tests.
    package mutating func take(_ target: String) {
        let bytes = Array(target.utf8)
        take(bytes.span)
    }

    /// Whether a server with the path below a prefix may read it as above or beside that prefix.
    package mutating func mayLeaveRoot() -> Bool {
        guard differences.contains(.resolvesDots) else { return false }
        for number in 0..<count {
            read(number)
            if goesAboveRoot { return true }
        }
        return false
    }

    /// Writes one reading to ``bytes``; number 0 normalises everything.
    package mutating func read(_ number: Int) {
        var treatment = differences
        var bits = number
        for option in Treatment.all where differences.contains(option) {
            if bits & 1 == 1 { treatment.remove(option) }
            bits >>= 1
        }
        bytes.removeAll(keepingCapacity: true)
        goesAboveRoot = false
        guard path.first == UInt8(ascii: "/") else {
            bytes.append(contentsOf: path)
            return
        }
        bytes.append(UInt8(ascii: "/"))
        segmentStart = 1
        let end = treatment.contains(.dropsLastBlanks) ? trimmedCount : path.count
        var index = 1
        while index < end { index = readUnit(at: index, treatment) }
        endSegment(treatment, isLast: true)
    }

    /// Reads a character, an escape, or the parameters of a segment; returns the index after it.
    private mutating func readUnit(at index: Int, _ treatment: Treatment) -> Int {
        let (byte, length) = unit(at: index)
        switch byte {
        case UInt8(ascii: "/") where length == 1 || treatment.contains(.decodesSlashes):
            endSegment(treatment, isLast: false)
        case UInt8(ascii: "/"):
            // Distinct from a slash, however the escape was written.
            bytes.append(contentsOf: "%2F".utf8)
        case UInt8(ascii: "\\") where treatment.contains(.turnsBackslashes):
            endSegment(treatment, isLast: false)
        case UInt8(ascii: ";") where length == 1 && treatment.contains(.dropsParameters):
            return path[index...].firstIndex(of: UInt8(ascii: "/")) ?? path.count
        default:
            bytes.append(byte)
        }
        return index + length
    }

    /// The decoded byte at the index, and how many bytes it takes.
    private func unit(at index: Int) -> (byte: UInt8, length: Int) {
        guard path[index] == UInt8(ascii: "%"), let escape = PercentEscape(path, at: index) else {
            return (path[index], 1)
        }
        return (escape.value, 3)
    }

    private mutating func endSegment(_ treatment: Treatment, isLast: Bool) {
        let length = bytes.count - segmentStart
        let isDots =
            treatment.contains(.resolvesDots) && (1...2).contains(length)
            && bytes[segmentStart] == UInt8(ascii: ".") && bytes.last == UInt8(ascii: ".")
        if isDots {
            bytes.removeLast(length)
            guard length == 2 else { return }
            guard segmentStart > 1 else {
                goesAboveRoot = true
                return
            }
            // The slash before the previous segment.
            segmentStart = (bytes[..<(segmentStart - 1)].lastIndex(of: UInt8(ascii: "/")) ?? 0) + 1
            bytes.removeLast(bytes.count - segmentStart)
        } else if !isLast, length > 0 || !treatment.contains(.mergesSlashes) {
            bytes.append(UInt8(ascii: "/"))
            segmentStart = bytes.count
        }
    }

    private mutating func findDifferences() {
        differences = trimmedCount > 0 && trimmedCount < path.count ? .dropsLastBlanks : []
        var isSegmentStart = false
        var index = 0
        while index < path.count {
            let (byte, length) = unit(at: index)
            switch byte {
            case UInt8(ascii: "/"), UInt8(ascii: "\\"):
                if byte == UInt8(ascii: "\\") {
                    differences.insert(.turnsBackslashes)
                } else if length > 1 {
                    differences.insert(.decodesSlashes)
                }
                if isSegmentStart { differences.insert(.mergesSlashes) }
                isSegmentStart = true
            case UInt8(ascii: "."):
                // Perhaps only a hidden file, which then has two equal readings.
                if isSegmentStart { differences.insert(.resolvesDots) }
                isSegmentStart = false
            case UInt8(ascii: ";") where length == 1:
                differences.insert(.dropsParameters)
                // Without parameters the segment may be empty.
                if isSegmentStart { differences.insert(.mergesSlashes) }
            default:
                isSegmentStart = false
            }
            index += length
        }
    }
}
