/// The argument of a cache directive (RFC 9111 section 5.2).
enum DirectiveArgument: Equatable {
    case none
    case value([UInt8])
    /// Neither a token nor a quoted string, or something else stands in the same element.
    case unreadable
}

/// Walks over the elements of a list, as challenges, credentials and cache directives are.
struct ElementScanner {
    private var next = 0
    private let end: Int
    private var isMalformed = false
    private var hasBrokenQuotes = false

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

    /// `name = value`; nil if it is missing or malformed.
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

    /// The next cache directive; nil: a byte or a quoted text that belongs to none was skipped.
    ///
    /// What follows a directive without a comma is read as well, as in `private no-store`: leaving it out could drop a
    /// prohibition. All arguments of such an element are unreadable.
    mutating func directive(in bytes: Span<UInt8>) -> (name: String, argument: DirectiveArgument)? {
        while next < end, bytes[next].isBlank || bytes[next] == UInt8(ascii: ",") {
            if bytes[next] == UInt8(ascii: ",") { isMalformed = hasBrokenQuotes }
            next += 1
        }
        guard next < end else { return nil }
        guard let name = token(in: bytes) else {
            isMalformed = true
            if wellQuoted(in: bytes) == nil { next += 1 }
            return nil
        }
        let argument = argument(in: bytes)
        if !isAtElementEnd(in: bytes) { isMalformed = true }
        return (name.lowercaseText(in: bytes), isMalformed ? .unreadable : argument)
    }

    private mutating func argument(in bytes: Span<UInt8>) -> DirectiveArgument {
        skipBlanks(in: bytes)
        guard next < end, bytes[next] == UInt8(ascii: "=") else { return .none }
        next += 1
        skipBlanks(in: bytes)
        guard next < end else { return .unreadable }
        let value = wellQuoted(in: bytes) ?? token(in: bytes)?.copy(of: bytes)
        return value.map(DirectiveArgument.value) ?? .unreadable
    }

    /// A quote without an end, or with something after its end, hides nothing: it is a byte like others, and so are all
    /// that follow. What stands there can forbid, but permits nothing.
    private mutating func wellQuoted(in bytes: Span<UInt8>) -> [UInt8]? {
        guard !hasBrokenQuotes, bytes[next] == UInt8(ascii: "\"") else { return nil }
        let start = next
        if let text = quoted(in: bytes), isAtElementEnd(in: bytes) { return text }
        hasBrokenQuotes = true
        next = start
        return nil
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
