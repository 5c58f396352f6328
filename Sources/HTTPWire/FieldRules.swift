/// The fields that decide about framing, routing and persistence, and their rules (RFC 9112 sections 3.2, 6 and 9).
struct FieldRules: Sendable {
    /// More than in any honest message.
    private static let connectionOptionLimit = 32

    private(set) var host: ByteRange?
    private(set) var contentLength: UInt64?
    private var lengthDigits = 0
    private(set) var isChunked = false
    private(set) var connection: ConnectionOptions = []
    private(set) var acceptsTrailers = false
    private(set) var expectsContinue = false
    private(set) var namesUpgrade = false
    private(set) var namesCleartextHTTP2 = false
    /// The value of Range.
    private(set) var range: ByteRange?
    private(set) var repeatsRange = false
    private var optionCount = 0

    /// Takes a field into account; returns its defect.
    mutating func note(_ field: HeadField, in bytes: Span<UInt8>) -> WireError.Code? {
        switch field.id {
        case .host:
            if host != nil { return .repeatedHost }
            let hostText = ASCIISet.hostText
            for offset in field.value.offsets where !hostText.contains(bytes[offset]) { return .invalidHost }
            host = field.value
        case .contentLength:
            return noteContentLength(field.value, in: bytes)
        case .transferEncoding:
            if isChunked { return .repeatedTransferEncoding }
            // The proxy requests no other coding (TE: trailers), and parsers disagree about a second one.
            guard bytes.equals(field.value, ignoringCase: "chunked") else { return .unsupportedTransferEncoding }
            isChunked = true
        case .connection:
            return noteConnection(field.value, in: bytes)
        case .te:
            var elements = ListElements(field.value)
            while let element = elements.next(in: bytes) {
                if bytes.equals(element, ignoringCase: "trailers") { acceptsTrailers = true }
            }
        case .expect:
            if bytes.equals(field.value, ignoringCase: "100-continue") { expectsContinue = true }
        case .upgrade:
            var protocols = ListElements(field.value)
            while let name = protocols.next(in: bytes) {
                namesUpgrade = true
                if bytes.equals(name, ignoringCase: "h2c") { namesCleartextHTTP2 = true }
            }
        case .range:
            if range != nil { repeatsRange = true }
            range = field.value
        default:
            break
        }
        return nil
    }

    /// A repeated equal number, which some senders write, counts once (RFC 9112 section 6.3).
    private mutating func noteContentLength(_ value: ByteRange, in bytes: Span<UInt8>) -> WireError.Code? {
        var start = value.start
        repeat {
            let element = bytes.firstElement(of: ByteRange(start, value.end))
            let text = bytes.trimmed(element)
            guard let length = decimal(text, in: bytes) else { return .invalidContentLength }
            // Equal numbers with equally many digits are the same text.
            if let contentLength, contentLength != length || lengthDigits != text.count {
                return .repeatedContentLength
            }
            contentLength = length
            lengthDigits = text.count
            start = element.end + 1
        } while start <= value.end
        return nil
    }

    private mutating func noteConnection(_ value: ByteRange, in bytes: Span<UInt8>) -> WireError.Code? {
        var options = ListElements(value)
        while let option = options.next(in: bytes) {
            optionCount += 1
            if optionCount > Self.connectionOptionLimit { return .tooManyConnectionOptions }
            if bytes.equals(option, ignoringCase: "keep-alive") {
                connection.insert(.keepAlive)
            } else if bytes.equals(option, ignoringCase: "close") {
                connection.insert(.close)
            } else if bytes.equals(option, ignoringCase: "upgrade") {
                connection.insert(.upgrade)
            } else if bytes.equals(option, ignoringCase: "te") {
                connection.insert(.te)
            } else {
                connection.insert(.nominations)
            }
        }
        return nil
    }

