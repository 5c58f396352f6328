extension OwnedRequest {
    /// How a redirect changes a request (RFC 9110 section 15.4).
    package struct Redirection: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// It becomes a GET without a body: fields about the body are dropped.
        package static let becomesGET = Redirection(rawValue: 1)
        /// The target may have another owner: credentials and cookies are dropped.
        package static let leavesCredentials = Redirection(rawValue: 2)
        /// The target is another origin: all but a few fields are dropped, since they may be meant for the first one.
        package static let leavesOrigin = Redirection(rawValue: 4)
    }

    package func redirected(to url: RequestURL, _ redirection: Redirection) throws(WireError) -> OwnedRequest {
        let bytes = message
        var out = redirection.contains(.becomesGET) ? Array("GET".utf8) : Array(bytes[head.methodRange.offsets])
        out += " \(url.origin)".utf8
        out += url.target
        out += (head.version == .http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n").utf8
        out += "Host: \(url.origin.host)\r\n".utf8
        for field in head.fields where field.id != .host && goesAlong(field, redirection) {
            out += bytes[field.line.offsets]
        }
        out += "\r\n".utf8
        return try OwnedRequest(out, from: head, keepsBody: !redirection.contains(.becomesGET))
    }

    /// This request with another Cookie field.
    /// - Parameter value: nil: no such field.
    package func withCookie(_ value: String?) throws(WireError) -> OwnedRequest {
        var out = Array(message[..<head.fieldsStart])
        for field in head.fields where field.id != .cookie { out += message[field.line.offsets] }
        if let value { out += "Cookie: \(value)\r\n".utf8 }
        out += "\r\n".utf8
        return try OwnedRequest(out, from: head, keepsBody: true)
    }

    private func goesAlong(_ field: HeadField, _ redirection: Redirection) -> Bool {
        if speaksOfBody(field) { return !redirection.contains(.becomesGET) }
        guard redirection.contains(.leavesOrigin) else {
            return !redirection.contains(.leavesCredentials) || !isCredential(field)
        }
        switch field.id {
        case .accept, .acceptEncoding, .acceptLanguage, .userAgent, .cacheControl, .pragma: return true
        // Fields of the connection or of the route, for every hop.
        case .via, .maxForwards, .connection, .te: return true
        // A range of any version is kept, but not one conditional on the other origin's validator.
        case .range: return head.first(.ifRange) == nil
        default: return false
        }
    }

    private func isCredential(_ field: HeadField) -> Bool {
        switch field.id {
        case .authorization, .cookie: true
        case .other: field.name.text(in: message.span).lowercased() == "cookie2"
        default: false
        }
    }

    private func speaksOfBody(_ field: HeadField) -> Bool {
        switch field.id {
        case .contentLength, .transferEncoding, .trailer, .expect, .contentType, .contentEncoding, .contentLanguage,
            .contentLocation, .contentRange:
            true
        default: field.isDigest(in: message.span)
        }
    }

    /// This request for a response's bytes from `offset`, if still valid (RFC 9110 sections 14.2 and 13.1.5).
    package func asking(from offset: UInt64, ifStill validator: [UInt8]) throws(WireError) -> OwnedRequest {
        var out = Array(message[..<head.fieldsStart])
        for field in head.fields {
            switch field.id {
            case .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince: continue
            default: out += message[field.line.offsets]
            }
        }
        out += "Range: bytes=\(offset)-\r\nIf-Range: ".utf8
        out += validator
        out += "\r\n\r\n".utf8
        return try OwnedRequest(out, from: head, keepsBody: true)
    }
}

extension RequestHead {
    fileprivate var fieldsStart: Int { fields.first.map { Int($0.line.start) } ?? Int(length) - 2 }
}
