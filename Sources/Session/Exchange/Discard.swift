import Transport

/// Where the rest of a response goes that is of no use, so that its connection can be used again; up to a limit, beyond
/// which a new connection is cheaper.
final class Discard: ByteSink {
    private var left = 64 << 10

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        guard count <= left else { return .blocked }
        left -= count
        buffer.consume(count)
        return .done
    }
}
