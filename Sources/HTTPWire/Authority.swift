import PinproxyAddresses

/// A host and a port in canonical form, for comparison. Names are lower case without the trailing dot; addresses are
/// canonical without brackets. Anything that two programs might read differently (user information, percent-encoding,
/// odd numbers) is refused.
package struct Authority: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable { case name, ipv4, ipv6 }

    package let host: String
    package let port: UInt16
    package let kind: Kind

    package var isIPAddress: Bool { kind != .name }
    package var isIPv6: Bool { kind == .ipv6 }

    package func onPort(_ port: UInt16) -> Authority { Authority(host: host, port: port, kind: kind) }

    /// `host:port`, with brackets around an IPv6 address.
    package var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// - Parameter defaultPort: the port where none is written; nil if one must be (CONNECT).
    package static func parse(_ bytes: Span<UInt8>, defaultPort: UInt16?) -> Result<Authority, AuthorityError> {
        let whole = ByteRange(0, bytes.count)
        guard !whole.isEmpty else { return .failure(.empty) }
        if let defect = characterDefect(in: bytes) { return .failure(defect) }

        let hostRange: ByteRange
        let portRange: ByteRange?
        if bytes[0] == UInt8(ascii: "[") {
            var close = 1
            while close < bytes.count, bytes[close] != UInt8(ascii: "]") { close += 1 }
            guard close < bytes.count else { return .failure(.invalidIPv6) }
            hostRange = ByteRange(1, close)
            if close + 1 == bytes.count {
                portRange = nil
            } else {
                guard bytes[close + 1] == UInt8(ascii: ":") else { return .failure(.invalidIPv6) }
                portRange = ByteRange(close + 2, bytes.count)
            }
        } else {
            var colons = 0
            var last = bytes.count
            for offset in 0..<bytes.count where bytes[offset] == UInt8(ascii: ":") {
                colons += 1
                last = offset
            }
            // The end of the address is ambiguous: programs disagree.
            if colons > 1 { return .failure(.unbracketedIPv6(meant: bracketed(bytes, last))) }
            hostRange = ByteRange(0, last)
            portRange = colons == 0 ? nil : ByteRange(last + 1, bytes.count)
        }

        let port: UInt16
        switch parsePort(portRange, in: bytes, defaultPort: defaultPort) {
        case .success(let number): port = number
        case .failure(let error): return .failure(error)
        }
        return parseHost(hostRange, in: bytes).map { Authority(host: $0.text, port: port, kind: $0.kind) }
    }

    /// Reads an authority from text, for configuration and the command line.
    package static func parse(_ text: String, defaultPort: UInt16?) -> Result<Authority, AuthorityError> {
        parse(Array(text.utf8).span, defaultPort: defaultPort)
    }

    /// The probable meaning of an address without brackets: its last group is the port; nil if that makes no sense.
    private static func bracketed(_ bytes: Span<UInt8>, _ lastColon: Int) -> String? {
        guard let address = IPAddress(bytes.extracting(..<lastColon)),
            case .success(let port) = parsePort(ByteRange(lastColon + 1, bytes.count), in: bytes, defaultPort: nil)
        else { return IPAddress(bytes).map { "[\($0)]" } }
        return "[\(address)]:\(port)"
    }

    private static func characterDefect(in bytes: Span<UInt8>) -> AuthorityError? {
        for offset in 0..<bytes.count {
            switch bytes[offset] {
            case UInt8(ascii: "@"): return .userInformation
            case UInt8(ascii: "%"): return .percentEncoding
            case 0x80...: return .notASCII
            case 0...0x20, 0x7F: return .controlCharacter
            default: break
            }
        }
        return nil
    }

    private static func parsePort(
        _ range: ByteRange?, in bytes: Span<UInt8>, defaultPort: UInt16?
    ) -> Result<UInt16, AuthorityError> {
        // "host:" is a URI's way to say the default port (RFC 3986 section 3.2.3).
        guard let range, !range.isEmpty else {
            return defaultPort.map(Result.success) ?? .failure(.missingPort)
        }
        // Leading zeros would be passed on with the authority, to a recipient that may take them for octal.
        guard range.count <= 5, bytes[range.start] != UInt8(ascii: "0") else { return .failure(.invalidPort) }
        var number = 0
        for offset in range.offsets {
            guard bytes[offset].isDigit else { return .failure(.invalidPort) }
            number = number * 10 + Int(bytes[offset] & 0x0F)
        }
        guard let port = UInt16(exactly: number), port > 0 else { return .failure(.invalidPort) }
        return .success(port)
    }

    private static func parseHost(
        _ range: ByteRange, in bytes: Span<UInt8>
    ) -> Result<(text: String, kind: Kind), AuthorityError> {
        guard !range.isEmpty else { return .failure(.empty) }
        for offset in range.offsets where bytes[offset] == UInt8(ascii: ":") {
            guard let address = IPAddress(bytes.extracting(range.offsets)) else { return .failure(.invalidIPv6) }
            return .success((address.description, .ipv6))
        }
        // A bracket opened means that an IPv6 address was meant.
        if range.start > 0 { return .failure(.invalidIPv6) }

        var name = range
        if bytes[name.end - 1] == UInt8(ascii: ".") { name = ByteRange(name.start, name.end - 1) }
        guard !name.isEmpty else { return .failure(.emptyLabel) }
        if bytes[name.end - 1].isDigit, let address = IPAddress(bytes.extracting(name.offsets)) {
            return .success((address.description, .ipv4))
        }
        if let defect = nameDefect(name, in: bytes) { return .failure(defect) }
        var text: [UInt8] = []
        text.reserveCapacity(name.count)
        for offset in name.offsets { text.append(bytes[offset].lowercased) }
        return .success((String(decoding: text, as: UTF8.self), .name))
    }

    private static func nameDefect(_ name: ByteRange, in bytes: Span<UInt8>) -> AuthorityError? {
        guard name.count <= 253 else { return .hostTooLong }
        let labelText = ASCIISet.hostLabel
        var labelStart = name.start
        for offset in name.start...name.end {
            if offset < name.end, bytes[offset] != UInt8(ascii: ".") {
                guard labelText.contains(bytes[offset]) else { return .invalidCharacter }
                continue
            }
            guard offset > labelStart else { return .emptyLabel }
            guard offset - labelStart <= 63 else { return .labelTooLong }
            if offset == name.end, isNumber(ByteRange(labelStart, offset), in: bytes) { return .numericHost }
            labelStart = offset + 1
        }
        return nil
    }

    /// Whether a last label would be taken for (a part of) an address by inet_aton and browsers.
    private static func isNumber(_ label: ByteRange, in bytes: Span<UInt8>) -> Bool {
        if label.count >= 2, bytes[label.start] == UInt8(ascii: "0"), bytes[label.start + 1] | 0x20 == UInt8(ascii: "x")
        {
            return ByteRange(label.start + 2, label.end).offsets.allSatisfy { bytes[$0].hexValue != nil }
        }
        return label.offsets.allSatisfy { bytes[$0].isDigit }
    }
}

