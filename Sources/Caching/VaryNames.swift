import PinproxyHTTPWire

/// The names that a Vary field lists (RFC 9110 section 12.5.5).
package enum VaryNames: Sendable, Equatable {
    case none
    /// In lower case, sorted, each once.
    case names([String])
    /// `*`, an unreadable value, or too many names: no request is known to match.
    case anything

    /// More would make each look-up of the URL costly.
    static let most = 32

    /// The names that a request's fields are selected by; empty for `anything`, which matches none.
    package var list: [String] { if case .names(let names) = self { names } else { [] } }

    package mutating func add(_ value: Span<UInt8>) {
        guard self != .anything else { return }
        var names: [String] = if case .names(let known) = self { known } else { [] }
        for part in value.array.split(separator: UInt8(ascii: ",")) {
            let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == 0x09 }
            let bytes = part.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
            if bytes.isEmpty { continue }
            let name = String(decoding: Array(bytes), as: UTF8.self).lowercased()
            if names.contains(name) { continue }
            // Names without a comma between them would be a field that no request has, and so match each.
            guard name != "*", bytes.allSatisfy(\.isNameText), names.count < Self.most else {
                self = .anything
                return
            }
            names.append(name)
        }
        self = names.isEmpty ? .none : .names(names.sorted())
    }
}

extension UInt8 {
    /// tchar (RFC 9110 section 5.6.2).
    fileprivate var isNameText: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }
}
