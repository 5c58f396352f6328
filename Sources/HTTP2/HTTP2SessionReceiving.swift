import CPinproxyNGHTTP2
package import PinproxyHTTPWire

extension HTTP2Session {
    /// Processes received bytes. Ranges in the resulting events are offsets into `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: continue those consumed before.
    ///   - now: monotonic nanoseconds.
    /// - Returns: the number of bytes consumed. Fewer than `bytes.count`: ``HTTP2Limits/events`` or
    ///   ``HTTP2Limits/headText`` is reached; handle the events, then pass the other bytes. After `failed`, all bytes
    ///   are ignored.
    package func receive(_ bytes: Span<UInt8>, at now: UInt64) -> Int {
        self.now = now
        text.nextRound()
        guard !hasFailed else { return bytes.count }
        return bytes.withUnsafeBufferPointer { take($0) }
    }

    /// The next event, or nil.
    package func nextEvent() -> HTTP2Event? { events.next() }

    /// Takes the next event if it is the end of that stream's message.
    package func takeEnd(of stream: HTTP2StreamID) -> Bool { events.takeEnd(of: stream) }

    /// Takes the next two events if they are all of the stream's body and its end.
    package func takeRest(of stream: HTTP2StreamID) -> Range<Int>? { events.takeRest(of: stream) }

    /// Whether the next event, or the one after some data, ends the stream's message: all of it has arrived.
    package func endsSoon(_ stream: HTTP2StreamID) -> Bool { events.endsSoon(stream) }

    /// Parses a request's head. Its text is copied into `bytes`; the ranges of `head` refer to them.
    ///
    /// - Returns: `complete`, `malformed`, or for a head over the limits `tooManyFields` or `tooLarge`. After
    ///   `tooLarge`, `head` holds the fields below the limit, for the refusal.
    package func readRequest(
        _ place: HTTP2HeadPlace, into head: inout RequestHead, bytes: inout [UInt8]
    )
        -> HeadProgress
    {
        guard text.read(place, into: &bytes) else { return .malformed(WireError(.requestLine, at: 0)) }
        return place.progress(head.parseHTTP2(bytes.span, place.framing))
    }

    /// - Parameter method: of the request; `connect` for an extended CONNECT.
    package func readResponse(
        _ place: HTTP2HeadPlace, to method: Method, into head: inout ResponseHead, bytes: inout [UInt8]
    ) -> HeadProgress {
        guard text.read(place, into: &bytes) else { return .malformed(WireError(.statusLine, at: 0)) }
        return place.progress(head.parseHTTP2(bytes.span, to: method, place.framing))
    }

    // MARK: Frame by frame

    /// Passes one frame at a time to nghttp2, or a part of one. Each frame is counted first, and its effect is known at
    /// once.
    private func take(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        guard let start = bytes.baseAddress else { return 0 }
        var position = 0
        while position < bytes.count, !hasFailed {
            guard events.count < limits.events, text.count < limits.headText else { return position }
            let from = position
            var endsFrame = false
            switch scanner.next(in: bytes.span, from: position) {
            case .partialHeader(let count): return position + count
            case .payload(let count, let ends):
                position += count
                endsFrame = ends
            case .header(let header, let count):
                if let flood = floods.received(header, at: now) {
                    fail(because: flood)
                    return bytes.count
                }
                if count < FrameHeader.length {
                    // nghttp2 counts a CONTINUATION for each part of its header.
                    let whole = scanner.partialHeader
                    whole.span.withUnsafeBufferPointer { feed($0.baseAddress!, $0.count, offset: 0) }
                    position += count
                    if header.length == 0 { noteEnd(of: header) }
                    continue
                }
                position += count
                endsFrame = header.length == 0
                if header.length > 0, position < bytes.count,
                    case .payload(let count, let ends) = scanner.next(in: bytes.span, from: position)
                {
                    position += count
                    endsFrame = ends
                }
            }
            feed(start + from, position - from, offset: from)
            if endsFrame, let frame = scanner.frame { noteEnd(of: frame) }
        }
        return hasFailed ? bytes.count : position
    }

