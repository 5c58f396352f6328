/// A request's head that is only passed on. It borrows the bytes from their buffer for one call; an ``OwnedRequest``
/// copies them.
package struct RequestView: ~Escapable {
    package let head: RequestHead
    package let bytes: Span<UInt8>

    @_lifetime(copy bytes)
    package init(_ head: RequestHead, _ bytes: Span<UInt8>) {
        self.head = head
        self.bytes = bytes
    }
}

/// A response's head that is only passed on. One generic type for both views costs a look-up of its metadata at each
/// use.
package struct ResponseView: ~Escapable {
    package let head: ResponseHead
    package let bytes: Span<UInt8>

    @_lifetime(copy bytes)
    package init(_ head: ResponseHead, _ bytes: Span<UInt8>) {
        self.head = head
        self.bytes = bytes
    }
}

/// A head with its bytes: for a message that begins here, and for one that must be sent again.
package struct OwnedMessage<Head: Sendable>: Sendable {
    package let head: Head
    let bytes: [UInt8]

    fileprivate init(
        _ head: Head, _ bytes: [UInt8], _ progress: HeadProgress, defect: WireError.Code
    ) throws(WireError) {
        switch progress {
        case .complete: break
        case .malformed(let error): throw error
        case .incomplete, .tooLarge, .tooManyFields: throw WireError(defect, at: bytes.count)
        }
        self.init(head: head, bytes: bytes)
    }

    init(head: Head, bytes: [UInt8]) {
        self.head = head
        self.bytes = bytes
    }

    fileprivate init(_ head: Head, of length: UInt32, in bytes: Span<UInt8>) {
        self.init(head: head, bytes: bytes.extracting(0..<Int(length)).array)
    }
}

package typealias OwnedRequest = OwnedMessage<RequestHead>
package typealias OwnedResponse = OwnedMessage<ResponseHead>

extension OwnedRequest {
    package init(_ view: borrowing RequestView) { self.init(view.head, of: view.head.length, in: view.bytes) }

    package var view: RequestView {
        @_lifetime(borrow self)
        get { RequestView(head, bytes.span) }
    }

    /// - Parameter bytes: a whole head, its empty line included.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var parser = HeadParser(limit: bytes.count)
        var head = RequestHead()
        let progress = parser.parseRequest(bytes.span, into: &head)
        try self.init(head, bytes, progress, defect: .requestLine)
    }

    /// This request with another target, body, or both (nil: its own). A new body drops the framing and digest
    /// fields of the old one.
    package func rewritten(
        target: [UInt8]? = nil, contentType: String? = nil, bodyLength: Int? = nil
    ) throws(WireError) -> OwnedRequest {
        var out = bytes[head.methodRange.offsets] + [UInt8(ascii: " ")]
        out += target.map { $0[...] } ?? bytes[head.target.offsets]
        out += (head.version == .http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n").utf8
        for field in head.fields {
            switch field.id {
            case .contentLength, .transferEncoding, .trailer, .expect:
                if bodyLength != nil { continue }
            case .contentType:
                if contentType != nil { continue }
            default: if bodyLength != nil, field.isDigest(in: bytes.span) { continue }
            }
            out += bytes[field.line.offsets]
        }
        if let contentType { out += "Content-Type: \(contentType)\r\n".utf8 }
        if let bodyLength { out += "Content-Length: \(bodyLength)\r\n".utf8 }
        out += "\r\n".utf8
        return try OwnedRequest(Array(out), from: head, keepsBody: bodyLength == nil)
    }

    /// A modified request: keeps the version of the original, and the length of a body that it keeps.
    init(_ bytes: [UInt8], from original: RequestHead, keepsBody: Bool) throws(WireError) {
        let parsed = try OwnedRequest(bytes)
        guard original.version == .http2 else {
            self = parsed
            return
        }
        var head = parsed.head
        head.version = .http2
        if keepsBody { head.bodyLength = original.bodyLength }
        self.init(head: head, bytes: bytes)
    }

    package var message: [UInt8] { bytes }
}

extension OwnedResponse {
    package var message: [UInt8] { bytes }

    package init(_ view: borrowing ResponseView) { self.init(view.head, of: view.head.length, in: view.bytes) }

    package var view: ResponseView {
        @_lifetime(borrow self)
        get { ResponseView(head, bytes.span) }
    }

    /// - Parameter bytes: a whole head, its empty line included, of an answer to anything but HEAD and CONNECT.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var parser = HeadParser(limit: bytes.count)
        var head = ResponseHead()
        let progress = parser.parseResponse(bytes.span, to: .get, into: &head)
        try self.init(head, bytes, progress, defect: .statusLine)
    }

    /// This response with a body that ends with its bytes, if only the transfer coding marked its end.
    package func withoutTransferCoding() -> OwnedResponse? {
        var out = bytes[..<(head.fields.first.map { Int($0.line.start) } ?? Int(head.length) - 2)]
        for field in head.fields where field.id != .transferEncoding && field.id != .trailer {
            out += bytes[field.line.offsets]
        }
        return try? OwnedResponse(Array(out + [0x0D, 0x0A]), version: head.version)
    }

    /// This response with an uncoded body of `length` bytes, without fields of the old bytes, and with a weak
    /// validator (RFC 9110 sections 7.7 and 8.8.1).
    package func withBody(of length: Int) -> OwnedResponse? {
        var out = Array("HTTP/1.1 \(head.status) ".utf8) + bytes[head.reason.offsets] + Array("\r\n".utf8)
        for field in head.fields {
            switch field.id {
            case .contentLength, .transferEncoding, .trailer, .contentEncoding: continue
            case .other
            where field.isDigest(in: bytes.span) || field.name.text(in: bytes.span).lowercased() == "accept-ranges":
                continue
            case .etag where !field.value.text(in: bytes.span).hasPrefix("W/"):
                out += "ETag: W/".utf8
                out += bytes[field.value.offsets]
                out += "\r\n".utf8
            default: out += bytes[field.line.offsets]
            }
        }
        out += "Content-Length: \(length)\r\n\r\n".utf8
        return try? OwnedResponse(out, version: head.version)
    }

    package var length: Int { bytes.count }

    init(_ bytes: [UInt8], version: HTTPVersion) throws(WireError) {
        var head = try OwnedResponse(bytes).head
        head.version = version
        self.init(head: head, bytes: bytes)
    }
}
