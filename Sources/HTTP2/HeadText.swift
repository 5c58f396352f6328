import PinproxyHTTPWire

/// Writes received field sections as HTTP/1.1 text, which `HeadParser` then parses strictly.
///
/// ```
/// :method GET, :scheme https, :authority a.test, :path /, cookie a=1, cookie b=2
///     →  GET / HTTP/1.1 ⏎ Host: a.test ⏎ cookie: a=1; b=2 ⏎ ⏎
/// ```
struct HeadText: ~Copyable {
    enum Kind { case request, response, trailers }

    private var text = ByteArena()
    /// Values of pseudo-header fields, and cookies, until their lines are written.
    private var pseudo = ByteArena()
    private var cookies = ByteArena()
    private let sizeLimit: Int
    private(set) var round: UInt32 = 0

    // The current section:
    private var kind = Kind.request
    private var start = 0
    private var lines = 0
    /// By RFC 9113 section 6.5.2.
    private var size = 0
    private var isBegun = false
    private var hasStartLine = false
    private var isTooLarge = false
    private var neverIndexed = false
    private var method = 0..<0
    private var path = 0..<0
    private var authority = 0..<0
    private var protocolName = 0..<0
    private var scheme = HTTP2HeadPlace.Scheme.none
    private var priority: HTTP2Priority?
    private var status = 0..<0

    /// - Parameter sizeLimit: of a section, by RFC 9113 section 6.5.2.
    init(sizeLimit: Int) { self.sizeLimit = sizeLimit }

    var sectionKind: Kind { kind }

    /// Bytes of all sections since `nextRound()`.
    var count: Int { text.count + pseudo.count + cookies.count }

    /// Drops complete sections; their places become invalid. An incomplete one stays.
    mutating func nextRound() {
        round &+= 1
        if isBegun {
            // Moves the incomplete section to the front.
            if start > 0 {
                text.removeFirst(start)
                start = 0
            }
        } else {
            text.clear()
        }
    }

    /// Releases spare memory, unless a section is incomplete.
    mutating func trim() {
        guard !isBegun else { return }
        round &+= 1
        text = ByteArena()
        pseudo = ByteArena()
        cookies = ByteArena()
    }

    mutating func begin(_ kind: Kind) {
        abandon()
        self.kind = kind
        start = text.count
        lines = 0
        size = 0
        isBegun = true
        hasStartLine = kind == .trailers
        isTooLarge = false
        neverIndexed = false
        (method, path, authority, protocolName, status) = (0..<0, 0..<0, 0..<0, 0..<0, 0..<0)
        scheme = .none
        priority = nil
        pseudo.clear()
        cookies.clear()
    }

    /// Drops the current section.
    mutating func abandon() {
        guard isBegun else { return }
        isBegun = false
        text.truncate(to: start)
        pseudo.clear()
        cookies.clear()
    }

    /// Adds a field, without the blanks around its value. Fields over the limits are dropped.
    mutating func add(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, isNeverIndexed: Bool
    ) -> HTTP2Defect? {
        guard isBegun, name.count > 0 else { return nil }
        let value = UnsafeBufferPointer(rebasing: value[value.span.trimmed(ByteRange(0, value.count)).offsets])
        size += name.count + value.count + 32
        // Up to this size a refusal can be sent. Beyond it decoding must stop: nghttp2 checks every byte it decodes.
        if size > 4 * sizeLimit { return .headTooLong }
        if size > sizeLimit || lines > HeadParser.fieldLimit {
            isTooLarge = isTooLarge || size > sizeLimit
            return nil
        }
        if name[0] == UInt8(ascii: ":") {
            addPseudo(name, value)
            return nil
        }
        if !hasStartLine { writeStartLine() }
        if kind != .trailers {
            switch name.count {
            case 4 where kind == .request && !authority.isEmpty && name.isText("host"):
                return value.equalsIgnoringCase(pseudo.bytes[authority]) ? nil : .hostDiffers
            case 6 where name.isText("cookie"):
                if cookies.count > 0 { cookies.append("; ") }
                cookies.append(value)
                return nil
            case 8 where name.isText("priority"):
                priority = HTTP2Priority(parsing: value.span)
            default: break
            }
        }
        if isNeverIndexed, !FieldName(name.span).isSecret { neverIndexed = true }
        text.appendLine(name, value)
        lines += 1
        return nil
    }