    private func feed(_ start: UnsafePointer<UInt8>, _ count: Int, offset: Int) {
        input = (start, offset)
        isFrameTaken = false
        let queued = nghttp2_session_get_outbound_queue_size(handle.pointer)
        let result = nghttp2_session_mem_recv(handle.pointer, start, count)
        input = (nil, 0)
        if result < 0 { return fail(because: CInt(result)) }
        // nghttp2 queued a reset or a GOAWAY without calling back.
        if !hasFailed, !isFrameTaken, nghttp2_session_get_outbound_queue_size(handle.pointer) > queued {
            serializeOrders()
        }
    }

    private func noteEnd(of frame: FrameHeader) {
        guard !isFrameTaken, !hasFailed, let flood = floods.ignored(frame, at: now) else { return }
        fail(because: flood)
    }

    // MARK: Callbacks of nghttp2

    func beginHead(_ frame: nghttp2_headers) -> CInt {
        let stream = HTTP2StreamID(frame.hd.stream_id)
        switch frame.cat {
        case NGHTTP2_HCAT_REQUEST:
            let place = streams.open(stream, takeEarlyPriority(of: stream) ?? .unspecified)
            nghttp2_session_set_stream_user_data(handle.pointer, stream.rawValue, place.userData)
            text.begin(.request)
        case NGHTTP2_HCAT_HEADERS where role == .server: text.begin(.trailers)
        default:
            let hasResponse = place(of: stream.rawValue).map { streams[$0].flags.contains(.hasResponse) } ?? true
            text.begin(hasResponse ? .trailers : .response)
        }
        return 0
    }

    func takeField(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, _ flags: UInt8, of stream: Int32
    ) -> CInt {
        let isNeverIndexed = flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0
        guard let defect = text.add(name, value, isNeverIndexed: isNeverIndexed) else { return 0 }
        refuse(HTTP2StreamID(stream), defect)
        return CInt(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }

    func takeData(_ stream: Int32, _ bytes: UnsafePointer<UInt8>, _ count: Int) {
        guard let start = input.start, let place = place(of: stream), streams[place].hearsPeer else {
            return consumedOfConnection(count)
        }
        let offset = input.offset + (bytes - start)
        events.append(.data(HTTP2StreamID(stream), offset..<offset + count))
    }

    func takeFrame(_ frame: UnsafePointer<nghttp2_frame>) {
        isFrameTaken = true
        let header = frame.pointee.hd
        let stream = HTTP2StreamID(header.stream_id)
        let endsStream = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch UInt32(header.type) {
        case NGHTTP2_DATA.rawValue:
            guard endsStream else {
                guard header.length > 0, header.length == frame.pointee.data.padlen,
                    let flood = floods.receivedPadding(at: now)
                else { return }
                return fail(because: flood)
            }
            guard let place = place(of: stream.rawValue), streams[place].hearsPeer else { return }
            events.append(.ended(stream))
        case NGHTTP2_HEADERS.rawValue: endHead(frame.pointee.headers.cat, stream, endsStream)
        case NGHTTP2_RST_STREAM.rawValue:
            guard let place = place(of: stream.rawValue), streams[place].isToBeHeardOf else { return }
            markReset(place)
            events.append(.reset(stream, HTTP2ErrorCode(rawValue: frame.pointee.rst_stream.error_code)))
        case NGHTTP2_SETTINGS.rawValue:
            if header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0 { noteSettings() }
        case NGHTTP2_PING.rawValue:
            guard header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 else { return }
            let opaque = withUnsafeBytes(of: frame.pointee.ping.opaque_data) { $0.loadUnaligned(as: UInt64.self) }
            events.append(.pong(UInt64(bigEndian: opaque)))
        case NGHTTP2_GOAWAY.rawValue: noteGoAway(frame.pointee.goaway)
        case NGHTTP2_WINDOW_UPDATE.rawValue:
            if stream.rawValue == 0 { return events.append(.windowOpened(nil)) }
            guard let place = place(of: stream.rawValue), streams[place].isToBeHeardOf else { return }
            events.append(.windowOpened(stream))
        case NGHTTP2_PRIORITY_UPDATE.rawValue: notePriority(frame.pointee.ext)
        default: break
        }
    }

    private func endHead(_ category: nghttp2_headers_category, _ stream: HTTP2StreamID, _ ends: Bool) {
        switch text.sectionKind {
        case .request:
            let head = text.endHead(ends: ends)
            lastProcessed = stream.rawValue
            if let place = place(of: stream.rawValue) {
                streams[place].flags.insert(.isKnown)
                if let priority = head.priority { streams[place].priority = priority }
            }
            events.append(.request(stream, head, ends: ends))
        case .response:
            let isInterim = text.isInterim
            if !isInterim, let place = place(of: stream.rawValue) { streams[place].flags.insert(.hasResponse) }
            events.append(.response(stream, text.endHead(ends: ends), ends: ends))
        case .trailers:
            switch text.endTrailers() {
            case .success(let trailers):
                guard let place = place(of: stream.rawValue), streams[place].hearsPeer else { return }
                events.append(.trailers(stream, trailers))
            case .failure(let defect): refuse(stream, defect)
            }
        }
    }

    private func noteSettings() {
        events.append(.settings)
        let window = Int(remoteSetting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE))
        if window > peerInitialWindow { events.append(.windowOpened(nil)) }
        peerInitialWindow = window
    }

