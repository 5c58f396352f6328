// Heads received in HTTP/2, as HTTP/1.1 text (RFC 9113 section 8.3), so that rules, views and writers stay the same.

/// Facts about a head received in HTTP/2 that its text can't express.
package struct HTTP2Framing: Sendable, Equatable {
    /// The number of field lines written. A line end within a value would add one.
    package let lines: Int
    /// END_STREAM.
    package let ends: Bool
    /// An extended CONNECT (RFC 8441), written as the equivalent HTTP/1.1 handshake.
    package let isExtendedConnect: Bool

    package init(lines: Int, ends: Bool, isExtendedConnect: Bool = false) {
        self.lines = lines
        self.ends = ends
        self.isExtendedConnect = isExtendedConnect
    }
}

extension RequestHead {
    /// Parses the text of a request received in HTTP/2, as strictly as one of HTTP/1.1.
    ///
    /// Without Content-Length its body is `unknown`. If the stream ended it is `none`, or `known(0)` for methods that
    /// anticipate content (RFC 9110 section 8.6).
    package mutating func parseHTTP2(_ text: Span<UInt8>, _ framing: HTTP2Framing) -> HeadProgress {
        var parser = HeadParser(limit: text.count + 1)
        let progress = parser.parseRequest(text, into: &self)
        guard case .complete = progress else { return progress }
        version = .http2
        if let defect = fields.http2Defect(framing, in: text) { return .malformed(defect) }
        switch targetForm {
        case .origin, .asterisk, .authority: break
        case .absolute: return .malformed(WireError(.targetOfOtherForm, at: target.start))
        }
        if method == .connect || framing.isExtendedConnect { return .complete }
        if framing.ends {
            if bodyLength == .none, method.anticipatesContent { bodyLength = .known(0) }
        } else if bodyLength == .none {
            bodyLength = .unknown
        }
        return .complete
    }

    /// HTTP/1.1 needs Content-Length: 0 where HTTP/2 had END_STREAM.
    var hasUnwrittenEmptyBody: Bool { version == .http2 && bodyLength == .known(0) && first(.contentLength) == nil }
}

extension ResponseHead {
    /// Parses the text of a response received in HTTP/2. Without Content-Length its body is `unknown`, or `known(0)` if
    /// the stream ended.
    ///
    /// - Parameter method: of the request that it answers; `connect` for an extended CONNECT.
    package mutating func parseHTTP2(_ text: Span<UInt8>, to method: Method, _ framing: HTTP2Framing) -> HeadProgress {
        var parser = HeadParser(limit: text.count + 1)
        let progress = parser.parseResponse(text, to: method, into: &self)
        guard case .complete = progress else { return progress }
        version = .http2
        if status == 101 { return .malformed(WireError(.switchingProtocols, at: 0)) }
        if let defect = fields.http2Defect(framing, in: text) { return .malformed(defect) }
        if framing.ends, bodyLength == .unknown { bodyLength = .known(0) }
        return .complete
    }

    /// HTTP/1.1 needs Content-Length: 0 where HTTP/2 had END_STREAM.
    var hasUnwrittenEmptyBody: Bool {
        version == .http2 && bodyLength == .known(0) && status != 205 && first(.contentLength) == nil
    }
}

extension [HeadField] {
    /// Connection-specific fields (RFC 9113 section 8.2.2), and lines that a value smuggled in.
    fileprivate func http2Defect(_ framing: HTTP2Framing, in text: Span<UInt8>) -> WireError? {
        if count != framing.lines { return WireError(.hiddenLine, at: 0) }
        for index in indices {
            let isForbidden =
                switch self[index].id {
                case .connection, .upgrade: !framing.isExtendedConnect
                case .keepAlive, .proxyConnection, .transferEncoding: true
                case .te: !text.equals(self[index].value, ignoringCase: "trailers")
                default: false
                }
            if framing.isExtendedConnect, self[index].id == .upgrade, !text.isToken(self[index].value) {
                return WireError(.connectProtocol, at: self[index].line.start)
            }
            if isForbidden { return WireError(.connectionSpecificField, at: self[index].line.start) }
        }
        return nil
    }
}

extension Span<UInt8> {
    fileprivate func isToken(_ range: ByteRange) -> Bool {
        let token = ASCIISet.token
        for offset in range.offsets where !token.contains(self[offset]) { return false }
        return !range.isEmpty
    }
}

extension Method {
    /// Methods that anticipate content (RFC 9110 section 8.6).
    fileprivate var anticipatesContent: Bool {
        switch self {
        case .post, .put, .patch: true
        default: false
        }
    }
}

extension HTTPVersion {
    /// The protocol version in Via (RFC 9110 section 7.6.3), and a space.
    var viaProtocol: StaticString {
        switch self {
        case .http10: "1.0 "
        case .http11: "1.1 "
        case .http2: "2 "
        }
    }
}
