// Heads that arrived in HTTP/2, written as text (RFC 9113 section 8.3), so that rules, views and writers are the same.

/// What a text can't say of a head that arrived in HTTP/2.
package struct HTTP2Framing: Sendable, Equatable {
    /// Field lines that were written: a value that holds a line end would add one.
    package let lines: Int
    /// The stream ended with the head (END_STREAM).
    package let ends: Bool
    /// An extended CONNECT (RFC 8441), written as the handshake of HTTP/1.1 that it stands for.
    package let isExtendedConnect: Bool

    package init(lines: Int, ends: Bool, isExtendedConnect: Bool = false) {
        self.lines = lines
        self.ends = ends
        self.isExtendedConnect = isExtendedConnect
    }
}

extension RequestHead {
    /// Parses the text of a request that arrived in HTTP/2, as strictly as one of HTTP/1.1.
    ///
    /// Its body is `unknown` without Content-Length, `none` if the stream ended, and empty (`known(0)`) where the method
    /// foresees one (RFC 9110 section 8.6).
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
            if bodyLength == .none, method.foreseesBody { bodyLength = .known(0) }
        } else if bodyLength == .none {
            bodyLength = .unknown
        }
        return .complete
    }

    /// HTTP/1.1 has to be told of an empty body, which HTTP/2 says by END_STREAM.
    var hasUnwrittenEmptyBody: Bool { version == .http2 && bodyLength == .known(0) && first(.contentLength) == nil }
}

extension ResponseHead {
    /// Parses the text of a response that arrived in HTTP/2. Its body is `unknown` without Content-Length, and empty
    /// (`known(0)`) if the stream ended where content could follow.
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

    /// HTTP/1.1 has to be told of an empty body, which HTTP/2 says by END_STREAM.
    var hasUnwrittenEmptyBody: Bool {
        version == .http2 && bodyLength == .known(0) && status != 205 && first(.contentLength) == nil
    }
}

extension [HeadField] {
    /// RFC 9113 section 8.2.2, and lines that nobody wrote.
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
    /// Whether an absent body has to be told from one whose length isn't known (RFC 9110 section 8.6).
    fileprivate var foreseesBody: Bool {
        switch self {
        case .post, .put, .patch: true
        default: false
        }
    }
}

extension HTTPVersion {
    /// As Via names it (RFC 9110 section 7.6.3), with the space after it.
    var viaProtocol: StaticString {
        switch self {
        case .http10: "1.0 "
        case .http11: "1.1 "
        case .http2: "2 "
        }
    }
}
