// HTTP2: connections of HTTP/2 over nghttp2, sans I/O: bytes in and events out, commands in and bytes out. Framing and
// HPACK are nghttp2's; policy, limits, the order of streams and the text of heads are ours.
import CNGHTTP2
import HTTPWire

/// One connection of HTTP/2 (RFC 9113), from either side.
///
/// Its owner gives it what it has read, takes the events one after the other, commands, and has it send at the end of the
/// turn, so that many streams share one read and one write:
///
/// ```
/// var rest = received
/// while !rest.isEmpty {
///     let count = session.receive(rest, at: now)
///     while let event = session.nextEvent() { handle(event, rest) }
///     rest = rest.extracting(droppingFirst: count)
/// }
/// …
/// session.send(through: outlet)
/// while let event = session.nextEvent() { handle(event) }
/// ```
///
/// It belongs to one thread, calls nothing back but the outlet in `send`, has no clock, and keeps its bounds
/// (``HTTP2Limits``). It isn't `Sendable`.
package final class HTTP2Session {
    package enum Role: Sendable { case client, server }

    package let role: Role
    let limits: HTTP2Limits
    let handle: NGHTTP2Handle

    // Exclusivity checks would cost more than the accesses: these are values that are changed by code that calls nobody, and
    // nghttp2, while it is called, changes none of them but through the callbacks of this session.

    // What was received:
    @exclusivity(unchecked) var scanner: FrameScanner
    @exclusivity(unchecked) var floods: FloodGuard
    @exclusivity(unchecked) var text: HeadText
    @exclusivity(unchecked) var events = EventQueue()
    /// Monotonic nanoseconds of the last `receive`.
    @exclusivity(unchecked) var now: UInt64 = 0
    /// The first byte that nghttp2 was given, and its offset in what `receive` was given.
    @exclusivity(unchecked) var input: (start: UnsafePointer<UInt8>?, offset: Int) = (nil, 0)
    /// nghttp2 has told of the frame that it was given.
    @exclusivity(unchecked) var isFrameTaken = false
    /// The highest stream of the peer's that was an event.
    @exclusivity(unchecked) var lastProcessed: Int32 = 0
    /// Priorities of streams whose requests haven't arrived.
    var earlyPriorities: [(HTTP2StreamID, HTTP2Priority)] = []

    // What is to be sent:
    @exclusivity(unchecked) var streams = StreamTable()
    @exclusivity(unchecked) var schedule = StreamSchedule()
    /// Taken out of the schedule; its turn lasts until it was asked.
    @exclusivity(unchecked) var current: HTTP2StreamID?
    /// Only during `send`.
    @exclusivity(unchecked) var outlet: (any HTTP2Outlet)?
    /// Serialized before there was an outlet for it.
    @exclusivity(unchecked) var pending: [UInt8] = []
    @exclusivity(unchecked) var pendingStart = 0
    /// The GOAWAY of a failure, after all that nghttp2 has serialized.
    @exclusivity(unchecked) var farewell: [UInt8] = []
    @exclusivity(unchecked) var fields = FieldVector()

    // How it stands:
    @exclusivity(unchecked) var hasFailed = false
    /// Final GOAWAYs with an error that were ordered here and aren't serialized yet.
    var orderedGoAways = 0
    var hasSentGoAway = false
    var hasReceivedGoAway = false
    var peerInitialWindow = 65_535
    /// What was announced for the connection, in bytes.
    package private(set) var connectionWindow: Int

    /// - Throws: if there is no memory for it.
    package init(_ role: Role, settings: HTTP2Settings, limits: HTTP2Limits = HTTP2Limits()) throws(HTTP2Unavailable) {
        self.role = role
        self.limits = limits
        handle = try NGHTTP2Handle(role, limits)
        scanner = FrameScanner(awaitsPreface: role == .server)
        floods = FloodGuard(limits.floods)
        text = HeadText(sizeLimit: settings.maxHeaderListSize)
        connectionWindow = max(65_535, settings.connectionWindow)
        // It outlives the callbacks: they run only within calls of its methods, which retain it.
        nghttp2_session_set_user_data(handle.pointer, Unmanaged.passUnretained(self).toOpaque())
        announce(settings)
    }

    private func announce(_ settings: HTTP2Settings) {
        var entries: [nghttp2_settings_entry] = []
        func add(_ id: nghttp2_settings_id, _ value: Int) {
            entries.append(nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value)))
        }
        if role == .server {
            add(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, settings.maxConcurrentStreams)
            if settings.enablesConnectProtocol { add(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1) }
        } else {
            add(NGHTTP2_SETTINGS_ENABLE_PUSH, 0)
        }
        add(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.initialWindow)
        if settings.maxFrameSize != 16_384 { add(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, settings.maxFrameSize) }
        add(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.maxHeaderListSize)
        if settings.headerTableSize != 4096 { add(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.headerTableSize) }
        add(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1)
        nghttp2_submit_settings(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        setConnectionWindow(connectionWindow)
    }

    func setConnectionWindow(_ size: Int) {
        connectionWindow = size
        nghttp2_session_set_local_window_size(
            handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(clamping: size))
    }

    // MARK: How it stands

    /// Streams that are open, those included that wait for the peer to allow more.
    package var openStreams: Int { streams.openCount }

    /// Streams that the peer allows at one time; 100 until its settings are known. A request beyond waits in the session.
    package var maxConcurrentStreams: Int { Int(remoteSetting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)) }

    /// The peer takes extended CONNECTs (RFC 8441).
    package var acceptsConnectProtocol: Bool { remoteSetting(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1 }

    /// No stream may be opened any more, from whichever side has said so.
    package var isGoingAway: Bool { hasReceivedGoAway || hasSentGoAway || hasFailed }

    /// Whether a request can still be opened.
    package var takesRequests: Bool {
        role == .client && !isGoingAway && nghttp2_session_check_request_allowed(handle.pointer) != 0
    }

    /// Something may still come or go: the connection is to be kept. What is queued is sent before.
    package var wantsToLive: Bool {
        if hasPending { return true }
        return !hasFailed
            && (nghttp2_session_want_read(handle.pointer) != 0 || nghttp2_session_want_write(handle.pointer) != 0)
    }

    /// `send` has something to do, if the peer's windows are open.
    package var wantsToSend: Bool {
        if hasPending { return true }
        guard !hasFailed else { return false }
        return nghttp2_session_want_write(handle.pointer) != 0
            || !schedule.isEmpty && nghttp2_session_get_remote_window_size(handle.pointer) > 0
    }

    /// So much is queued for a peer that doesn't read that nothing more should be read from it.
    package var isClogged: Bool { nghttp2_session_get_outbound_queue_size(handle.pointer) > limits.queuedFrames }

    /// What may be sent on a stream now, in bytes.
    package func remoteWindow(of stream: HTTP2StreamID) -> Int {
        let ofStream = nghttp2_session_get_stream_remote_window_size(handle.pointer, stream.rawValue)
        return max(0, Int(min(ofStream, nghttp2_session_get_remote_window_size(handle.pointer))))
    }

    /// What may be sent on all streams together now, in bytes.
    package var remoteWindow: Int { max(0, Int(nghttp2_session_get_remote_window_size(handle.pointer))) }

    var hasPending: Bool { pendingStart < pending.count || !farewell.isEmpty }

    func remoteSetting(_ id: nghttp2_settings_id) -> UInt32 { nghttp2_session_get_remote_settings(handle.pointer, id) }

    func place(of stream: Int32) -> StreamTable.Place? {
        if let userData = nghttp2_session_get_stream_user_data(handle.pointer, stream) { return streams.place(userData) }
        // nghttp2 doesn't find a request that hasn't left.
        return role == .client ? streams.place(of: HTTP2StreamID(stream)) : nil
    }
}

/// There is no memory for a session.
package struct HTTP2Unavailable: Error, Sendable {}

/// What happened and wasn't taken yet.
struct EventQueue {
    private var events: [HTTP2Event] = []
    private var first = 0

    var count: Int { events.count - first }

    mutating func append(_ event: HTTP2Event) { events.append(event) }

    mutating func next() -> HTTP2Event? {
        guard first < events.count else {
            if first > 0 {
                events.removeAll(keepingCapacity: true)
                first = 0
            }
            return nil
        }
        first += 1
        return events[first - 1]
    }

    /// Drops what belongs to a stream, perhaps but its reset; returns the bytes of data among it.
    mutating func drop(_ stream: HTTP2StreamID, keepsReset: Bool) -> Int {
        guard first < events.count else { return 0 }
        var dropped = 0
        var kept = first
        for index in first..<events.count {
            if case .reset = events[index], keepsReset {
                events.swapAt(kept, index)
                kept += 1
            } else if events[index].stream == stream {
                if case .data(_, let range) = events[index] { dropped += range.count }
            } else {
                events.swapAt(kept, index)
                kept += 1
            }
        }
        events.removeLast(events.count - kept)
        return dropped
    }
}
