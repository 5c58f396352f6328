package import PinproxyTLS

/// The proxy's request to a signer: a leaf for one host and one key. One packet of at most ``longest`` bytes.
///
/// Version 1, big-endian: the version (1 byte), the SHA-256 of the signing authority's certificate (32), the port (2),
/// the host's length (1) and the host, then the leaf's key: a P-256 SubjectPublicKeyInfo in DER, uncompressed (RFC 5480
/// section 2), as the proxy makes them. Any other key is refused unparsed.
package struct LeafRequest: Sendable, Equatable {
    package let authority: SHA256Digest
    package let host: ServerName
    /// The port of the CONNECT: policies may differ by port.
    package let port: UInt16
    package let key: [UInt8]

    private static let version: UInt8 = 1
    private static let headLength = 36
    /// The bytes before a point's coordinates.
    private static let keyHead: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48,
        0xCE, 0x3D, 0x03,
        0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]
    private static let keyLength = keyHead.count + 64
    package static let longest = headLength + Int(UInt8.max) + keyLength

    package init(authority: SHA256Digest, host: ServerName, port: UInt16, key: [UInt8]) {
        (self.authority, self.host, self.port, self.key) = (authority, host, port, key)
    }

    /// Nil: the packet is malformed, or its host isn't written as ``ServerName`` writes it.
    package init?(_ packet: [UInt8]) {
        guard packet.count > Self.headLength, packet.count <= Self.longest, packet[0] == Self.version,
            let authority = SHA256Digest(bytes: Array(packet[1..<33]))
        else { return nil }
        let end = Self.headLength + Int(packet[35])
        guard end > Self.headLength, packet.count == end + Self.keyLength, packet[end...].starts(with: Self.keyHead),
            let text = String(validating: packet[Self.headLength..<end], as: UTF8.self)
        else { return nil }
        let host = ServerName(host: text)
        guard host.description == text else { return nil }
        self.init(
            authority: authority, host: host, port: UInt16(packet[33]) << 8 | UInt16(packet[34]),
            key: Array(packet[end...]))
    }

    /// Nil: the host's name is longer than a DNS name can be.
    package var packet: [UInt8]? {
        let name = Array(host.description.utf8)
        guard !name.isEmpty, name.count <= Int(UInt8.max) else { return nil }
        return [Self.version] + authority.bytes + [UInt8(port >> 8), UInt8(port & 0xff), UInt8(name.count)] + name + key
    }
}

/// A signer's answer, one packet: 0 and the leaf in DER, or 1 and the refusal's reason in UTF-8.
package enum LeafAnswer: Sendable, Equatable {
    case leaf([UInt8])
    case refused(String)

    package static let longest = 8192

    package init?(_ packet: [UInt8]) {
        guard let kind = packet.first, packet.count <= Self.longest else { return nil }
        let rest = packet.dropFirst()
        switch kind {
        case 0 where !rest.isEmpty: self = .leaf(Array(rest))
        case 1:
            guard let text = String(validating: rest, as: UTF8.self) else { return nil }
            self = .refused(text)
        default: return nil
        }
    }

    package var packet: [UInt8] {
        switch self {
        case .leaf(let der): [0] + der
        case .refused(let reason): [1] + Array(reason.utf8)
        }
    }
}
