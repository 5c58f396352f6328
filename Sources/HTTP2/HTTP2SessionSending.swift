import CPinproxyNGHTTP2
import PinproxyHTTPWire

extension HTTP2Session {
    /// Writes pending frames while the outlet has room: control frames and heads, then bodies in the order of
    /// ``StreamSchedule``. It may produce events.
    package func send(through outlet: any HTTP2Outlet) {
        guard sendPending(through: outlet), !hasFailed else { return }
        self.outlet = outlet
        serializeAll(through: outlet)
        self.outlet = nil
        if hasFailed { _ = sendPending(through: outlet) }
    }

    private func serializeAll(through outlet: any HTTP2Outlet) {
        while serialize(while: { outlet.hasRoom }, { outlet.write(RawSpan(_unsafeBytes: $0)) }) {
            // nghttp2 has no frame left: the next stream's turn.
            current = nil
            guard outlet.hasRoom, nghttp2_session_get_remote_window_size(handle.pointer) > 0, let next = takeScheduled()
            else { return }
            current = next
            // A stream without send window is scheduled again when its window opens.
            nghttp2_session_resume_data(handle.pointer, next.rawValue)
        }
    }

    /// More of a stream's body is available, or its end.
    package func resume(_ stream: HTTP2StreamID) {
        guard let place = place(of: stream.rawValue), !streams[place].flags.contains(.isReset) else { return }
        enqueue(place)
    }

    // MARK: Serializing

    /// False: the session failed.
    private func serialize(while hasRoom: () -> Bool, _ write: (UnsafeRawBufferPointer) -> Void) -> Bool {
        while hasRoom() {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(handle.pointer, &bytes)
            if count == 0 { return true }
            if count < 0 {
                fail(because: CInt(count))
                return false
            }
            write(UnsafeRawBufferPointer(start: bytes, count: count))
            if hasFailed { return false }
        }
        return true
    }

    /// Serializes nghttp2's queued frames into `pending`, which reports them.
    func serializeOrders() {
        _ = serialize(while: { true }, { pending.append(contentsOf: $0) })
    }

    private static let pieceLength = 16_384

    /// False: the outlet is full.
    private func sendPending(through outlet: any HTTP2Outlet) -> Bool {
        if !farewell.isEmpty {
            pending += farewell
            farewell = []
        }
        while pendingStart < pending.count {
            guard outlet.hasRoom else { return false }
            let end = min(pending.count, pendingStart + Self.pieceLength)
            outlet.write(pending.span.extracting(pendingStart..<end).bytes)
            pendingStart = end
        }
        if pendingStart > 0 {
            pending.removeAll(keepingCapacity: pending.capacity <= Self.pieceLength)
            pendingStart = 0
        }
        return true
    }

    // MARK: Bodies

    private func enqueue(_ place: StreamTable.Place) {
        guard !streams[place].flags.contains(.isScheduled) else { return }
        streams[place].flags.insert(.isScheduled)
        schedule.insert(streams[place].id, streams[place].priority)
    }

    private func takeScheduled() -> HTTP2StreamID? {
        guard let stream = schedule.removeFirst() else { return nil }
        if let place = place(of: stream.rawValue) { streams[place].flags.remove(.isScheduled) }
        return stream
    }

    func unschedule(_ place: StreamTable.Place) {
        guard streams[place].flags.contains(.isScheduled) else { return }
        streams[place].flags.remove(.isScheduled)
        schedule.remove(streams[place].id, streams[place].priority)
    }

    func reschedule(_ place: StreamTable.Place, _ priority: HTTP2Priority) {
        let isScheduled = streams[place].flags.contains(.isScheduled)
        unschedule(place)
        streams[place].priority = priority
        if isScheduled { enqueue(place) }
    }

