import PinproxyHTTP2
import PinproxyHTTPWire

/// Checks the invariants of a session's events, and of its output.
struct HTTP2Watch {
    /// An event in a comparable form. Data of a stream that turns out to be malformed may have been seen or not.
    enum Seen: Equatable {
        case head(Int32, [UInt8], Bool)
        case refused(Int32)
        case data(Int32, [UInt8])
        case other(String)
    }

    private enum Stage { case idle, open, ended, over }

    private let role: HTTP2Session.Role
    private let limits: HTTP2Limits
    private let headerList: Int
    private(set) var seen: [Seen] = []
    private(set) var hasFailed = false
    private var isEnding = false
    private var stages: [Int32: Stage] = [:]
    private var methods: [Int32: Method] = [:]
    private var hasResponse: Set<Int32> = []
    private var lastRequest: Int32 = 0
    private var frames: SentFrames
    private static let via = ViaPseudonym(token: 0x0123_4567_89AB_CDEF)
    private static let origin = Authority.parse("a.test", defaultPort: 443)

    init(_ role: HTTP2Session.Role, _ limits: HTTP2Limits, headerList: Int) {
        self.role = role
        self.limits = limits
        self.headerList = headerList
        frames = SentFrames(role)
    }

    mutating func opened(_ stream: HTTP2StreamID, _ method: Method) {
        require(stages[stream.rawValue] == nil, "a number is used once")
        stages[stream.rawValue] = .open
        methods[stream.rawValue] = method
    }

    /// Reset by this side.
    mutating func ended(_ stream: HTTP2StreamID) {
        if stages[stream.rawValue] != nil { stages[stream.rawValue] = .over }
    }
    mutating func abandoned(_ stream: HTTP2StreamID) {
        if role == .server, stages[stream.rawValue] == .open { stages[stream.rawValue] = .ended }
    }

    func took(_ count: Int) { require(count <= limits.events + 64, "events are bounded: \(count)") }

    mutating func take(_ event: HTTP2Event, _ bytes: [UInt8], of session: HTTP2Session) {
        require(!hasFailed, "nothing follows a failure: \(event)")
        switch event {
        case .request(let stream, let place, let ends):
            require(
                role == .server && stream.rawValue & 1 == 1 && stream.rawValue > lastRequest,
                "requests have rising odd numbers")
            lastRequest = stream.rawValue
            stages[stream.rawValue] = ends ? .ended : .open
            readRequest(stream, place, ends, session)
        case .response(let stream, let place, let ends):
            require(role == .client && stages[stream.rawValue] == .open, "a response answers a request")
            if ends { stages[stream.rawValue] = .ended }
            readResponse(stream, place, ends, session)
        case .data(let stream, let range):
            require(stages[stream.rawValue] == .open, "data belongs to an open stream: \(stream)")
            require(
                range.lowerBound >= 0 && range.upperBound <= bytes.count && !range.isEmpty, "data is in what arrived")
            require(role == .server || hasResponse.contains(stream.rawValue), "data follows a head")
            note(.data(stream.rawValue, Array(bytes[range])))
        case .trailers(let stream, let section):
            end(stream)
            var block = FieldBlock()
            HeadWriter.write(trailers: section, into: &block)
            check(block)
            note(.other("trailers \(stream) \(section.lines)"))
        case .ended(let stream):
            end(stream)
            note(.other("ended \(stream)"))
        case .reset(let stream, let code):
            require(
                stages[stream.rawValue] == .open || stages[stream.rawValue] == .ended,
                "a reset belongs to a stream that is known: \(event) after \(seen)")
            stages[stream.rawValue] = .over
            note(.other("reset \(stream) \(code)"))
        case .malformed(let stream, let defect):
            require(stages[stream.rawValue] != .over, "a stream is malformed once: \(event) after \(seen)")
            stages[stream.rawValue] = .over
            seen.removeAll { if case .data(stream.rawValue, _) = $0 { true } else { false } }
            note(.other("malformed \(stream) \(defect)"))
        case .windowOpened(let stream):
            if let stream { require(stages[stream.rawValue] != .over, "a window opens on a stream that isn't over") }
            note(.other("window \(stream?.rawValue ?? 0)"))
        case .failed(let code, let reason):
            require(!reason.isEmpty || code != .noError, "a failure has a reason")
            hasFailed = true
            // After a GOAWAY without open streams nghttp2 ignores all further input, even the second half of a frame.
            if !isEnding { note(.other("failed \(code)")) }
        case .goAway:
            isEnding = true
            note(.other("\(event)"))
        case .settings, .pong, .priority: note(.other("\(event)"))
        }
    }

    private mutating func end(_ stream: HTTP2StreamID) {
        require(stages[stream.rawValue] == .open, "a stream ends once: \(stream)")
        stages[stream.rawValue] = .ended
    }

    private mutating func note(_ event: Seen) {
        if case .data(let stream, let more) = event, case .data(stream, let before)? = seen.last {
            seen[seen.count - 1] = .data(stream, before + more)
        } else {
            seen.append(event)
        }
    }

    // MARK: Heads

