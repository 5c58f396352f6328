import PinproxyTransport

/// Discards the rest of a response, up to a few KiB: beyond them a new connection is cheaper.
final class Discard: BodySink {
    static let most = 16 << 10
    private(set) var carried: UInt64 = 0

    func write(_ piece: RawSpan) -> Int {
        guard piece.byteCount <= Self.most - Int(carried) else { return 0 }
        carried += UInt64(piece.byteCount)
        return piece.byteCount
    }
}