extension Authority {
    /// Whether a Host field, perhaps without the default port, names this authority; rarely allocates.
    package func matches(_ field: Span<UInt8>, defaultPort: UInt16) -> Bool {
        var position = 0
        if isIPv6 {
            guard field.count > 2, field[0] == UInt8(ascii: "[") else { return false }
            position = 1
        }
        for byte in host.utf8 {
            guard position < field.count, field[position].lowercased == byte else {
                return isIPv6 && matchesParsed(field, defaultPort: defaultPort)
            }
            position += 1
        }
        if isIPv6 {
            guard position < field.count, field[position] == UInt8(ascii: "]") else {
                return matchesParsed(field, defaultPort: defaultPort)
            }
            position += 1
        } else if position < field.count, field[position] == UInt8(ascii: ".") {
            position += 1
        }
        if position == field.count { return port == defaultPort }
        guard field[position] == UInt8(ascii: ":") else { return false }
        let written = Self.parsePort(ByteRange(position + 1, field.count), in: field, defaultPort: defaultPort)
        if case .success(port) = written { return true }
        return false
    }

    /// Whether a name of SNI is this host. Real clients also send addresses, without brackets (not RFC 6066 section 3).
    package func isNamed(_ name: String) -> Bool {
        if name == host, !isIPv6 { return true }
        // A server looks the name up as it is: with a port it may well show another host's certificate.
        let text = isIPv6 ? (name.hasSuffix("]") ? name : "[\(name)]") : name
        guard isIPv6 || !name.contains(":"), case .success(let other) = Self.parse(text, defaultPort: port) else {
            return false
        }
        return other.host == host && other.kind == kind
    }

    /// Whether a name of SNI is this host, or, as some clients send it, host and port.
    package func isNamedWithPort(_ name: String) -> Bool {
        if isNamed(name) { return true }
        guard name.contains(":"), case .success(let other) = Self.parse(name, defaultPort: nil) else { return false }
        return other == self
    }

    private func matchesParsed(_ field: Span<UInt8>, defaultPort: UInt16) -> Bool {
        if case .success(self) = Self.parse(field, defaultPort: defaultPort) { return true }
        return false
    }
}

package enum AuthorityError: Error, Sendable, Hashable, CustomStringConvertible {
    case empty, userInformation, percentEncoding, notASCII, controlCharacter, invalidCharacter
    case emptyLabel, labelTooLong, hostTooLong, numericHost
    case invalidIPv6
    /// With what it would have been in brackets.
    case unbracketedIPv6(meant: String?)
    case missingPort, invalidPort

    package var description: String {
        switch self {
        case .empty: "the host is empty"
        case .userInformation: "the authority contains user information (\"@\")"
        case .percentEncoding: "the host is percent-encoded, or an address has a zone"
        case .notASCII: "the host is not ASCII: write it as an A-label (xn--…)"
        case .controlCharacter: "the authority contains white space or a control character"
        case .invalidCharacter: "the host contains a character that host names can't have"
        case .emptyLabel: "the host has an empty label"
        case .labelTooLong: "a label of the host is longer than 63 bytes"
        case .hostTooLong: "the host is longer than 253 bytes"
        case .numericHost: "the host ends in a number but is not an IPv4 address"
        case .invalidIPv6: "the IPv6 address is malformed"
        case .unbracketedIPv6(let meant):
            meant.map { "an IPv6 address needs brackets: write \($0)" }
                ?? "the host has more than one colon, and is not an IPv6 address in brackets, as in [2001:db8::1]:443"
        case .missingPort: "the port is missing"
        case .invalidPort: "the port is not a number from 1 to 65535, without leading zeros"
        }
    }
}
