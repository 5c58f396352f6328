package enum TargetRewrite: Sendable {
    /// Absolute form becomes origin form; other forms stay.
    case originForm
    /// For a proxy: a URL stays, origin form becomes an `http` URL, `*` one without a path (RFC 9112 section 3.2.4).
    case absoluteForm
}

/// What the Connection field says to a client.
package enum ClientPersistence: Sendable {
    case keepAlive, close
    /// The response is a 101: Upgrade is passed on.
    case upgrade
}

/// Rewrites heads for the next hop. Drops hop-by-hop fields (RFC 9110 section 7.6.1), adds Via, and copies all else in
/// runs.
///
/// Proxy credentials and challenges never pass. Connection can't remove fields that `FieldName` knows as end-to-end.
/// Ambiguities for the next recipient are rewritten: a Host beside another authority in the target, and numbers with
/// leading zeros.
package enum HeadWriter {
    /// Appends the request for the next hop to `out`, as HTTP/1.1. A URL's authority replaces Host (RFC 9112 section
    /// 3.2.2); Max-Forwards is counted down.
    ///
    /// - Parameters:
    ///   - head: complete, with at least one hop left by Max-Forwards, parsed from `bytes`.
    ///   - authority: becomes the Host field of a request without one (HTTP/1.0), without `defaultPort`.
    ///   - via: the name that records this hop; nil: it isn't recorded.
    ///   - forwardUpgrade: whether `head.wantsUpgrade` is passed on.
    ///   - edits: other changes.
    package static func write(
        request head: RequestHead, from bytes: Span<UInt8>, target: TargetRewrite,
        authority: Authority, defaultPort: UInt16, via: ViaPseudonym?, forwardUpgrade: Bool,
        edits: HeadEdits = HeadEdits(), into out: inout [UInt8]
    ) {
        let upgrades = forwardUpgrade && head.wantsUpgrade
        out.append(contentsOf: bytes, in: head.methodRange)
        out.append(.space)
        var uriAuthority: ByteRange?
        if case .absolute(let parts) = head.targetForm { uriAuthority = parts.authority }
        if case (.absolute(let parts), .originForm) = (head.targetForm, target) {
            writeOriginForm(of: parts, method: head.method, from: bytes, into: &out)
        } else {
            if target == .absoluteForm, uriAuthority == nil {
                writeURL(of: authority, defaultPort: defaultPort, into: &out)
            }
            if target != .absoluteForm || head.targetForm != .asterisk {
                out.append(contentsOf: bytes, in: head.target)
            }
        }
        out.append(contentsOf: " HTTP/1.1\r\n")

        if let uriAuthority {
            out.append(contentsOf: "Host: ")
            out.append(contentsOf: bytes, in: uriAuthority)
            out.append(contentsOf: "\r\n")
        } else if head.host == nil {
            writeHost(authority, defaultPort: defaultPort, into: &out)
        }

        let maxForwards = head.maxForwards(in: bytes)
        let passage = FieldPassage(
            version: head.version, lastVia: head.lastVia, via: via, isFramed: true,
            hasNominations: head.connection.contains(.nominations))
        writeFields(head.fields, passage, from: bytes, edits: edits, into: &out) { field in
            switch field.id {
            case .upgrade: upgrades
            case .host: uriAuthority == nil
            case .maxForwards: maxForwards == .unlimited
            case .expect: head.version != .http10
            default: true
            }
        } replacing: { field, out in
            if field.id == .maxForwards { writeMaxForwards(maxForwards, into: &out) }
        }
        if head.bodyLength == .unknown { out.append(contentsOf: "Transfer-Encoding: chunked\r\n") }
        if head.hasUnwrittenEmptyBody { out.append(contentsOf: "Content-Length: 0\r\n") }
        switch (upgrades, head.acceptsTrailers) {
        case (true, true): out.append(contentsOf: "TE: trailers\r\nConnection: Upgrade, TE\r\n")
        case (true, false): out.append(contentsOf: "Connection: Upgrade\r\n")
        case (false, true): out.append(contentsOf: "TE: trailers\r\nConnection: TE\r\n")
        case (false, false): break
        }
        out.append(contentsOf: "\r\n")
    }

    /// Appends the response for the client to `out`, as HTTP/1.1, even for 1.0 clients (RFC 9110 section 2.5).
    ///
    /// - Parameters:
    ///   - head: complete, parsed from `bytes`.
    ///   - clientVersion: of the answered request.
    ///   - inChunks: the body is written in chunks.
    ///   - via: the name that records this hop; nil: it isn't recorded.
    ///   - edits: other changes.
    package static func write(
        response head: ResponseHead, from bytes: Span<UInt8>, clientVersion: HTTPVersion,
        connection: ClientPersistence, inChunks: Bool, via: ViaPseudonym?, edits: HeadEdits = HeadEdits(),
        into out: inout [UInt8]
    ) {
        out.append(contentsOf: "HTTP/1.1 ")
        out.append(UInt8(0x30 + head.status / 100 % 10))
        out.append(UInt8(0x30 + head.status / 10 % 10))
        out.append(UInt8(0x30 + head.status % 10))
        out.append(.space)
        out.append(contentsOf: bytes, in: head.reason)
        out.append(contentsOf: "\r\n")

        // With a 426, Upgrade says what the client should have requested (RFC 9110 section 15.5.22).
        let keepsUpgrade = connection == .upgrade || head.status == 426
        let mayBeFramed = ResponseHead.mayBeFramed(status: head.status)
        let passage = FieldPassage(
            version: head.version, lastVia: head.lastVia, via: via, isFramed: mayBeFramed,
            hasNominations: head.connection.contains(.nominations))
        writeFields(head.fields, passage, from: bytes, edits: edits, into: &out) { field in
            switch field.id {
            case .upgrade: keepsUpgrade
            // Trailers are lost where a body of unknown length isn't written in chunks.
            case .trailer: inChunks || head.bodyLength != .unknown
            case .proxyStatus: ProxyStatusList.content(of: field.value, in: bytes) == .others
            default: true
            }
        } replacing: { field, out in
            if field.id == .proxyStatus { writeProxyStatus(field.value, from: bytes, into: &out) }
        }
        if inChunks { out.append(contentsOf: "Transfer-Encoding: chunked\r\n") }
        if head.hasUnwrittenEmptyBody { out.append(contentsOf: "Content-Length: 0\r\n") }
        // RFC 9112 section 6.3 doesn't list it: to a client it ends with its connection, unless its length is given.
        if head.status == 205 { out.append(contentsOf: "Content-Length: 0\r\n") }
        switch connection {
        case .upgrade: out.append(contentsOf: "Connection: Upgrade\r\n")
        case .close where !head.isInterim:
            out.append(contentsOf: head.status == 426 ? "Connection: close, Upgrade\r\n" : "Connection: close\r\n")
        case .keepAlive where head.status == 426: out.append(contentsOf: "Connection: Upgrade\r\n")
        case .keepAlive where clientVersion == .http10: out.append(contentsOf: "Connection: keep-alive\r\n")
        case .keepAlive, .close: break
        }
        out.append(contentsOf: "\r\n")
    }

    /// The properties that decide which fields of any message pass.
    struct FieldPassage {
        /// The received message's version.
        let version: HTTPVersion
        let lastVia: Int?
        let via: ViaPseudonym?
        /// Whether Content-Length is allowed.
        let isFramed: Bool
        /// Whether Connection names fields besides those that are known.
        let hasNominations: Bool
    }

    /// Keeps fields by `rule` where ``FieldPassage`` doesn't decide; `replacing` writes replacements of the others, and
    /// `noting` gets each kept field, with the offset of its line in `out`.
    @inline(__always)
    static func writeFields(
        _ fields: [HeadField], _ passage: FieldPassage, from bytes: Span<UInt8>, edits: HeadEdits,
        into out: inout [UInt8],
        keeping rule: (HeadField) -> Bool, replacing: (HeadField, inout [UInt8]) -> Void,
        noting: (HeadField, Int) -> Void = { _, _ in }
    ) {
        var hasLength = false
        var run = LineRun()
        for index in fields.indices {
            let field = fields[index]
            let keeps: Bool
            switch field.id {
            case .connection, .keepAlive, .proxyConnection, .te, .transferEncoding, .http2Settings, .proxyAuthorization,
                .proxyAuthenticate, .proxyAuthenticationInfo:
                keeps = false
            case .contentLength:
                keeps = passage.isFramed && !hasLength && bytes.lengthAsWritten(field.value) == field.value
            case .via: keeps = passage.via == nil || index != passage.lastVia
            case .other: keeps = !(passage.hasNominations && isNominated(field, by: fields, in: bytes))
            default: keeps = rule(field)
            }
            if keeps, !edits.isEmpty, edits.drops(field.name, in: bytes) {
                run.take(field.line, keeps: false, from: bytes, into: &out)
                continue
            }
            run.take(field.line, keeps: keeps, from: bytes, into: &out)
            if field.id == .contentLength, passage.isFramed {
                // An equal repetition is omitted.
                if !keeps, !hasLength { writeContentLength(field.value, from: bytes, into: &out) }
                hasLength = true
            }
            if keeps {
                noting(field, out.count + run.offset(of: field.line))
                continue
            }
            if field.id == .via, let via = passage.via {
                writeVia(via, after: field.value, passage.version, from: bytes, into: &out)
            } else {
                replacing(field, &out)
            }
        }
        run.flush(from: bytes, into: &out)
        if !edits.isEmpty { edits.write(beside: fields, in: bytes, into: &out) }
        if let via = passage.via, passage.lastVia == nil {
            writeVia(via, after: .empty, passage.version, from: bytes, into: &out)
        }
    }

    /// Appends the received request without secret fields, as the content of the answer to a TRACE (RFC 9110 section
    /// 9.3.8).
    package static func reflect(request head: RequestHead, from bytes: Span<UInt8>, into out: inout [UInt8]) {
        out.append(contentsOf: bytes, in: ByteRange(head.methodRange.start, head.target.end))
        out.append(contentsOf: head.version == .http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n")
        var run = LineRun()
        for index in head.fields.indices {
            let field = head.fields[index]
            let keeps =
                switch field.id {
                case .authorization, .cookie, .proxyAuthorization: false
                default: true
                }
            run.take(field.line, keeps: keeps, from: bytes, into: &out)
        }
        run.flush(from: bytes, into: &out)
        out.append(contentsOf: "\r\n")
    }

    static func writeOriginForm(
        of parts: AbsoluteTarget, method: Method, from bytes: Span<UInt8>, into out: inout [UInt8]
    ) {
        let path = parts.pathAndQuery
        if path.isEmpty {
            // RFC 9112 section 3.2.4: OPTIONS for a whole server.
            out.append(method == .options ? UInt8(ascii: "*") : UInt8(ascii: "/"))
            return
        }
        if bytes[path.start] == UInt8(ascii: "?") { out.append(UInt8(ascii: "/")) }
        out.append(contentsOf: bytes, in: path)
    }

    private static func writeHost(_ authority: Authority, defaultPort: UInt16, into out: inout [UInt8]) {
        out.append(contentsOf: "Host: ")
        write(authority, defaultPort: defaultPort, into: &out)
        out.append(contentsOf: "\r\n")
    }

    private static func writeURL(of authority: Authority, defaultPort: UInt16, into out: inout [UInt8]) {
        out.append(contentsOf: "http://")
        write(authority, defaultPort: defaultPort, into: &out)
    }

    static func write(_ authority: Authority, defaultPort: UInt16, into out: inout [UInt8]) {
        if authority.isIPv6 { out.append(UInt8(ascii: "[")) }
        out.append(contentsOf: authority.host.utf8)
        if authority.isIPv6 { out.append(UInt8(ascii: "]")) }
        if authority.port != defaultPort { out.append(contentsOf: ":\(authority.port)".utf8) }
    }

    private static func writeContentLength(_ value: ByteRange, from bytes: Span<UInt8>, into out: inout [UInt8]) {
        out.append(contentsOf: "Content-Length: ")
        out.append(contentsOf: bytes, in: bytes.lengthAsWritten(value))
        out.append(contentsOf: "\r\n")
    }

    static func writeMaxForwards(_ maxForwards: MaxForwards, into out: inout [UInt8]) {
        guard case .hops(let hops) = maxForwards else { return }
        out.append(contentsOf: "Max-Forwards: \(max(0, hops - 1))\r\n".utf8)
    }

    /// Writes the members of other proxies, or no field without such members.
    static func writeProxyStatus(_ value: ByteRange, from bytes: Span<UInt8>, into out: inout [UInt8]) {
        guard ProxyStatusList.content(of: value, in: bytes) == .mixed else { return }
        var members = ProxyStatusList(value)
        var separator: StaticString = "Proxy-Status: "
        while case .member(let member, isOurs: let isOurs) = members.next(in: bytes) {
            if isOurs { continue }
            out.append(contentsOf: separator)
            out.append(contentsOf: bytes, in: member)
            separator = ", "
        }
        out.append(contentsOf: "\r\n")
    }

    /// Records this hop after the others, with the version of the received message (RFC 9110 section 7.6.3).
    private static func writeVia(
        _ via: ViaPseudonym, after others: ByteRange, _ version: HTTPVersion, from bytes: Span<UInt8>,
        into out: inout [UInt8]
    ) {
        out.append(contentsOf: "Via: ")
        if !others.isEmpty {
            out.append(contentsOf: bytes, in: others)
            out.append(contentsOf: ", ")
        }
        out.append(contentsOf: version.viaProtocol)
        via.write(into: &out)
        out.append(contentsOf: "\r\n")
    }

    /// Whether a Connection field names this one. Rare, so it searches; `FieldRules` bounds the options.
    private static func isNominated(_ field: HeadField, by fields: [HeadField], in bytes: Span<UInt8>) -> Bool {
        for index in fields.indices where fields[index].id == .connection {
            var options = ListElements(fields[index].value)
            while let option = options.next(in: bytes) {
                if bytes.equals(option, field.name) { return true }
            }
        }
        return false
    }
}

/// Joins adjacent lines, so that they are copied in one piece.
private struct LineRun {
    private var lower = 0
    private var upper = 0

    mutating func take(_ line: ByteRange, keeps: Bool, from bytes: Span<UInt8>, into out: inout [UInt8]) {
        if keeps, line.start == upper {
            upper = line.end
            return
        }
        flush(from: bytes, into: &out)
        if keeps {
            lower = line.start
            upper = line.end
        }
    }

    /// The offset of the last kept line among the bytes that are written next.
    func offset(of line: ByteRange) -> Int { line.start - lower }

    mutating func flush(from bytes: Span<UInt8>, into out: inout [UInt8]) {
        if upper > lower { out.append(contentsOf: bytes, in: ByteRange(lower, upper)) }
        lower = upper
    }
}

extension Span<UInt8> {
    /// Whether two ranges hold the same name, ignoring ASCII case.
    fileprivate func equals(_ a: ByteRange, _ b: ByteRange) -> Bool {
        guard a.count == b.count else { return false }
        for index in 0..<a.count where self[a.start + index].lowercased != self[b.start + index].lowercased {
            return false
        }
        return true
    }
}

extension [UInt8] {
    mutating func append(contentsOf bytes: Span<UInt8>, in range: ByteRange) {
        // Only this step and the next are unsafe in this module: arrays don't take spans in one piece yet. The pointer
        // does not leave the closure.
        unsafe bytes.extracting(range.offsets).withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }

    /// Appends a literal. Its bytes lie in the program: nothing is retained for them.
    mutating func append(contentsOf text: StaticString) {
        text.withUTF8Buffer { unsafe append(contentsOf: $0) }
    }
}
