import PinproxyHTTPWire

/// The result of parsing a head given in one piece.
enum Parsed<Head: Sendable>: Sendable {
    case complete(Head, HTTP1Framing)
    case incomplete, tooLarge, tooManyFields
    case malformed(WireError.Code)

    var head: Head? { if case .complete(let head, _) = self { head } else { nil } }
    var framing: HTTP1Framing? { if case .complete(_, let framing) = self { framing } else { nil } }
    var defect: WireError.Code? { if case .malformed(let code) = self { code } else { nil } }
    var isIncomplete: Bool { if case .incomplete = self { true } else { false } }
    var isTooLarge: Bool { if case .tooLarge = self { true } else { false } }
    var hasTooManyFields: Bool { if case .tooManyFields = self { true } else { false } }

    init(_ progress: HeadProgress, _ head: Head, _ framing: HTTP1Framing) {
        self =
            switch progress {
            case .incomplete: .incomplete
            case .tooLarge: .tooLarge
            case .tooManyFields: .tooManyFields
            case .malformed(let error): .malformed(error.code)
            case .complete: .complete(head, framing)
            }
    }
}

func request(_ text: String, limit: Int = 65536) -> Parsed<RequestHead> {
    var parser = HeadParser(limit: limit)
    var head = RequestHead()
    let progress = parser.parseRequest(Array(text.utf8).span, into: &head)
    return Parsed(progress, head, parser.framing)
}

func response(_ text: String, to method: PinproxyHTTPWire.Method = .get, limit: Int = 65536) -> Parsed<ResponseHead> {
    var parser = HeadParser(limit: limit)
    var head = ResponseHead()
    let progress = parser.parseResponse(Array(text.utf8).span, to: method, into: &head)
    return Parsed(progress, head, parser.framing)
}

extension ByteRange {
    func text(in string: String) -> String { text(in: Array(string.utf8).span) }
}

/// A small generator with a seed, so that a failure can be reproduced (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Splits `count` bytes into pieces.
    mutating func pieces(of count: Int, longest: Int) -> [Range<Int>] {
        var cuts: [Range<Int>] = []
        var start = 0
        while start < count {
            let end = min(count, start + Int.random(in: 1...longest, using: &self))
            cuts.append(start..<end)
            start = end
        }
        return cuts
    }
}