    /// Supplies a body to nghttp2, which asks in another order than the schedule's. Other streams are deferred and
    /// scheduled.
    func supply(_ stream: HTTP2StreamID, _ most: Int, _ flags: inout UInt32) -> Int {
        if current != stream {
            guard let place = place(of: stream.rawValue) else { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
            enqueue(place)
            guard outlet != nil, current == nil, schedule.first == stream else {
                return Int(NGHTTP2_ERR_DEFERRED.rawValue)
            }
            current = takeScheduled()
        }
        guard let outlet else { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
        let (count, isLast) = outlet.available(of: stream, most: most)
        guard count > 0 || isLast else {
            current = nil
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if isLast {
            flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
            if let trailers = outlet.trailers(of: stream), !trailers.fields.isEmpty {
                flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
                fields.with(trailers, priority: nil) {
                    _ = nghttp2_submit_trailer(handle.pointer, stream.rawValue, $0, $1)
                }
            }
            if count == 0 { current = nil }
        }
        return count
    }

    func sendData(_ frame: nghttp2_frame_hd, _ header: UnsafePointer<UInt8>, _ count: Int) -> CInt {
        guard let outlet else { return CInt(NGHTTP2_ERR_WOULDBLOCK.rawValue) }
        let stream = HTTP2StreamID(frame.stream_id)
        outlet.write(RawSpan(_unsafeStart: header, byteCount: FrameHeader.length))
        if count > 0 { outlet.writeBody(count, of: stream) }
        floods.sentData()
        if current == stream { current = nil }
        // The stream's next turn.
        if frame.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) == 0, let place = place(of: stream.rawValue) {
            enqueue(place)
        }
        return outlet.hasRoom ? 0 : CInt(NGHTTP2_ERR_PAUSE.rawValue)
    }

    // MARK: Sent frames

    func frameSent(_ frame: UnsafePointer<nghttp2_frame>) {
        let header = frame.pointee.hd
        switch UInt32(header.type) {
        case NGHTTP2_DATA.rawValue, NGHTTP2_HEADERS.rawValue:
            guard role == .server, header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 else { return }
            stopAbandoned(header.stream_id)
        case NGHTTP2_RST_STREAM.rawValue:
            // Known unless nghttp2 resets the stream itself.
            noteMalformed(
                HTTP2StreamID(header.stream_id), .frame(HTTP2ErrorCode(rawValue: frame.pointee.rst_stream.error_code)))
        case NGHTTP2_GOAWAY.rawValue:
            let code = HTTP2ErrorCode(rawValue: frame.pointee.goaway.error_code)
            if code == .noError { return }
            if orderedGoAways > 0 {
                orderedGoAways -= 1
                return
            }
            let debug = UnsafeBufferPointer(
                start: frame.pointee.goaway.opaque_data, count: frame.pointee.goaway.opaque_data_len)
            noteFailure(code, String(decoding: debug, as: UTF8.self))
        default: break
        }
    }

    /// The response ended before the request.
    private func stopAbandoned(_ stream: Int32) {
        guard let place = place(of: stream), streams[place].flags.contains(.isAbandoned),
            nghttp2_session_get_stream_remote_close(handle.pointer, stream) == 0
        else { return }
        reset(HTTP2StreamID(stream), .noError)
    }

    func frameNotSent(_ frame: nghttp2_frame_hd) {
        guard UInt32(frame.type) == NGHTTP2_HEADERS.rawValue, let place = place(of: frame.stream_id),
            !streams[place].flags.contains(.isReset)
        else { return }
        // nghttp2 closes the stream of a request itself, as refused.
        if role == .server { refuse(HTTP2StreamID(frame.stream_id), .unsent) }
    }

    func streamClosed(_ stream: Int32, _ code: HTTP2ErrorCode) {
        guard let place = place(of: stream) else { return }
        unschedule(place)
        if current?.rawValue == stream { current = nil }
        if streams[place].isToBeHeardOf, !hasFailed {
            if code == .noError { floods.streamEnded() } else { events.append(.reset(HTTP2StreamID(stream), code)) }
        }
        widened -= streams[place].widened
        streams.close(place)
    }
}
