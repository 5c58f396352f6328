protocol Decompressor: AnyObject {
    /// Decodes at most ``DecompressionStep/room`` bytes and appends them.
    func step(
        _ input: [UInt8], from start: Int, into output: inout [UInt8]
    ) throws(DecompressionFault) -> DecompressionStep

    /// After its end, with the byte that follows.
    func beginsAgain(with byte: UInt8) -> Bool
}

struct DecompressionStep {
    /// Bytes that come out of one step at most.
    static let room = 64 << 10

    let consumed: Int
    let produced: Int
    let isEnd: Bool

    /// The room was filled: more may come out without more going in.
    var mayHaveMore: Bool { produced == Self.room }
}

struct DecompressionFault: Error {
    /// Bytes of this step's input up to the fault.
    let consumed: Int
    let explanation: String
}
