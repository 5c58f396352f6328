/// The heads that a cache stores and serves, made from what the origin sent.
extension OwnedResponse {
    /// The head as a cache keeps it (RFC 9111 section 3.1): without the fields of the connection, and with the length
    /// of its body.
    ///
    /// Set-Cookie isn't kept: a cookie is for the one client that the origin answered, and repeated later it would
    /// restore an old session.
    /// - Parameters:
    ///   - length: of the body as stored, without transfer coding.
    ///   - received: Unix seconds; becomes Date if the origin sent no valid one (RFC 9110 section 6.6.1).
    package func stored(length: Int, received: Int64) -> OwnedResponse? {
        let nominated = view.nominatedFields
        var out = Array(startLine)
        for field in head.fields where !field.isOfConnection(in: bytes.span, nominated: nominated) {
            if field.id == .contentLength || field.id == .setCookie || field.isInvalidDate(in: bytes.span) { continue }
            out += bytes[field.line.offsets]
        }
        if !view.hasDate { out += "Date: \(HTTPDate.text(received))\r\n".utf8 }
        // A 204 has no body, and no length (RFC 9110 section 8.6).
        if head.status != 204 { out += "Content-Length: \(length)\r\n".utf8 }
        return try? OwnedResponse(out + [0x0D, 0x0A], version: head.version)
    }

    /// This response with another head, in the same version; nil if the bytes aren't a whole head.
    package func replaced(by bytes: [UInt8]) -> OwnedResponse? { try? OwnedResponse(bytes, version: head.version) }

    /// The answer to HEAD (RFC 9110 section 9.3.2): all fields, no body.
    package var withoutBody: OwnedResponse {
        var copy = head
        copy.bodyLength = .none
        return OwnedResponse(head: copy, bytes: bytes)
    }

    /// 304 with the fields that RFC 9110 section 15.4.5 asks for. Last-Modified stands in for a missing entity tag.
    /// Those that let scripts of other origins see the response stay too: browsers check them on each response.
    package func notModified() -> OwnedResponse? {
        let hasTag = head.first(.etag) != nil
        return made("304 Not Modified") { field in
            switch field.id {
            case .age, .cacheControl, .contentLocation, .date, .etag, .expires, .vary: true
            case .lastModified: !hasTag
            default: field.isOfAccessControl(in: bytes.span)
            }
        }
    }

    /// 206 with one part of the body (RFC 9110 section 15.3.7).
    /// - Parameter part: not empty, and within `complete`.
    package func part(_ part: Range<UInt64>, of complete: UInt64) -> OwnedResponse? {
        guard !part.isEmpty, part.upperBound <= complete else { return nil }
        let range = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(complete)"
        return made(
            "206 Partial Content", "Content-Range: \(range)", "Content-Length: \(part.upperBound - part.lowerBound)"
        ) {
            !$0.speaksOfContent(in: bytes.span)
        }
    }

    /// 200 with all of a body that came in parts (RFC 9110 section 15.3.7.3).
    package func whole(of length: UInt64) -> OwnedResponse? {
        made("200 OK", "Content-Length: \(length)") { !$0.speaksOfContent(in: bytes.span) }
    }

    /// 416: no byte that was asked for is there (RFC 9110 section 15.5.17).
    package func unsatisfied(of complete: UInt64) -> OwnedResponse? {
        made("416 Range Not Satisfiable", "Content-Range: bytes */\(complete)", "Content-Length: 0") {
            $0.id == .date || $0.id == .vary || $0.isOfAccessControl(in: bytes.span)
        }
    }

    private func made(_ status: String, _ more: String..., keeping isKept: (HeadField) -> Bool) -> OwnedResponse? {
        var out = Array("HTTP/1.1 \(status)\r\n".utf8)
        for field in head.fields where isKept(field) { out += bytes[field.line.offsets] }
        for line in more { out += "\(line)\r\n".utf8 }
        return try? OwnedResponse(out + [0x0D, 0x0A], version: head.version)
    }

    private var startLine: ArraySlice<UInt8> {
        bytes[..<(head.fields.first.map { Int($0.line.start) } ?? Int(head.length) - 2)]
    }
}

extension ResponseView {
    package var hasDate: Bool {
        for field in head.fields where field.id == .date && !field.isInvalidDate(in: bytes) { return true }
        return false
    }

    /// The names in Connection that make a field one of the connection. Known ones have their own rules
    /// (``FieldName``).
    package var nominatedFields: Set<String> {
        var names: Set<String> = []
        for field in head.fields where field.id == .connection {
            var elements = ListElements(field.value)
            while let name = elements.next(in: bytes) { names.insert(name.text(in: bytes).lowercased()) }
        }
        return names
    }
}

extension HeadField {
    /// Whether it is a Date that isn't one. A cache writes its own then (RFC 9110 section 6.6.1).
    fileprivate func isInvalidDate(in bytes: Span<UInt8>) -> Bool {
        id == .date && HTTPDate.parse(bytes.extracting(value.offsets)) == nil
    }

    /// Whether it is about one connection, not about the response (RFC 9110 section 7.6.1, RFC 9111 section 3.1).
    package func isOfConnection(in bytes: Span<UInt8>, nominated: Set<String>) -> Bool {
        switch id {
        case .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade, .proxyAuthenticate,
            .proxyAuthenticationInfo, .proxyAuthorization:
            true
        case .other: !nominated.isEmpty && nominated.contains(name.text(in: bytes).lowercased())
        default: false
        }
    }

    /// Whether it describes the bytes of this message, and so no other part of the representation.
    fileprivate func speaksOfContent(in bytes: Span<UInt8>) -> Bool {
        switch id {
        case .contentLength, .contentRange, .transferEncoding, .trailer: true
        // Repr-Digest and Digest are of the whole representation (RFC 9530 section 3).
        case .other:
            bytes.equals(name, ignoringCase: "content-digest") || bytes.equals(name, ignoringCase: "content-md5")
        default: false
        }
    }

    /// `Access-Control-…` of the Fetch standard.
    fileprivate func isOfAccessControl(in bytes: Span<UInt8>) -> Bool {
        let prefix = "access-control-"
        let start = ByteRange(name.start, min(name.start + prefix.utf8.count, name.end))
        return id == .other && bytes.equals(start, ignoringCase: prefix)
    }
}
