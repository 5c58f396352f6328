/// ServerKeyExchange of TLS 1.2 (RFC 5246 section 7.4.3, RFC 8422 section 5.4). Its signature proves that the server
/// holds the certificate's key.
package struct ServerKeyExchange: Sendable, Equatable {
    /// The signed bytes: the randoms of client and server, and the parameters as sent.
    package let signed: [UInt8]
    /// As in signature_algorithms: hash and signature (RFC 5246 section 7.4.1.4.1) or a number (RFC 8446 section
    /// 4.2.3).
    package let scheme: UInt16
    package let signature: [UInt8]

    package enum Fault: Error, Sendable, Equatable {
        /// The suite exchanges keys without a signature (static RSA, static Diffie-Hellman, a shared key).
        case unsigned
        /// The suite requires the message, and it is missing or malformed.
        case malformed
    }

    /// Reads the message in the cipher suite's form, as the client will.
    package init(_ shown: ServerCertificates, clientRandom: [UInt8]) throws(Fault) {
        guard let exchange = SignedKeyExchange(suite: shown.cipherSuite) else { throw .unsigned }
        guard let message = shown.keyExchange, clientRandom.count == 32, shown.random.count == 32,
            let parts = Self.read(message.span, exchange)
        else { throw .malformed }
        signed = clientRandom + shown.random + message[..<parts.parametersEnd]
        scheme = parts.scheme
        signature = Array(message[parts.signature.start..<parts.signature.end])
    }

    private static func read(
        _ bytes: Span<UInt8>, _ exchange: SignedKeyExchange
    ) -> (parametersEnd: Int, scheme: UInt16, signature: ByteRange)? {
        var reader = ByteReader(lower: 0, upper: bytes.count)
        switch exchange {
        case .ellipticCurve:
            // named_curve, which curve, a point. Curves by their own parameters are deprecated (RFC 8422 section 5.4).
            guard reader.number(bytes: 1, in: bytes) == 3, reader.skip(2),
                let point = reader.vector(lengthBytes: 1, in: bytes), point.count > 0
            else { return nil }
        case .finiteField:
            // Prime, generator, public value.
            for _ in 0..<3 {
                guard let number = reader.vector(lengthBytes: 2, in: bytes), number.count > 0 else { return nil }
            }
        }
        let parametersEnd = reader.range.start
        guard let scheme = reader.number(bytes: 2, in: bytes),
            let signature = reader.vector(lengthBytes: 2, in: bytes), signature.count > 0, reader.isAtEnd
        else { return nil }
        return (parametersEnd, UInt16(scheme), signature.range)
    }
}

/// The TLS 1.2 cipher suites with a ServerKeyExchange that a certificate's key signs, and its form.
private enum SignedKeyExchange {
    case ellipticCurve, finiteField

    /// By IANA's registry "TLS Cipher Suites": those of ECDHE_ECDSA, ECDHE_RSA and DHE_RSA.
    init?(suite: UInt16) {
        switch suite {
        case 0xC006...0xC00A, 0xC010...0xC014, 0xC023, 0xC024, 0xC027, 0xC028, 0xC02B, 0xC02C, 0xC02F, 0xC030, 0xC048,
            0xC049, 0xC04C, 0xC04D, 0xC05C, 0xC05D, 0xC060, 0xC061, 0xC072, 0xC073, 0xC076, 0xC077, 0xC086, 0xC087,
            0xC08A, 0xC08B, 0xC0AC...0xC0AF, 0xCCA8, 0xCCA9:
            self = .ellipticCurve
        case 0x0016, 0x0033, 0x0039, 0x0045, 0x0067, 0x006B, 0x0088, 0x009A, 0x009E, 0x009F, 0x00BE, 0x00C4, 0xC044,
            0xC045, 0xC052, 0xC053, 0xC07C, 0xC07D, 0xC09E, 0xC09F, 0xC0A2, 0xC0A3, 0xCCAA:
            self = .finiteField
        default: return nil
        }
    }
}
