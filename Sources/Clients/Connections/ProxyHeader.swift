import PinproxyEventLoop

/// The PROXY protocol, versions 1 and 2 (HAProxy's `proxy-protocol.txt`, 2.8), sent before a client's first byte. It
/// can claim any address, so it counts from trusted senders only.
package struct ProxyHeader: Equatable, Sendable {
    /// The client's address.
    enum Source: Equatable, Sendable {
        case address(SocketAddress)
        /// The sender itself is the client (LOCAL), or gives no address: the connection's address counts.
        case unknown
    }

    let source: Source
    /// Bytes of the header.
    package let length: Int

    /// Bytes. Version 1 fits into 107; version 2 could have 65551, which no sender needs.
    package static let longest = 4096
    private static let longestText = 107

    package enum Defect: Error, Equatable, Sendable, CustomStringConvertible {
        case noHeader
        case tooLong
        case malformed(String)
        case wrongChecksum

        package var description: String {
            switch self {
            case .noHeader: "no PROXY header comes first"
            case .tooLong: "the PROXY header is longer than \(longest) bytes"
            case .malformed(let what): "malformed PROXY header: \(what)"
            case .wrongChecksum: "the checksum of the PROXY header is wrong"
            }
        }
    }

    /// - Returns: nil: more bytes are needed.
    package static func parse(_ bytes: [UInt8]) throws(Defect) -> ProxyHeader? {
        if starts(bytes, with: signature) { return bytes.count < signature.count ? nil : try binary(bytes) }
        if starts(bytes, with: textSignature) { return bytes.count < textSignature.count ? nil : try text(bytes) }
        throw .noHeader
    }

    private static func starts(_ bytes: [UInt8], with expected: [UInt8]) -> Bool {
        bytes.prefix(expected.count).elementsEqual(expected.prefix(bytes.count))
    }

    // MARK: Version 1

    private static let textSignature = Array("PROXY ".utf8)

    /// `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443`
    private static func text(_ bytes: [UInt8]) throws(Defect) -> ProxyHeader? {
        guard let end = bytes.prefix(longestText).firstIndex(of: UInt8(ascii: "\n")) else {
            if bytes.count >= longestText { throw .malformed("a line of version 1 has at most \(longestText) bytes") }
            return nil
        }
        guard bytes[end - 1] == UInt8(ascii: "\r") else { throw .malformed("the line doesn't end with CR LF") }
        let fields = bytes[textSignature.count..<end - 1].split(
            separator: UInt8(ascii: " "), omittingEmptySubsequences: false
        )
        .map { String(decoding: $0, as: UTF8.self) }
        // Anything after UNKNOWN is ignored.
        if fields.first == "UNKNOWN" { return ProxyHeader(source: .unknown, length: end + 1) }
        guard fields.count == 5, fields[0] == "TCP4" || fields[0] == "TCP6" else {
            throw .malformed("TCP4, TCP6 or UNKNOWN, two addresses and two ports are wanted")
        }
        let isIPv6 = fields[0] == "TCP6"
        guard let source = IPAddress(fields[1]), source.isIPv6 == isIPv6, IPAddress(fields[2])?.isIPv6 == isIPv6 else {
            throw .malformed("an address is not one of \(fields[0])")
        }
        guard let port = port(fields[3]), Self.port(fields[4]) != nil else {
            throw .malformed("a port is not a number up to 65535")
        }
        return ProxyHeader(source: .address(SocketAddress(ip: source, port: port)), length: end + 1)
    }

    private static func port(_ text: String) -> UInt16? {
        let isDigits = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard isDigits, text == "0" || !text.hasPrefix("0") else { return nil }
        return UInt16(text)
    }

    // MARK: Version 2

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let fixedLength = 16

    private static func binary(_ bytes: [UInt8]) throws(Defect) -> ProxyHeader? {
        // Bad bytes are reported early.
        if bytes.count > 12 {
            guard bytes[12] >> 4 == 2 else { throw .malformed("version \(bytes[12] >> 4)") }
            guard bytes[12] & 0xF < 2 else { throw .malformed("command \(bytes[12] & 0xF)") }
        }
        guard bytes.count >= fixedLength else { return nil }
        let isLocal = bytes[12] & 0xF == 0
        let length = fixedLength + Int(bytes[14]) << 8 + Int(bytes[15])
        guard length <= longest else { throw .tooLong }
        let (family, transport) = (bytes[13] >> 4, bytes[13] & 0xF)
        let addresses = isLocal ? 0 : [0, 12, 36, 216][Int(min(family, 3))]
        guard isLocal || family < 4 && transport < 3 else {
            throw .malformed("address family \(family), transport \(transport)")
        }
        guard isLocal || transport != 2 else { throw .malformed("datagrams, where a stream is") }
        guard fixedLength + addresses <= length else { throw .malformed("it ends within the addresses") }
        guard bytes.count >= length else { return nil }
        // LOCAL's addresses are ignored, and their length is unknown.
        if !isLocal { try checkFields(of: bytes, from: fixedLength + addresses, to: length) }
        let width = isLocal || transport != 1 ? 0 : [0, 4, 16, 0][Int(family)]
        guard let ip = IPAddress(bytes: Array(bytes[fixedLength..<fixedLength + width])) else {
            return ProxyHeader(source: .unknown, length: length)
        }
        let port = fixedLength + 2 * width
        return ProxyHeader(
            source: .address(SocketAddress(ip: ip, port: UInt16(bytes[port]) << 8 | UInt16(bytes[port + 1]))),
            length: length)
    }

    /// PP2_TYPE_CRC32C
    private static let checksumType: UInt8 = 0x03

    /// Reads the fields after the addresses (type, length, value). Only the checksum is used.
    private static func checkFields(of bytes: [UInt8], from start: Int, to end: Int) throws(Defect) {
        var index = start
        while index < end {
            guard index + 3 <= end else { throw .malformed("it ends within a field") }
            let value = index + 3
            let next = value + Int(bytes[index + 1]) << 8 + Int(bytes[index + 2])
            guard next <= end else { throw .malformed("it ends within a field") }
            if bytes[index] == checksumType {
                guard next - value == 4 else { throw .malformed("the checksum has \(next - value) bytes") }
                let written = bytes[value..<next].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                // Computed with zeros in its own place.
                var covered = Array(bytes[..<end])
                covered.replaceSubrange(value..<next, with: [0, 0, 0, 0])
                guard CRC32C.of(covered) == written else { throw .wrongChecksum }
            }
            index = next
        }
    }
}

/// The checksum of iSCSI and SCTP (RFC 4960 appendix B).
enum CRC32C {
    /// CRCs of each byte with the reflected polynomial 0x82F63B78.
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 0 ? value >> 1 : value >> 1 ^ 0x82F6_3B78 }
    }

    static func of(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { $0 >> 8 ^ table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
    }
}
