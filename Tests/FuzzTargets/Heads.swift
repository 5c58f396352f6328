import PinproxyHTTPWire

/// HTTP/1.1 heads: they read the same however they arrive, and the forwarded head reads like the original.
enum Heads {
    private static let limit = 4096
    private static let via = ViaPseudonym(token: 0x0123_4567_89AB_CDEF)
    private static let origin = Authority.parse("origin.test:8080", defaultPort: nil)

    static func request(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        let choice = choices.byte()
        let input = choices.input
        var parser = HeadParser(limit: limit)
        var head = RequestHead()
        let whole = parser.parseRequest(input.span, into: &head)
        var slowParser = HeadParser(limit: limit)
        var slowHead = RequestHead()
        var slow = HeadProgress.incomplete
        var count = 0
        while case .incomplete = slow, count <= input.count {
            slow = slowParser.parseRequest(input.span.extracting(0..<count), into: &slowHead)
            count += 1
        }
        require(Outcome(whole) == Outcome(slow), "a request read byte by byte is \(slow), whole it is \(whole)")
        guard case .complete = whole else { return }
        require(parser.framing == slowParser.framing, "a request's framing doesn't depend on how it arrives")
        require(Int(head.length) == count - 1, "a request is complete with its last byte")
        require(lines(head.fields) == lines(slowHead.fields), "a request's fields don't depend on how it arrives")
        check(head.fields, in: input)
        passOn(head, parser.framing, choice, from: input)
    }

    /// The head that `HeadWriter` makes for the next hop.
    private static func passOn(_ head: RequestHead, _ framing: HTTP1Framing, _ choice: UInt8, from input: [UInt8]) {
        guard case .success(let origin) = origin, head.targetForm != .authority else { return }
        switch head.maxForwards(in: input.span) {
        case .hops(0), .malformed: return
        default: break
        }
        // The proxy refuses a target without a good authority.
        if case .absolute(let parts) = head.targetForm {
            guard case .success = Authority.parse(input.span.extracting(parts.authority.offsets), defaultPort: 80)
            else { return }
        }
        let (target, forwardsUpgrade) = (choice & 1 == 0 ? TargetRewrite.originForm : .absoluteForm, choice & 2 != 0)
        var out: [UInt8] = []
        HeadWriter.write(
            request: head, from: input.span, target: target, authority: origin, defaultPort: 80,
            via: choice & 4 != 0 ? via : nil,
            forwardUpgrade: forwardsUpgrade, into: &out)
        var parser = HeadParser(limit: 4 * limit)
        var again = RequestHead()
        let progress = parser.parseRequest(out.span, into: &again)
        guard case .complete = progress else {
            return require(false, "a request that is passed on reads as \(progress): \(shown(out))")
        }
        require(Int(again.length) == out.count, "a request that is passed on ends where it was written to")
        require(parser.framing.body == framing.body, "a request is passed on with the same framing: \(shown(out))")
        require(
            again.methodRange.text(in: out.span) == head.methodRange.text(in: input.span),
            "a request is passed on with its method")
        require(again.version == .http11 && again.host != nil, "a request is passed on as HTTP/1.1, with Host")
        require(
            again.wantsUpgrade == (forwardsUpgrade && head.wantsUpgrade),
            "a request's upgrade is passed on if it may be")
        require(
            choice & 4 == 0 || again.hasPassed(via, in: out.span), "a request that is passed on names this hop in Via")
        if target == .originForm, case .absolute = again.targetForm {
            require(false, "a request to an origin has a path")
        }
        for id in [FieldName.keepAlive, .proxyConnection, .proxyAuthorization, .proxyAuthenticate, .http2Settings] {
            require(again.first(id) == nil, "a hop-by-hop field passes: \(id)")
        }
        for id in [FieldName.host, .contentLength, .transferEncoding, .connection] {
            require(again.fields.count { $0.id == id } <= 1, "\(id) passes once at most")
        }
        var reflected: [UInt8] = []
        HeadWriter.reflect(request: head, from: input.span, into: &reflected)
        var reflectedParser = HeadParser(limit: 4 * limit)
        guard case .complete = reflectedParser.parseRequest(reflected.span, into: &again) else {
            return require(false, "a reflected request reads again: \(shown(reflected))")
        }
        for id in [FieldName.authorization, .cookie, .proxyAuthorization] {
            require(again.first(id) == nil, "a secret is reflected: \(id)")
        }
    }

