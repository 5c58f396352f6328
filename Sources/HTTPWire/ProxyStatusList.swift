/// Walks over a Proxy-Status field (RFC 9209 section 2, RFC 8941 section 3.1), to find members in this proxy's name: an
/// origin that sent one could forge a refusal.
struct ProxyStatusList {
    enum Step: Equatable {
        /// The next member with its parameters, without white space around it.
        case member(ByteRange, isOurs: Bool)
        case end
        /// Not a list: recipients must ignore the field.
        case malformed
    }

    enum Content: Equatable {
        /// Members of other proxies only: it passes unchanged.
        case others
        /// Members of this one and of others.
        case mixed
        /// Nothing to pass on: members of this proxy only, or not a list.
        case nothing
    }

    private var next: Int
    private let end: Int

    /// - Parameter value: without white space at its ends.
    init(_ value: ByteRange) {
        next = value.start
        end = value.end
    }

    static func content(of value: ByteRange, in bytes: Span<UInt8>) -> Content {
        var members = ProxyStatusList(bytes.trimmed(value))
        var ours = 0
        var others = 0
        while true {
            switch members.next(in: bytes) {
            case .member(_, isOurs: true): ours += 1
            case .member: others += 1
            case .end: return others == 0 ? .nothing : ours == 0 ? .others : .mixed
            case .malformed: return .nothing
            }
        }
    }

    mutating func next(in bytes: Span<UInt8>) -> Step {
        guard next < end else { return .end }
        let start = next
        guard let identifier = readIdentifier(in: bytes) else { return .malformed }
        // Up to the comma. Only strings matter in parameters: they may hold commas.
        while next < end, bytes[next] != UInt8(ascii: ",") {
            guard bytes[next].isVisible else { return .malformed }
            if bytes[next] == UInt8(ascii: "\"") {
                // A display string (RFC 9651) knows other escapes, and no parameter here is one.
                guard bytes[next - 1] != UInt8(ascii: "%"), readString(in: bytes) != nil else { return .malformed }
            } else {
                next += 1
            }
        }
        let member = bytes.trimmed(ByteRange(start, next))
        let follower = identifier.after < member.end ? bytes[identifier.after] : UInt8(ascii: ";")
        guard follower == UInt8(ascii: ";") else { return .malformed }
        if next < end {
            next += 1
            while next < end, bytes[next].isBlank { next += 1 }
            // A comma with nothing after it.
            guard next < end else { return .malformed }
        }
        return .member(member, isOurs: bytes.equals(identifier.name, ignoringCase: "pinproxy"))
    }

    private mutating func readIdentifier(in bytes: Span<UInt8>) -> (name: ByteRange, after: Int)? {
        let start = next
        if bytes[start] == UInt8(ascii: "\"") {
            guard let text = readString(in: bytes) else { return nil }
            return (text, next)
        }
        guard bytes[start].isLetter || bytes[start] == UInt8(ascii: "*") else { return nil }
        while next < end, ASCIISet.structuredToken.contains(bytes[next]) { next += 1 }
        return (ByteRange(start, next), next)
    }

    /// The text between the quotes; escapes stay, since no name holds one.
    private mutating func readString(in bytes: Span<UInt8>) -> ByteRange? {
        next += 1
        let start = next
        while next < end {
            switch bytes[next] {
            case UInt8(ascii: "\""):
                next += 1
                return ByteRange(start, next - 1)
            case UInt8(ascii: "\\"):
                guard next + 1 < end, bytes[next + 1] == UInt8(ascii: "\"") || bytes[next + 1] == UInt8(ascii: "\\")
                else { return nil }
                next += 2
            default:
                guard bytes[next].isVisible else { return nil }
                next += 1
            }
        }
        return nil
    }
}

extension UInt8 {
    fileprivate var isVisible: Bool { (self >= 0x20 && self < 0x7F) || self == 0x09 }
}
