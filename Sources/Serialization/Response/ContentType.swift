/// The Content-Type of a response, perhaps malformed. Case and parameters don't count (RFC 9110 section 8.3).
///
/// A combined field (`text/html, application/json`) is malformed: recipients disagree about which half counts.
public struct ContentType: Sendable, Hashable, CustomStringConvertible {
    /// `application/json`, in lower case; nil if the value is malformed.
    public let essence: String?
    /// The bytes to show, and one more if the value is longer.
    private let received: [UInt8]

    /// - Parameter text: the value of Content-Type, valid or not.
    public init(_ text: String) {
        var copy = text
        self = copy.withUTF8 { ContentType($0.span) }
    }

    /// - Parameter bytes: the value of the field.
    public init(_ bytes: Span<UInt8>) {
        essence = Self.essence(of: bytes)
        var received: [UInt8] = []
        let count = min(bytes.count, Self.longestShown + 1)
        received.reserveCapacity(count)
        for index in 0..<count { received.append(bytes[index]) }
        self.received = received
    }

    var isEmpty: Bool { received.isEmpty }

    private static let longestShown = 100

    /// For display: the value without control characters, at most 100 bytes of it.
    public var description: String { ShownBytes.text(received.span, most: Self.longestShown) }

    private static func essence(of bytes: Span<UInt8>) -> String? {
        var start = 0
        while start < bytes.count, bytes[start].isBlank { start += 1 }
        var at = start
        while at < bytes.count, bytes[at].isTokenCharacter { at += 1 }
        guard at > start, at < bytes.count, bytes[at] == UInt8(ascii: "/") else { return nil }
        at += 1
        let subtype = at
        while at < bytes.count, bytes[at].isTokenCharacter { at += 1 }
        guard at > subtype, at - start <= 255 else { return nil }
        let end = at
        guard isParameters(bytes, from: at) else { return nil }
        var folded: [UInt8] = []
        folded.reserveCapacity(end - start)
        for index in start..<end {
            let byte = bytes[index]
            folded.append(byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte)
        }
        return String(decoding: folded, as: UTF8.self)
    }

    /// White space up to the end or a semicolon; after that anything but a comma outside of quotes.
    private static func isParameters(_ bytes: Span<UInt8>, from start: Int) -> Bool {
        var at = start
        while at < bytes.count, bytes[at].isBlank { at += 1 }
        guard at < bytes.count else { return true }
        guard bytes[at] == UInt8(ascii: ";") else { return false }
        var isQuoted = false
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\") where isQuoted: at += 1
            case UInt8(ascii: ",") where !isQuoted: return false
            default: break
            }
            at += 1
        }
        return true
    }
}

extension MediaRange {
    /// Whether it includes a type, given in lower case without parameters.
    func includes(essence: String) -> Bool {
        guard let type else { return true }
        guard let subtype else {
            return essence.utf8.starts(with: type.utf8)
                && essence.utf8.dropFirst(type.utf8.count).first == UInt8(ascii: "/")
        }
        return essence.utf8.count == type.utf8.count + 1 + subtype.utf8.count
            && essence.utf8.starts(with: type.utf8)
            && essence.utf8.dropFirst(type.utf8.count).first == UInt8(ascii: "/")
            && essence.utf8.dropFirst(type.utf8.count + 1).elementsEqual(subtype.utf8)
    }
}

extension UInt8 {
    /// OWS (RFC 9110 section 5.6.3).
    var isBlank: Bool { self == 0x20 || self == 0x09 }
}
