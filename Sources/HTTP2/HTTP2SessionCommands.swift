import CNGHTTP2
package import HTTPWire

extension HTTP2Session {
    // MARK: Messages

    /// Opens a stream.
    ///
    /// - Parameters:
    ///   - hasBody: the outlet is asked for it, at once.
    ///   - priority: orders this body among others, and takes the place of the block's Priority field. Nil: that field
    ///     stays, and the body shares the connection.
    /// - Returns: nil: no stream can be opened any more, since their numbers are used up, or a GOAWAY came or was sent.
    package func submitRequest(_ head: borrowing FieldBlock, hasBody: Bool, priority: HTTP2Priority? = nil) -> HTTP2StreamID? {
        guard takesRequests else { return nil }
        let next = HTTP2StreamID(Int32(truncatingIfNeeded: nghttp2_session_get_next_stream_id(handle.pointer)))
        let place = streams.open(next, priority ?? .unspecified)
        streams[place].flags.insert(.isKnown)
        let id = withBody(hasBody) { body in
            fields.with(head, priority: priority) {
                nghttp2_submit_request(handle.pointer, nil, $0, $1, body, place.userData)
            }
        }
        guard id > 0 else {
            streams.close(place)
            return nil
        }
        floods.openedStream()
        return next
    }

    /// Answers a stream with its final head.
    /// - Parameter hasBody: the outlet is asked for it, at once; otherwise the head ends the stream.
    package func submitResponse(_ stream: HTTP2StreamID, _ head: borrowing FieldBlock, hasBody: Bool) {
        guard takesResponse(stream) else { return }
        let result = withBody(hasBody) { body in
            fields.with(head, priority: nil) { nghttp2_submit_response(handle.pointer, stream.rawValue, $0, $1, body) }
        }
        if result != 0 { refuse(stream, .unsent, .internalError) }
    }

    /// Sends an interim head (1xx).
    package func submitInterim(_ stream: HTTP2StreamID, _ head: borrowing FieldBlock) {
        guard takesResponse(stream) else { return }
        fields.with(head, priority: nil) {
            _ = nghttp2_submit_headers(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.rawValue, nil, $0, $1, nil)
        }
    }

    /// Ends a stream from here. No event of it follows, not even one that wasn't taken yet: the bytes of data among those
    /// are returned to the connection's window.
    package func reset(_ stream: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        dropEvents(of: stream, keepsReset: false)
        guard let place = place(of: stream.rawValue), !streams[place].flags.contains(.isReset) else { return }
        markReset(place)
        nghttp2_submit_rst_stream(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.rawValue, code.rawValue)
    }

    /// The rest of a request isn't needed: what comes of it is thrown away, and when the response has ended, the client is
    /// told to stop (RST_STREAM with NO_ERROR, RFC 9113 section 8.1). Events that weren't taken are dropped.
    package func abandonRequest(_ stream: HTTP2StreamID) {
        dropEvents(of: stream, keepsReset: true)
        guard role == .server, let place = place(of: stream.rawValue), streams[place].hearsPeer else { return }
        streams[place].flags.insert(.isAbandoned)
        let hasEnded = nghttp2_session_get_stream_local_close(handle.pointer, stream.rawValue) == 1
        if hasEnded { reset(stream, .noError) }
    }

    /// Orders a stream's body among those that are sent. A client tells the peer as well (RFC 9218 section 7.1).
    package func setPriority(_ priority: HTTP2Priority, of stream: HTTP2StreamID) {
        guard let place = place(of: stream.rawValue) else { return }
        reschedule(place, priority)
        guard role == .client, !hasFailed else { return }
        var text = priority.description
        text.withUTF8 {
            _ = nghttp2_submit_priority_update(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.rawValue, $0.baseAddress, $0.count)
        }
    }

    private func dropEvents(of stream: HTTP2StreamID, keepsReset: Bool) {
        let dropped = events.drop(stream, keepsReset: keepsReset)
        if dropped > 0 { consumedOfConnection(dropped) }
    }

    private func takesResponse(_ stream: HTTP2StreamID) -> Bool {
        guard role == .server, !hasFailed, let place = place(of: stream.rawValue) else { return false }
        return !streams[place].flags.contains(.isReset)
    }

    private func withBody<Result>(_ hasBody: Bool, _ submit: (UnsafePointer<nghttp2_data_provider>?) -> Result) -> Result {
        guard hasBody else { return submit(nil) }
        var body = nghttp2_data_provider(source: nghttp2_data_source(), read_callback: NGHTTP2Callbacks.read)
        return submit(&body)
    }

    // MARK: Windows

    /// Bytes of a stream's body have gone on: the peer may send so many more on the stream.
    package func consumed(_ count: Int, of stream: HTTP2StreamID) {
        nghttp2_session_consume_stream(handle.pointer, stream.rawValue, count)
    }

    /// Bytes of any stream's body have gone on, or were thrown away: the peer may send so many more on the connection.
    package func consumedOfConnection(_ count: Int) {
        nghttp2_session_consume_connection(handle.pointer, count)
    }

    /// Announces a larger window of streams, those that are open included.
    package func growStreamWindow(to size: Int) {
        guard !hasFailed else { return }
        var entry = nghttp2_settings_entry(
            settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
            value: UInt32(clamping: min(size, limits.streamWindow)))
        nghttp2_submit_settings(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), &entry, 1)
    }

    /// Announces a larger window of the connection; never a smaller one.
    package func growConnectionWindow(to size: Int) {
        let size = min(size, limits.connectionWindow)
        if size > connectionWindow, !hasFailed { setConnectionWindow(size) }
    }

    // MARK: The connection

    /// The connection rests: what bursts have taken is given back.
    package func trim() {
        guard events.count == 0 else { return }
        events = EventQueue()
        text.trim()
        fields = FieldVector()
        if !hasPending { pending = [] }
        if streams.openCount == 0 { streams = StreamTable() }
        if schedule.isEmpty { schedule = StreamSchedule() }
    }

    /// Asks for an answer, which is a `pong` with the same number.
    package func ping(_ opaque: UInt64) {
        guard !hasFailed else { return }
        withUnsafeBytes(of: opaque.bigEndian) {
            _ = nghttp2_submit_ping(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), $0.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
    }

    /// The first GOAWAY of a graceful end: the client is to open no more streams, and those on their way are still served
    /// (RFC 9113 section 6.8). A client has no need for it.
    package func announceGoAway() {
        if role == .server, !hasFailed { nghttp2_submit_shutdown_notice(handle.pointer) }
    }

    /// The last GOAWAY: streams after the last one that was an event aren't processed, the others go on.
    package func goAway(_ code: HTTP2ErrorCode) {
        guard !hasFailed, !hasSentGoAway else { return }
        hasSentGoAway = true
        if code != .noError { orderedGoAways += 1 }
        nghttp2_submit_goaway(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastProcessed, code.rawValue, nil, 0)
    }
}
