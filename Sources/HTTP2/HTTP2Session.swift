// HTTP2: HTTP/2 sessions over nghttp2, sans I/O: bytes in and events out, commands in and bytes out. nghttp2 does
// framing and HPACK; policy, limits, scheduling and the text of heads are here.
import CPinproxyNGHTTP2
import PinproxyHTTPWire

/// One end of an HTTP/2 connection (RFC 9113), client or server.
///
/// The owner passes received bytes in, handles the events, and sends at the end of the turn, so that many streams share
/// one read and one write:
///
/// ```
/// var input = received
/// while !input.isEmpty {
///     let count = session.receive(input, at: now)
///     while let event = session.nextEvent() { handle(event, input) }
///     input = input.extracting(droppingFirst: count)
/// }
/// …
/// session.send(through: outlet)
/// while let event = session.nextEvent() { handle(event) }
/// ```
///
/// A session belongs to one thread. It has no clock, its memory is bounded (``HTTP2Limits``), and it calls back only
/// the outlet, within `send`.
package final class HTTP2Session {
    package enum Role: Sendable { case client, server }

    package let role: Role
    let limits: HTTP2Limits
    let handle: NGHTTP2Handle

    // Exclusivity checks would cost more than the accesses. No access to one of these values calls code that accesses
    // it again: nghttp2 is never called while one is being changed.

    // Receiving:
    @exclusivity(unchecked) var scanner: FrameScanner
    @exclusivity(unchecked) var floods: FloodGuard
    @exclusivity(unchecked) var text: HeadText
    @exclusivity(unchecked) var events = EventQueue()
    /// Monotonic nanoseconds of the last `receive`.
    @exclusivity(unchecked) var now: UInt64 = 0
    /// The first byte passed to nghttp2, and its offset in the bytes passed to `receive`.
    @exclusivity(unchecked) var input: (start: UnsafePointer<UInt8>?, offset: Int) = (nil, 0)
    /// nghttp2 reported the current frame.
    @exclusivity(unchecked) var isFrameTaken = false
    /// The highest stream of the peer that became an event.
    @exclusivity(unchecked) var lastProcessed: Int32 = 0
    /// Priorities that arrived before their requests.
    @exclusivity(unchecked) var earlyPriorities: [(HTTP2StreamID, HTTP2Priority)] = []

    // Sending:
    @exclusivity(unchecked) var streams = StreamTable()
    @exclusivity(unchecked) var schedule = StreamSchedule()
    /// The stream that is being sent; no longer in the schedule.
    @exclusivity(unchecked) var current: HTTP2StreamID?
    /// Set during `send`.
    @exclusivity(unchecked) var outlet: (any HTTP2Outlet)?
    /// Serialized bytes that wait for an outlet.
    @exclusivity(unchecked) var pending: [UInt8] = []
    @exclusivity(unchecked) var pendingStart = 0
    /// The GOAWAY of a failure, sent after `pending`.
    @exclusivity(unchecked) var farewell: [UInt8] = []
    @exclusivity(unchecked) var fields = FieldVector()

    // State:
    @exclusivity(unchecked) var hasFailed = false
    /// The flood that the session failed for, if any.
    package internal(set) var flood: HTTP2Flood?
    /// The owner's GOAWAYs with an error code that aren't serialized yet.
    @exclusivity(unchecked) var orderedGoAways = 0
    @exclusivity(unchecked) var hasSentGoAway = false
    @exclusivity(unchecked) var hasReceivedGoAway = false
    var peerInitialWindow = 65_535
    /// The flow-control window that streams get, once their bytes are consumed.
    @exclusivity(unchecked) var streamWindow: Int
    let initialWindow: Int
    /// Growth of all open streams' windows, in bytes.
    @exclusivity(unchecked) var widened = 0
    /// The announced receive window of the connection, in bytes.
    package private(set) var connectionWindow: Int

    /// - Throws: if memory is exhausted.
    package init(_ role: Role, settings: HTTP2Settings, limits: HTTP2Limits = HTTP2Limits()) throws(HTTP2Unavailable) {
        self.role = role
        self.limits = limits
        handle = try NGHTTP2Handle(role, limits)
        scanner = FrameScanner(awaitsPreface: role == .server)
        floods = FloodGuard(limits.floods)
        text = HeadText(sizeLimit: settings.maxHeaderListSize)
        connectionWindow = max(65_535, settings.connectionWindow)
        initialWindow = settings.initialWindow
        streamWindow = settings.initialWindow
        // The session outlives the callbacks: they run only within its methods, and the methods' callers retain it.
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

    // MARK: State

    /// Open streams, including requests that wait for a free stream of the peer.
    package var openStreams: Int { streams.openCount }

    /// The peer's limit of concurrent streams; 100 until its settings arrive. Further requests wait in the session.
    package var maxConcurrentStreams: Int { Int(remoteSetting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)) }

    /// The peer accepts extended CONNECT (RFC 8441).
    package var acceptsConnectProtocol: Bool { remoteSetting(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1 }

    /// A GOAWAY was sent or received, or the session failed: no new streams.
    package var isGoingAway: Bool { hasReceivedGoAway || hasSentGoAway || hasFailed }

    /// Whether a request can be submitted.
    package var takesRequests: Bool {
        role == .client && !isGoingAway && nghttp2_session_check_request_allowed(handle.pointer) != 0
    }

    /// Whether the head of a request still waits here, so that the peer can have done nothing for it.
    package func isUnsent(_ stream: HTTP2StreamID) -> Bool {
        role == .client && nghttp2_session_find_stream(handle.pointer, stream.rawValue) == nil
            && streams.place(of: stream) != nil
    }

    /// False: nothing can be received or sent any more; close the connection.
    package var wantsToLive: Bool {
        if hasPending { return true }
        return !hasFailed
            && (nghttp2_session_want_read(handle.pointer) != 0 || nghttp2_session_want_write(handle.pointer) != 0)
    }

    /// Whether `send` would write something. Bodies may still be deferred or blocked by a stream's window.
    package var wantsToSend: Bool {
        if hasPending { return true }
        guard !hasFailed else { return false }
        return nghttp2_session_want_write(handle.pointer) != 0
            || !schedule.isEmpty && nghttp2_session_get_remote_window_size(handle.pointer) > 0
    }

    /// Too many frames are queued for a peer that doesn't read: stop reading from it.
    package var isClogged: Bool { nghttp2_session_get_outbound_queue_size(handle.pointer) > limits.queuedFrames }

    /// The smaller of a stream's and the connection's send window, in bytes; never negative.
    package func remoteWindow(of stream: HTTP2StreamID) -> Int {
        let ofStream = nghttp2_session_get_stream_remote_window_size(handle.pointer, stream.rawValue)
        return max(0, Int(min(ofStream, nghttp2_session_get_remote_window_size(handle.pointer))))
    }

    /// The connection's send window, in bytes; never negative.
    package var remoteWindow: Int { max(0, Int(nghttp2_session_get_remote_window_size(handle.pointer))) }

    var hasPending: Bool { pendingStart < pending.count || !farewell.isEmpty }

    func remoteSetting(_ id: nghttp2_settings_id) -> UInt32 { nghttp2_session_get_remote_settings(handle.pointer, id) }

    func place(of stream: Int32) -> StreamTable.Place? {
        if let userData = nghttp2_session_get_stream_user_data(handle.pointer, stream) {
            return streams.place(userData)
        }
        // nghttp2 doesn't find a request that isn't serialized yet.
        return role == .client ? streams.place(of: HTTP2StreamID(stream)) : nil
    }
}

/// Memory for a session is exhausted.
package struct HTTP2Unavailable: Error, Sendable {}

/// The pending events.
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

    mutating func takeEnd(of stream: HTTP2StreamID) -> Bool {
        guard first < events.count, case .ended(stream) = events[first] else { return false }
        first += 1
        return true
    }

    mutating func takeRest(of stream: HTTP2StreamID) -> Range<Int>? {
        guard first + 1 < events.count, case .data(stream, let range) = events[first],
            case .ended(stream) = events[first + 1]
        else { return nil }
        first += 2
        return range
    }

    func endsSoon(_ stream: HTTP2StreamID) -> Bool {
        for index in first..<min(first + 2, events.count) {
            switch events[index] {
            case .data(let id, _) where id == stream: continue
            case .ended(let id): return id == stream
            default: return false
            }
        }
        return false
    }

    /// Drops a stream's events; returns the bytes of data among them.
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