    private func noteGoAway(_ frame: nghttp2_goaway) {
        hasReceivedGoAway = true
        let debug = UnsafeBufferPointer(start: frame.opaque_data, count: min(frame.opaque_data_len, 256))
        events.append(
            .goAway(
                lastStream: HTTP2StreamID(frame.last_stream_id), HTTP2ErrorCode(rawValue: frame.error_code),
                debug: String(decoding: debug, as: UTF8.self)))
    }

    private func notePriority(_ frame: nghttp2_extension) {
        guard let payload = frame.payload?.assumingMemoryBound(to: nghttp2_ext_priority_update.self).pointee else {
            return
        }
        let value = UnsafeBufferPointer(start: payload.field_value, count: payload.field_value_len)
        guard let priority = HTTP2Priority(parsing: value.span) else { return }
        let stream = HTTP2StreamID(payload.stream_id)
        if let place = place(of: stream.rawValue) {
            reschedule(place, priority)
        } else {
            guard stream.rawValue > lastProcessed, stream.rawValue & 1 == 1 else { return }
            earlyPriorities.removeAll { $0.0 == stream || $0.0.rawValue <= lastProcessed }
            guard earlyPriorities.count < Self.earlyPriorityLimit else { return }
            earlyPriorities.append((stream, priority))
        }
        events.append(.priority(stream, priority))
    }

    private static let earlyPriorityLimit = 32

    private func takeEarlyPriority(of stream: HTTP2StreamID) -> HTTP2Priority? {
        guard !earlyPriorities.isEmpty, let index = earlyPriorities.firstIndex(where: { $0.0 == stream }) else {
            return nil
        }
        return earlyPriorities.remove(at: index).1
    }

    func noteInvalid(_ frame: nghttp2_frame_hd, _ error: CInt) {
        let defect: HTTP2Defect? =
            switch error {
            case NGHTTP2_ERR_HTTP_HEADER.code: .field
            case NGHTTP2_ERR_HTTP_MESSAGING.code: .message
            default: nil
            }
        text.abandon()
        // Other faults are reported when their RST_STREAM or GOAWAY is serialized.
        if let defect { noteMalformed(HTTP2StreamID(frame.stream_id), defect) }
    }
}

extension nghttp2_error {
    var code: CInt { CInt(rawValue) }
}

extension HTTP2HeadPlace {
    fileprivate var framing: HTTP2Framing {
        HTTP2Framing(lines: Int(lines), ends: ends, isExtendedConnect: isExtendedConnect)
    }

    fileprivate func progress(_ parsed: HeadProgress) -> HeadProgress {
        if case .complete = parsed, isTooLarge { return .tooLarge }
        return parsed
    }
}
