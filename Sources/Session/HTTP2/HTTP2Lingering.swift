import PinproxyEventLoop
import PinproxyHTTP2

/// Delays the reset after an early response (RST_STREAM with NO_ERROR, RFC 9113 section 8.1). curl 7.88 drops a
/// response that arrives together with the reset.
final class HTTP2Lingering {
    private static let nanoseconds: UInt64 = 500_000_000
    /// Beyond it the oldest stream is reset at once.
    private static let most = 256

    let deadline: Deadline
    private var streams: [(id: HTTP2StreamID, since: MonotonicTime)] = []

    init(loop: EventLoop) {
        deadline = Deadline(loop: loop)
    }

    /// - Returns: the oldest stream, if there are too many.
    func add(_ id: HTTP2StreamID, at now: MonotonicTime) -> HTTP2StreamID? {
        streams.append((id, now))
        if !deadline.isSet { deadline.set(afterNanoseconds: Self.nanoseconds) }
        return streams.count > Self.most ? streams.removeFirst().id : nil
    }

    /// Removes the streams that are due.
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
    func linger(_ id: HTTP2StreamID) {
        if let longest = lingering.add(id, at: loop.now) { session.abandonRequest(longest) }
    }

    func stopLingering() {
        for id in lingering.takeDue(at: loop.now) { session.abandonRequest(id) }
        pumpLater()
    }
}