    private mutating func readRequest(
        _ stream: HTTP2StreamID, _ place: HTTP2HeadPlace, _ ends: Bool, _ session: HTTP2Session
    ) {
        var (head, text) = (RequestHead(), [UInt8]())
        guard case .complete = session.readRequest(place, into: &head, bytes: &text) else {
            return note(.refused(stream.rawValue))
        }
        note(.head(stream.rawValue, text, ends))
        require(text.count <= 2 * headerList, "a head is as long as was announced at most: \(text.count)")
        require(head.version == .http2 && Int(head.length) == text.count, "a head of HTTP/2 is whole")
        require(!ends || head.bodyLength.isEmpty, "a stream that has ended has no body")
        require(
            place.isExtendedConnect == head.wantsUpgrade
                || head.first(.upgrade)?.text(in: text.span).lowercased() == "h2c",
            "a handshake asks for an upgrade")
        var parser = HeadParser(limit: text.count)
        var again = RequestHead()
        guard case .complete = parser.parseRequest(text.span, into: &again) else {
            return require(false, "a head reads strictly: \(text)")
        }
        guard case .success(let origin) = Self.origin, head.targetForm != .authority else { return }
        switch head.maxForwards(in: text.span) {
        case .hops(0), .malformed: return
        default: break
        }
        var out: [UInt8] = []
        HeadWriter.write(
            request: head, from: text.span, target: .originForm, authority: origin, defaultPort: 443, via: Self.via,
            forwardUpgrade: false, into: &out)
        var onward = HeadParser(limit: out.count)
        guard case .complete = onward.parseRequest(out.span, into: &again) else {
            return require(false, "a request passes to HTTP/1.1: \(out)")
        }
        require(Int(again.length) == out.count, "a request that is passed on ends where it was written to")
        require(
            onward.framing.body.length == head.bodyLength || head.bodyLength == .none && onward.framing.body == .none,
            "a request is passed on with its body: \(head.bodyLength), \(onward.framing.body)")
        var block = FieldBlock()
        HeadWriter.write(
            request: head, from: text.span, authority: origin, defaultPort: 443, via: Self.via, into: &block)
        check(block)
    }

    private mutating func readResponse(
        _ stream: HTTP2StreamID, _ place: HTTP2HeadPlace, _ ends: Bool, _ session: HTTP2Session
    ) {
        var (head, text) = (ResponseHead(), [UInt8]())
        let method = methods[stream.rawValue] ?? .get
        guard case .complete = session.readResponse(place, to: method, into: &head, bytes: &text) else {
            hasResponse.insert(stream.rawValue)
            return note(.refused(stream.rawValue))
        }
        note(.head(stream.rawValue, text, ends))
        require(!hasResponse.contains(stream.rawValue), "one final response answers a request")
        if !head.isInterim { hasResponse.insert(stream.rawValue) }
        require(100...999 ~= head.status && head.status != 101, "a status has three digits")
        require(
            !ends || head.bodyLength.isEmpty || !ResponseHead.mayHaveContent(status: head.status, answering: method),
            "no body follows the end")
        require(!head.isInterim || !ends, "an interim head doesn't end the stream")
        var out: [UInt8] = []
        HeadWriter.write(
            response: head, from: text.span, clientVersion: .http11, connection: .keepAlive,
            inChunks: head.bodyLength == .unknown,
            via: Self.via, into: &out)
        var parser = HeadParser(limit: out.count)
        var again = ResponseHead()
        guard case .complete = parser.parseResponse(out.span, to: method, into: &again) else {
            return require(false, "a response passes to HTTP/1.1: \(out)")
        }
        require(parser.framing.body != .untilClose, "a response has an end in HTTP/1.1: \(out)")
        var block = FieldBlock()
        HeadWriter.write(response: head, from: text.span, via: Self.via, into: &block)
        check(block)
    }

    /// Checks what a field section may contain (RFC 9113 section 8.2).
    private func check(_ block: FieldBlock) {
        var isRegular = false
        for field in block.fields {
            let name = field.name.text(in: block.bytes.span)
            isRegular = isRegular || !name.hasPrefix(":")
            require(isRegular != name.hasPrefix(":"), "pseudo-header fields come first: \(name)")
            require(name == name.lowercased() && !name.isEmpty, "names are in lower case: \(name)")
            require(
                !["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"].contains(name),
                "\(name) passes")
            require(name != "host" || role == .client, "Host passes")
            for offset in field.value.offsets {
                require(block.bytes[offset] >= 0x20 || block.bytes[offset] == 9, "no line end is in a value")
            }
            if name == "te" { require(field.value.text(in: block.bytes.span) == "trailers", "TE is trailers") }
            require(
                !["authorization", "cookie", "set-cookie"].contains(name) || field.isNeverIndexed,
                "\(name) isn't indexed")
        }
    }

    // MARK: Output

    mutating func sent(_ bytes: [UInt8]) { frames.take(bytes) }
}

/// Checks the invariants of the frames that a session sends.
struct SentFrames {
    private var scanner: FrameScanner
    private(set) var heads = 0

    init(_ role: HTTP2Session.Role) { scanner = FrameScanner(awaitsPreface: role == .client) }

    mutating func take(_ bytes: [UInt8]) {
        var position = 0
        while position < bytes.count {
            switch scanner.next(in: bytes.span, from: position) {
            case .payload(let count, _), .partialHeader(let count): position += count
            case .header(let header, let count):
                position += count
                require(
                    header.length <= 16_384 && header.kind != .other, "frames that are sent are well-formed: \(header)")
                require(header.kind != .data || header.stream != 0, "data belongs to a stream")
                if header.kind == .headers { heads += 1 }
            }
        }
    }
}
