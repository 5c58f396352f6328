import Transport

/// Where the rest of a response goes that is of no use, up to a few KiB: beyond them a new connection is cheaper.
final class Discard: ByteSink {
    static let most = 16 << 10
    private var left = most

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        guard count <= left else { return .blocked }
        left -= count
        buffer.consume(count)
        return .done
    }
}