    private func decimal(_ value: ByteRange, in bytes: Span<UInt8>) -> UInt64? {
        guard !value.isEmpty else { return nil }
        var number: UInt64 = 0
        for offset in value.offsets {
            guard bytes[offset].isDigit else { return nil }
            let (product, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(bytes[offset] & 0x0F))
            // Many parsers count in signed 64 bits.
            guard !overflow, !carry, sum <= UInt64(Int64.max) else { return nil }
            number = sum
        }
        return number
    }

    /// The defect of the framing fields together.
    func framingDefect(version: HTTPVersion) -> WireError.Code? {
        guard isChunked else { return nil }
        if contentLength != nil { return .contentLengthWithTransferEncoding }
        return version == .http10 ? .transferEncodingBeforeHTTP11 : nil
    }

    func keepsAlive(version: HTTPVersion) -> Bool {
        if connection.contains(.close) { return false }
        return version != .http10 || connection.contains(.keepAlive)
    }
}

extension RequestHead {
    /// Derives the head's properties at its end.
    mutating func finish(
        _ rules: FieldRules, length: Int, in bytes: Span<UInt8>, framing: inout HTTP1Framing
    ) -> WireError? {
        if let defect = rules.framingDefect(version: version) { return WireError(defect, at: length) }
        // RFC 9112 section 3.2 requires it in any request. Some clients omit it from CONNECT: its target says all.
        guard rules.host != nil || version == .http10 || method == .connect else {
            return WireError(.missingHost, at: length)
        }
        framing.body =
            if rules.isChunked { .chunked } else if let count = rules.contentLength { .length(count) } else { .none }
        framing.keepsAlive = rules.keepsAlive(version: version)
        bodyLength = framing.body.length
        if method == .connect, !bodyLength.isEmpty { return WireError(.connectWithBody, at: length) }
        host = rules.host
        connection = rules.connection
        acceptsTrailers = rules.acceptsTrailers
        expectsContinue = rules.expectsContinue && version != .http10
        wantsUpgrade =
            rules.connection.contains(.upgrade) && rules.namesUpgrade && !rules.namesCleartextHTTP2
            && version == .http11
        wantedPart = rules.repeatsRange ? .other : rules.range.map { WantedPart($0, in: bytes) } ?? .whole
        self.length = UInt32(truncatingIfNeeded: length)
        return nil
    }
}

extension ResponseHead {
    /// Whether a response may have content (RFC 9110 section 6.4.1), for the codec, rules and commands alike.
    package static func mayHaveContent(status: Int, answering method: Method) -> Bool {
        method != .head && status != 304 && mayBeFramed(status: status)
    }

    /// Whether the response may have fields that frame a body: they may describe one that isn't sent.
    static func mayBeFramed(status: Int) -> Bool { status >= 200 && status != 204 && status != 205 }

    /// Derives the head's properties at its end, in the order of RFC 9112 section 6.3.
    mutating func finish(
        _ rules: FieldRules, length: Int, answering method: Method, framing: inout HTTP1Framing
    ) -> WireError? {
        connection = rules.connection
        framing = HTTP1Framing()
        framing.keepsAlive = rules.keepsAlive(version: version)
        self.length = UInt32(truncatingIfNeeded: length)
        if method == .connect, 200..<300 ~= status {
            // The tunnel begins here, whatever the fields say.
            return nil
        }
        if let defect = rules.framingDefect(version: version) { return WireError(defect, at: length) }
        if !Self.mayHaveContent(status: status, answering: method) {
            // An origin may send a body where none is allowed; it must not be read as the next response.
            let announcesBody = rules.isChunked || (rules.contentLength ?? 0) > 0
            if announcesBody, !Self.mayBeFramed(status: status) { framing.keepsAlive = false }
        } else if rules.isChunked {
            framing.body = .chunked
        } else if let count = rules.contentLength {
            framing.body = .length(count)
        } else {
            framing.body = .untilClose
            framing.keepsAlive = false
        }
        bodyLength = framing.body.length
        return nil
    }
}
