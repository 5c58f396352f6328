import CPinproxyNGHTTP2
import PinproxyHTTPWire

// Reactions to peers that break the protocol or exceed a limit.
extension HTTP2Session {
    /// Resets a stream for a fault of the peer, or because a head can't be sent.
    func refuse(_ stream: HTTP2StreamID, _ defect: HTTP2Defect) {
        text.abandon()
        nghttp2_submit_rst_stream(
            handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.rawValue, defect.code.rawValue)
        noteMalformed(stream, defect)
    }

    /// Reports that a stream is reset for a fault of the peer, unless it was reset before.
    func noteMalformed(_ stream: HTTP2StreamID, _ defect: HTTP2Defect) {
        guard let place = place(of: stream.rawValue), !streams[place].flags.contains(.isReset) else { return }
        markReset(place)
        events.append(.malformed(stream, defect))
        if defect != .unsent, let flood = floods.faulted(at: now) { fail(because: flood) }
    }

    func markReset(_ place: StreamTable.Place) {
        unschedule(place)
        streams[place].flags.insert(.isReset)
    }

    /// Ends the session after a fatal error of nghttp2.
    func fail(because error: CInt) {
        switch error {
        case NGHTTP2_ERR_BAD_CLIENT_MAGIC.code: fail(.protocolError, "the connection preface is not HTTP/2's")
        case NGHTTP2_ERR_FLOODED.code: fail(because: HTTP2Flood.acknowledgements)
        case NGHTTP2_ERR_NOMEM.code: fail(.internalError, "out of memory")
        default: fail(.enhanceYourCalm, String(cString: nghttp2_strerror(error)))
        }
    }

    func fail(because flood: HTTP2Flood) {
        if !hasFailed { self.flood = flood }
        fail(.enhanceYourCalm, flood.description)
    }

    /// Ends the session with a GOAWAY. It is serialized here, since nghttp2 can't be used after a fatal error.
    func fail(_ code: HTTP2ErrorCode, _ reason: String) {
        guard !hasFailed else { return }
        noteFailure(code, reason)
        let payload = 8 + reason.utf8.count
        farewell = [0, UInt8(truncatingIfNeeded: payload >> 8), UInt8(truncatingIfNeeded: payload)]
        farewell += [FrameHeader.Kind.goAway.rawValue, 0, 0, 0, 0, 0]
        withUnsafeBytes(of: lastProcessed.bigEndian) { farewell.append(contentsOf: $0) }
        withUnsafeBytes(of: code.rawValue.bigEndian) { farewell.append(contentsOf: $0) }
        farewell += reason.utf8
    }

    func noteFailure(_ code: HTTP2ErrorCode, _ reason: String) {
        guard !hasFailed else { return }
        hasFailed = true
        text.abandon()
        events.append(.failed(code, reason))
    }
}
