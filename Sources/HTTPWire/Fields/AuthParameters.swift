/// The parameters of a challenge or of credentials (auth-param, RFC 9110 section 11.2), in their order.
package struct AuthParameters: Sendable, Hashable {
    /// More than any scheme defines.
    package static let most = 32

    /// Names in lower case, values without quotes and escapes.
    private var pairs: [(name: String, value: [UInt8])] = []

    package init() {}

    package var count: Int { pairs.count }

    package subscript(_ name: String) -> [UInt8]? { pairs.first { $0.name == name }?.value }

    /// Bytes of all names and values.
    package var length: Int { pairs.reduce(0) { $0 + $1.name.utf8.count + $1.value.count } }

    /// The parameters that a field consists of, as Authentication-Info does (RFC 7615 section 3); nil if it doesn't.
    package static func parse(_ value: Span<UInt8>) -> AuthParameters? {
        var scanner = AuthScanner(value)
        var parameters = AuthParameters()
        while true {
            scanner.skipSeparators(in: value)
            if scanner.isAtEnd { return parameters }
            guard let pair = scanner.parameter(in: value), parameters.add(pair) else { return nil }
            guard scanner.isAtElementEnd(in: value) else { return nil }
        }
    }

    /// False if the name is there already (RFC 9110 section 11.2: once), or there are too many.
    mutating func add(_ pair: (name: String, value: [UInt8])) -> Bool {
        guard pairs.count < Self.most, self[pair.name] == nil else { return false }
        pairs.append(pair)
        return true
    }

    package static func == (left: AuthParameters, right: AuthParameters) -> Bool {
        left.pairs.elementsEqual(right.pairs) { $0 == $1 }
    }

    package func hash(into hasher: inout Hasher) {
        for pair in pairs {
            hasher.combine(pair.name)
            hasher.combine(pair.value)
        }
    }
}

/// Walks over the elements that challenges and credentials are made of.
struct AuthScanner {
    private var next = 0
    private let end: Int

    init(_ value: Span<UInt8>) { end = value.count }

    var isAtEnd: Bool { next >= end }

    mutating func skipSeparators(in bytes: Span<UInt8>) {
        while next < end, bytes[next].isBlank || bytes[next] == UInt8(ascii: ",") { next += 1 }
    }

    /// Skips white space; whether an element ends there.
    mutating func isAtElementEnd(in bytes: Span<UInt8>) -> Bool {
        skipBlanks(in: bytes)
        return next == end || bytes[next] == UInt8(ascii: ",")
    }

    /// A scheme, if the next element begins with one: a token that no `=` follows.
    mutating func scheme(in bytes: Span<UInt8>) -> String? {
        let start = next
        guard let name = token(in: bytes) else { return nil }
        let after = next
        skipBlanks(in: bytes)
        let isWord = after == end || bytes[after].isBlank || bytes[after] == UInt8(ascii: ",")
        if isWord, next == end || bytes[next] != UInt8(ascii: "=") { return name.lowercaseText(in: bytes) }
        next = start
        return nil
    }

    /// Opaque credentials after a scheme, if that is what the element consists of.
    mutating func token68(in bytes: Span<UInt8>) -> [UInt8]? {
        let start = next
        let text = ASCIISet.token68
        while next < end, text.contains(bytes[next]) { next += 1 }
        guard next > start else { return nil }
        while next < end, bytes[next] == UInt8(ascii: "=") { next += 1 }
        let range = ByteRange(start, next)
        if isAtElementEnd(in: bytes) { return range.copy(of: bytes) }
        next = start
        return nil
    }

    /// `name = value`; nil if there is none or it is malformed.
    mutating func parameter(in bytes: Span<UInt8>) -> (name: String, value: [UInt8])? {
        guard let name = token(in: bytes) else { return nil }
        skipBlanks(in: bytes)
        guard next < end, bytes[next] == UInt8(ascii: "=") else { return nil }
        next += 1
        skipBlanks(in: bytes)
        guard next < end else { return nil }
        let value = bytes[next] == UInt8(ascii: "\"") ? quoted(in: bytes) : bare(in: bytes)
        return value.map { (name.lowercaseText(in: bytes), $0) }
    }

    private mutating func skipBlanks(in bytes: Span<UInt8>) {
        while next < end, bytes[next].isBlank { next += 1 }
    }

    private mutating func token(in bytes: Span<UInt8>) -> ByteRange? {
        let start = next
        let text = ASCIISet.token
        while next < end, text.contains(bytes[next]) { next += 1 }
        return next > start ? ByteRange(start, next) : nil
    }

    /// Should be a token; some servers leave out the quotes of nonces and paths, and what they mean is clear.
    private mutating func bare(in bytes: Span<UInt8>) -> [UInt8]? {
        let start = next
        while next < end, bytes[next] > .space, bytes[next] < 0x7F {
            if bytes[next] == UInt8(ascii: ",") || bytes[next] == UInt8(ascii: "\"") { break }
            next += 1
        }
        return next > start ? ByteRange(start, next).copy(of: bytes) : nil
    }

    /// A quoted-string (RFC 9110 section 5.6.4), its escapes resolved.
    private mutating func quoted(in bytes: Span<UInt8>) -> [UInt8]? {
        next += 1
        var text: [UInt8] = []
        while next < end {
            var byte = bytes[next]
            if byte == UInt8(ascii: "\"") {
                next += 1
                return text
            }
            if byte == UInt8(ascii: "\\") {
                next += 1
                guard next < end else { return nil }
                byte = bytes[next]
            }
            guard byte.isFieldText else { return nil }
            text.append(byte)
            next += 1
        }
        return nil
    }
}

extension ByteRange {
    fileprivate func lowercaseText(in bytes: Span<UInt8>) -> String {
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for offset in offsets { copy.append(bytes[offset].lowercased) }
        return String(decoding: copy, as: UTF8.self)
    }
}

extension ASCIISet {
    /// token68 (RFC 9110 section 11.2), without the `=` at its end.
    static let token68 = ASCIISet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/")
}