    static func response(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 2)
        let choice = choices.byte()
        let method = choices.one(of: Method.allCases)
        let input = choices.input
        var parser = HeadParser(limit: limit)
        var head = ResponseHead()
        let whole = parser.parseResponse(input.span, to: method, into: &head)
        var slowParser = HeadParser(limit: limit)
        var slowHead = ResponseHead()
        var slow = HeadProgress.incomplete
        var count = 0
        while case .incomplete = slow, count <= input.count {
            slow = slowParser.parseResponse(input.span.extracting(0..<count), to: method, into: &slowHead)
            count += 1
        }
        require(Outcome(whole) == Outcome(slow), "a response read byte by byte is \(slow), whole it is \(whole)")
        guard case .complete = whole else { return }
        require(parser.framing == slowParser.framing, "a response's framing doesn't depend on how it arrives")
        require(Int(head.length) == count - 1, "a response is complete with its last byte")
        require(lines(head.fields) == lines(slowHead.fields), "a response's fields don't depend on how it arrives")
        require(100...999 ~= head.status, "a status has three digits")
        check(head.fields, in: input)
        for part in [WantedPart.whole, .bytes(first: 5, last: 9), .end(length: 3), .other] {
            _ = head.defect(answering: part, in: input.span)
        }
        if method != .connect { passOn(head, parser.framing, to: method, choice, from: input) }
    }

    private static func passOn(
        _ head: ResponseHead, _ framing: HTTP1Framing, to method: Method, _ choice: UInt8, from input: [UInt8]
    ) {
        let client = choice & 1 == 0 ? HTTPVersion.http11 : .http10
        let inChunks = client == .http11 && head.bodyLength == .unknown
        let connection: ClientPersistence = head.isUpgrade ? .upgrade : choice & 2 == 0 ? .keepAlive : .close
        var out: [UInt8] = []
        HeadWriter.write(
            response: head, from: input.span, clientVersion: client, connection: connection, inChunks: inChunks,
            via: choice & 4 != 0 ? via : nil, into: &out)
        var parser = HeadParser(limit: 4 * limit)
        var again = ResponseHead()
        let progress = parser.parseResponse(out.span, to: method, into: &again)
        guard case .complete = progress else {
            return require(false, "a response that is passed on reads as \(progress): \(shown(out))")
        }
        require(Int(again.length) == out.count, "a response that is passed on ends where it was written to")
        require(again.status == head.status, "a response is passed on with its status")
        let expected =
            framing.body == .untilClose && inChunks || framing.body == .chunked && !inChunks
            ? (inChunks ? BodyFraming.chunked : .untilClose) : framing.body
        require(parser.framing.body == expected, "a response is passed on as \(expected): \(shown(out))")
        if connection == .close, !head.isInterim {
            require(!parser.framing.keepsAlive, "a last response says so: \(shown(out))")
        }
        for id in [FieldName.keepAlive, .proxyConnection, .proxyAuthenticate, .proxyAuthenticationInfo] {
            require(again.first(id) == nil, "a hop-by-hop field passes: \(id)")
        }
        for id in [FieldName.contentLength, .transferEncoding, .connection] {
            require(again.fields.count { $0.id == id } <= 1, "\(id) passes once at most")
        }
    }

    // MARK: Common to both

    private enum Outcome: Equatable {
        case incomplete, complete, tooLarge, tooManyFields
        case malformed(WireError)

        init(_ progress: HeadProgress) {
            self =
                switch progress {
                case .incomplete: .incomplete
                case .complete: .complete
                case .tooLarge: .tooLarge
                case .tooManyFields: .tooManyFields
                case .malformed(let error): .malformed(error)
                }
        }
    }

    private static func lines(_ fields: [HeadField]) -> [ByteRange] { fields.flatMap { [$0.name, $0.value, $0.line] } }

    private static func check(_ fields: [HeadField], in input: [UInt8]) {
        for field in fields {
            require(!field.name.isEmpty && field.name.start == field.line.start, "a field line begins with a name")
            require(field.value.end <= field.line.end - 2, "a value ends before its line")
            for offset in field.line.start..<field.line.end - 2 {
                require(
                    input[offset] >= 0x20 && input[offset] != 0x7F || input[offset] == 9,
                    "no control character is in a field")
            }
        }
    }

    static func shown(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self).debugDescription }
}
