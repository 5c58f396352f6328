import HTTPWire
package import Transport

/// A body that is whole in memory from the start, or none.
package final class HeldBody: BodySource {
    private let bytes: [UInt8]
    /// The body's, until it isn't needed any more.
    private let reservation: BodyReservation?
    private var position = 0

    package init(_ bytes: [UInt8] = [], holding reservation: BodyReservation? = nil) {
        self.bytes = bytes
        self.reservation = reservation
    }

    package var moved: UInt64 { UInt64(position) }
    package var canRewind: Bool { true }
    package func rewind() { position = 0 }

    package func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        do throws(StreamError) {
            if position < bytes.count {
                position += try sink.write(bytes, from: position)
                if position < bytes.count { return .blocked }
            }
            return try sink.end(TrailerSection()) ? .ended : .blocked
        } catch {
            return .sinkFailed(error)
        }
    }
}