    private mutating func addPseudo(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        let range = pseudo.count..<pseudo.count + value.count
        switch (name.count, name[1]) {
        case (7, UInt8(ascii: "m")): method = range
        case (5, _): path = range
        case (10, UInt8(ascii: "a")): authority = range
        case (9, _): protocolName = range
        case (7, UInt8(ascii: "s")) where kind == .response: status = range
        case (7, _):
            scheme = value.equalsIgnoringCase("https") ? .https : value.equalsIgnoringCase("http") ? .http : .other
            return
        default: return
        }
        pseudo.append(value)
    }

    private mutating func writeStartLine() {
        hasStartLine = true
        if kind == .response {
            text.append("HTTP/1.1 ")
            text.append(pseudo.bytes[status])
            text.append(" \r\n")
            return
        }
        let isTunnel = path.isEmpty
        if protocolName.isEmpty {
            text.append(pseudo.bytes[method])
        } else {
            text.append("GET")
        }
        text.append(0x20)
        text.append(pseudo.bytes[isTunnel ? authority : path])
        text.append(" HTTP/1.1\r\n")
        if !authority.isEmpty {
            text.append("Host: ")
            text.append(pseudo.bytes[authority])
            text.append("\r\n")
            lines += 1
        }
        if !protocolName.isEmpty {
            text.append("Connection: Upgrade\r\nUpgrade: ")
            text.append(pseudo.bytes[protocolName])
            text.append("\r\n")
            lines += 2
        }
    }

    /// Completes a head. nghttp2 has checked that its pseudo-header fields are complete.
    mutating func endHead(ends: Bool) -> HTTP2HeadPlace {
        if !hasStartLine { writeStartLine() }
        if cookies.count > 0 {
            text.append("cookie: ")
            text.append(cookies.bytes)
            text.append("\r\n")
            lines += 1
            cookies.clear()
        }
        text.append("\r\n")
        isBegun = false
        return HTTP2HeadPlace(
            range: UInt32(start)..<UInt32(text.count), round: round, lines: UInt32(lines), ends: ends,
            isTooLarge: isTooLarge,
            scheme: scheme, isExtendedConnect: !protocolName.isEmpty,
            priority: priority, neverIndexed: neverIndexed)
    }

    /// Completes a trailer section.
    mutating func endTrailers() -> Result<TrailerSection, HTTP2Defect> {
        defer { abandon() }
        if isTooLarge || lines > HeadParser.fieldLimit { return .failure(.trailersTooLong) }
        return .success(TrailerSection(UnsafeBufferPointer(rebasing: text.bytes[start...]).span))
    }

    /// Whether the current response is interim (1xx).
    var isInterim: Bool { !status.isEmpty && pseudo.bytes[status.lowerBound] == UInt8(ascii: "1") }

    /// Copies the text of a head; false if its place is invalid.
    func read(_ place: HTTP2HeadPlace, into bytes: inout [UInt8]) -> Bool {
        bytes.removeAll(keepingCapacity: true)
        guard place.round == round, place.range.upperBound <= text.count else { return false }
        bytes.append(contentsOf: text.bytes[Int(place.range.lowerBound)..<Int(place.range.upperBound)])
        return true
    }
}

extension ByteArena {
    fileprivate mutating func append(_ slice: Slice<UnsafeBufferPointer<UInt8>>) {
        append(UnsafeBufferPointer(rebasing: slice))
    }
}

extension UnsafeBufferPointer<UInt8> {
    @inline(__always)
    fileprivate func isText(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count where self[index] != text.utf8Start[index] { return false }
        return true
    }

    fileprivate func equalsIgnoringCase(_ text: StaticString) -> Bool {
        equalsIgnoringCase(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)[...])
    }

    fileprivate func equalsIgnoringCase(_ other: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where self[index].lowercased != other[other.startIndex + index].lowercased {
            return false
        }
        return true
    }
}

extension UInt8 {
    fileprivate var lowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}
