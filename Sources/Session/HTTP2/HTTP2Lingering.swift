import EventLoop
import HTTP2

/// Streams whose response was sent before all of the request had come. The client is told to stop (RST_STREAM with NO_ERROR,
/// RFC 9113 section 8.1) a moment later: curl 7.88 drops a response if the reset comes along with it.
final class HTTP2Lingering {
    private static let nanoseconds: UInt64 = 500_000_000

    let deadline: Deadline
    // As many as the peer may open.
    private var streams: [(id: HTTP2StreamID, since: MonotonicTime)] = []

    init(loop: EventLoop) {
        deadline = Deadline(loop: loop)
    }

    func add(_ id: HTTP2StreamID, at now: MonotonicTime) {
        streams.append((id, now))
        if !deadline.isSet { deadline.set(afterNanoseconds: Self.nanoseconds) }
    }

    /// Those that have lingered long enough.
    func takeDue(at now: MonotonicTime) -> [HTTP2StreamID] {
        let due = streams.prefix { now - $0.since >= Self.nanoseconds }
        streams.removeFirst(due.count)
        if let next = streams.first { deadline.set(next.since.advanced(byNanoseconds: Self.nanoseconds)) }
        return due.map(\.id)
    }

    func clear() {
        streams = []
        deadline.clear()
    }
}

extension HTTP2Connection {
    func linger(_ id: HTTP2StreamID) { lingering.add(id, at: loop.now) }

    func stopLingering() {
        for id in lingering.takeDue(at: loop.now) { session.abandonRequest(id) }
        pumpLater()
    }
}
