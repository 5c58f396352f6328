import CPinproxyNGHTTP2
package import PinproxyHTTPWire

extension HTTP2Session {
    // MARK: Messages

    /// Opens a stream.
    ///
    /// - Parameters:
    ///   - hasBody: the outlet supplies a body. Otherwise the head ends the stream.
    ///   - priority: schedules the body, and replaces the block's Priority field. Nil keeps the field.
    /// - Returns: nil if no stream can be opened: stream identifiers are exhausted, or a GOAWAY was sent or received.
    package func submitRequest(
        _ head: borrowing FieldBlock, hasBody: Bool, priority: HTTP2Priority? = nil
    )
        -> HTTP2StreamID?
    {
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

    /// Sends the final head of a response.
    /// - Parameter hasBody: the outlet supplies a body. Otherwise the head ends the stream.
    package func submitResponse(_ stream: HTTP2StreamID, _ head: borrowing FieldBlock, hasBody: Bool) {
        guard takesResponse(stream) else { return }
        let result = withBody(hasBody) { body in
            fields.with(head, priority: nil) { nghttp2_submit_response(handle.pointer, stream.rawValue, $0, $1, body) }
        }
        if result != 0 { refuse(stream, .unsent) }
    }

    /// Sends an interim head (1xx).
    package func submitInterim(_ stream: HTTP2StreamID, _ head: borrowing FieldBlock) {
        guard takesResponse(stream) else { return }
        fields.with(head, priority: nil) {
            _ = nghttp2_submit_headers(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.rawValue, nil, $0, $1, nil)
        }
    }

    /// Resets a stream. No event of it follows. Pending events are dropped, and their data is returned to the
    /// connection's window. A head that is queued and not yet sent is dropped too.
    package func reset(_ stream: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        dropEvents(of: stream, keepsReset: false)
        guard let place = place(of: stream.rawValue), !streams[place].flags.contains(.isReset) else { return }
        markReset(place)
        nghttp2_submit_rst_stream(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.rawValue, code.rawValue)
    }

    /// Discards the remainder of a request. After the response, the client is asked to stop sending (RST_STREAM with
    /// NO_ERROR, RFC 9113 section 8.1). Only a reset is still an event.
    package func abandonRequest(_ stream: HTTP2StreamID) {
        dropEvents(of: stream, keepsReset: true)
        guard role == .server, let place = place(of: stream.rawValue), streams[place].hearsPeer else { return }
        streams[place].flags.insert(.isAbandoned)
        let hasEnded = nghttp2_session_get_stream_local_close(handle.pointer, stream.rawValue) == 1
        if hasEnded { reset(stream, .noError) }
    }

    /// The priority of a stream's body.
    package func priority(of stream: HTTP2StreamID) -> HTTP2Priority {
        place(of: stream.rawValue).map { streams[$0].priority } ?? .unspecified
    }

    /// Reschedules a stream's body. A client also sends PRIORITY_UPDATE (RFC 9218 section 7.1).
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

    private func withBody<Result>(
        _ hasBody: Bool, _ submit: (UnsafePointer<nghttp2_data_provider>?) -> Result
    )
        -> Result
    {
        guard hasBody else { return submit(nil) }
        var body = nghttp2_data_provider(source: nghttp2_data_source(), read_callback: NGHTTP2Callbacks.read)
        return submit(&body)
    }

    // MARK: Windows

    /// Returns received bytes to a stream's window, which grows after ``growStreamWindow(to:)``.
    package func consumed(_ count: Int, of stream: HTTP2StreamID) {
        if streamWindow > initialWindow { widen(stream) }
        nghttp2_session_consume_stream(handle.pointer, stream.rawValue, count)
    }

    /// Returns received bytes to the connection's window. Return every byte of a `data` event once, even if its stream
    /// has closed.
    package func consumedOfConnection(_ count: Int) {
        nghttp2_session_consume_connection(handle.pointer, count)
    }

    /// Announces larger windows, up to ``HTTP2Limits/streamWindow``, as streams' bytes are consumed. A slow reader's
    /// stream keeps its window, which bounds what must be held for it. A smaller size is ignored.
    package func growStreamWindow(to size: Int) { streamWindow = max(streamWindow, min(size, limits.streamWindow)) }

    /// All streams together get at most ``HTTP2Limits/connectionWindow`` more than they began with.
    private func widen(_ stream: HTTP2StreamID) {
        guard !hasFailed, let place = place(of: stream.rawValue) else { return }
        let given = streams[place].widened
        let more = min(streamWindow - initialWindow - given, limits.connectionWindow - widened)
        guard more > 0 else { return }
        streams[place].widened += more
        widened += more
        nghttp2_session_set_local_window_size(
            handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.rawValue,
            Int32(clamping: initialWindow + given + more))
    }

    /// Announces a larger window of the connection, up to ``HTTP2Limits/connectionWindow``. A smaller one is ignored.
    package func growConnectionWindow(to size: Int) {
        let size = min(size, limits.connectionWindow)
        if size > connectionWindow, !hasFailed { setConnectionWindow(size) }
    }

    // MARK: The connection

    /// Releases spare memory of an idle session.
    package func trim() {
        guard events.count == 0 else { return }
        events = EventQueue()
        text.trim()
        fields = FieldVector()
        if !hasPending { pending = [] }
        if streams.openCount == 0 { streams = StreamTable() }
        if schedule.isEmpty { schedule = StreamSchedule() }
        handle.cache.trim()
    }

    /// Sends a PING. Its answer is a `pong` with the same number.
    package func ping(_ opaque: UInt64) {
        guard !hasFailed else { return }
        withUnsafeBytes(of: opaque.bigEndian) {
            _ = nghttp2_submit_ping(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), $0.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
    }

    /// Starts a graceful shutdown (RFC 9113 section 6.8): GOAWAY with the highest stream identifier. Requests in flight
    /// are still accepted. Servers only.
    package func announceGoAway() {
        if role == .server, !hasFailed { nghttp2_submit_shutdown_notice(handle.pointer) }
    }

    /// Sends the final GOAWAY. It names the last request that became an event; later ones are ignored.
    package func goAway(_ code: HTTP2ErrorCode) {
        guard !hasFailed, !hasSentGoAway else { return }
        hasSentGoAway = true
        if code != .noError { orderedGoAways += 1 }
        nghttp2_submit_goaway(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastProcessed, code.rawValue, nil, 0)
    }
}
