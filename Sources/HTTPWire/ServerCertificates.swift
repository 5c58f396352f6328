/// The certificates and evidence that a server of TLS 1.2 or older presents in a full handshake.
package struct ServerCertificates: Sendable, Equatable {
    /// As on the wire: 0x0303 is TLS 1.2.
    package let version: UInt16
    /// The random of its ServerHello: 32 bytes.
    package let random: [UInt8]
    /// The IANA number of the cipher suite; it determines the key exchange.
    package let cipherSuite: UInt16
    /// Each as DER, the server's own first; at least one, not yet parsed.
    package let certificates: [[UInt8]]
    /// The OCSP response that is stapled (RFC 6066 section 8).
    package let ocspResponse: [UInt8]?
    /// The timestamps of the signed_certificate_timestamp extension (RFC 6962 section 3.3.1); empty if unreadable.
    package let timestamps: [[UInt8]]
    /// The body of ServerKeyExchange, unparsed; nil without that message (see ``ServerKeyExchange``).
    package let keyExchange: [UInt8]?
}

/// Splits the clear part of a handshake into records (RFC 8446 section 5.1).
struct RecordReader: Sendable {
    enum Piece {
        /// A part of a handshake record, as a range of the bytes given.
        case handshake(ByteRange)
        case changeCipherSpec
        case alert(level: UInt8, description: UInt8)
        case malformed
    }

    /// False within a handshake message, where no other record may appear.
    var allowsOtherTypes = true
    private var type: UInt8 = 0
    private var header = 0
    private var length = 0
    private var left = 0
    private var alertLevel: UInt8 = 0

    var isBetweenRecords: Bool { header == 0 }

    /// The next piece; nil if the bytes end before one is complete.
    mutating func next(in bytes: Span<UInt8>, from offset: inout Int) -> Piece? {
        while offset < bytes.count {
            if header < 5 {
                guard readHeader(bytes[offset]) else {
                    offset += 1
                    return .malformed
                }
                offset += 1
                continue
            }
            guard type == 22 else {
                let byte = bytes[offset]
                offset += 1
                left -= 1
                if left == 0 { header = 0 }
                if type == 20 { return byte == 1 ? .changeCipherSpec : .malformed }
                if left == 1 { alertLevel = byte } else { return .alert(level: alertLevel, description: byte) }
                continue
            }
            let count = min(left, bytes.count - offset)
            defer { offset += count }
            left -= count
            if left == 0 { header = 0 }
            return .handshake(ByteRange(offset, offset + count))
        }
        return nil
    }

    /// Reads type, version and length; false if they are invalid.
    private mutating func readHeader(_ byte: UInt8) -> Bool {
        defer { header += 1 }
        switch header {
        case 0:
            type = byte
            return byte == 22 || (allowsOtherTypes && (byte == 20 || byte == 21))
        case 1: return byte == 3
        case 2: return byte <= 4
        case 3:
            length = Int(byte) << 8
            return true
        default:
            length |= Int(byte)
            left = length
            switch type {
            case 20: return length == 1
            case 21: return length == 2
            default: return 1...(1 << 14) ~= length
            }
        }
    }
}
