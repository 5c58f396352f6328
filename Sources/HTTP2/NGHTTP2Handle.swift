import CPinproxyNGHTTP2

/// The library that is loaded.
package enum HTTP2Library {
    package static var version: String {
        nghttp2_version(0).map { String(cString: $0.pointee.version_str) } ?? "unknown"
    }
}

/// Owns a session of nghttp2.
struct NGHTTP2Handle: ~Copyable {
    let pointer: OpaquePointer
    let cache = BlockCache()

    init(_ role: HTTP2Session.Role, _ limits: HTTP2Limits) throws(HTTP2Unavailable) {
        var options: OpaquePointer?
        guard nghttp2_option_new(&options) == 0 else { throw HTTP2Unavailable() }
        defer { nghttp2_option_del(options) }
        // The owner returns window credit, so that a slow reader stops its stream.
        nghttp2_option_set_no_auto_window_update(options, 1)
        nghttp2_option_set_no_closed_streams(options, 1)
        nghttp2_option_set_max_outbound_ack(options, limits.unreadAcknowledgements)
        nghttp2_option_set_max_send_header_block_length(options, limits.sentHead)
        nghttp2_option_set_builtin_recv_extension_type(options, UInt8(NGHTTP2_PRIORITY_UPDATE.rawValue))
        // Blanks around a value are removed instead (`HeadText`): programs send them, as zypper in User-Agent.
        nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1)
        // FloodGuard counts resets instead, and credits streams that end normally.
        nghttp2_option_set_stream_reset_rate_limit(options, UInt64(UInt32.max), UInt64(UInt32.max))

        guard let callbacks = NGHTTP2Callbacks.shared.pointer else { throw HTTP2Unavailable() }
        var session: OpaquePointer?
        var memory = cache.functions
        let result =
            switch role {
            case .client: nghttp2_session_client_new3(&session, callbacks, nil, options, &memory)
            case .server: nghttp2_session_server_new3(&session, callbacks, nil, options, &memory)
            }
        guard result == 0, let session else { throw HTTP2Unavailable() }
        pointer = session
    }

    // Before the cache is destroyed.
    deinit { nghttp2_session_del(pointer) }
}

/// The callbacks of nghttp2. Sessions copy them.
struct NGHTTP2Callbacks: @unchecked Sendable {
    // Never changed after its creation.
    static let shared = NGHTTP2Callbacks()

    let pointer: OpaquePointer?

    // Each checks the pointers, recovers the session and calls one method. `user_data` is set before any callback runs,
    // and the caller of the session's method retains the session meanwhile.
    private init() {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0 else {
            pointer = nil
            return
        }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
            guard let frame, let session = HTTP2Session.of(user) else { return failure }
            return session._withUnsafeGuaranteedRef { $0.beginHead(frame.pointee.headers) }
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, flags, user in
            guard let frame, let session = HTTP2Session.of(user) else { return failure }
            let (name, value) = (
                UnsafeBufferPointer(start: name, count: nameCount), UnsafeBufferPointer(start: value, count: valueCount)
            )
            return session._withUnsafeGuaranteedRef { $0.takeField(name, value, flags, of: frame.pointee.hd.stream_id) }
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            guard let frame, let session = HTTP2Session.of(user) else { return failure }
            session._withUnsafeGuaranteedRef { $0.takeFrame(frame) }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, bytes, count, user in
            guard let bytes, let session = HTTP2Session.of(user) else { return failure }
            session._withUnsafeGuaranteedRef { $0.takeData(stream, bytes, count) }
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, frame, error, user in
            guard let frame, let session = HTTP2Session.of(user) else { return failure }
            session._withUnsafeGuaranteedRef { $0.noteInvalid(frame.pointee.hd, error) }
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, user in
            guard let session = HTTP2Session.of(user) else { return failure }
            session._withUnsafeGuaranteedRef { $0.streamClosed(stream, HTTP2ErrorCode(rawValue: code)) }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, user in
            guard let frame, let session = HTTP2Session.of(user) else { return failure }
            session._withUnsafeGuaranteedRef { $0.frameSent(frame) }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, user in
            guard let frame, let session = HTTP2Session.of(user) else { return failure }
            session._withUnsafeGuaranteedRef { $0.frameNotSent(frame.pointee.hd) }
            return 0
        }
        nghttp2_session_callbacks_set_send_data_callback(callbacks) { _, frame, header, count, _, user in
            guard let frame, let header, let session = HTTP2Session.of(user) else { return failure }
            return session._withUnsafeGuaranteedRef { $0.sendData(frame.pointee.hd, header, count) }
        }
        pointer = callbacks
    }

    /// Reads a stream's body.
    static let read: nghttp2_data_source_read_callback = { _, stream, _, most, flags, _, user in
        guard let flags, let session = HTTP2Session.of(user) else { return Int(failure) }
        return session._withUnsafeGuaranteedRef { $0.supply(HTTP2StreamID(stream), most, &flags.pointee) }
    }
}

private let failure = CInt(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)

extension HTTP2Session {
    fileprivate static func of(_ user: UnsafeMutableRawPointer?) -> Unmanaged<HTTP2Session>? {
        user.map { Unmanaged.fromOpaque($0) }
    }
}
