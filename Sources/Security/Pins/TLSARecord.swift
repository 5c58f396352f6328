import PinproxyTLS

/// A TLSA record of DNS (RFC 6698 section 2, RFC 7671), used as a pin.
///
/// `3 1 1 0d6f…` or the whole line of a zone file, `_443._tcp.api.example.com. IN TLSA 3 1 1 0d6f…`:
///
/// | field    | values                                                                              |
/// |----------|-------------------------------------------------------------------------------------|
/// | usage    | 0 PKIX-TA, 2 DANE-TA: an authority of the chain. 1 PKIX-EE, 3 DANE-EE: the leaf.     |
/// | selector | 0 the whole certificate, 1 its public key                                            |
/// | matching | 0 the bytes themselves, 1 their SHA-256, 2 their SHA-512                             |
///
/// The record comes from the pin file and is never looked up, so usages 2 and 3 loosen nothing: whether the trust
/// anchors must verify too is `allow_invalid_certificates`, as for other pins.
package struct TLSARecord: Sendable, Hashable, CustomStringConvertible {
    package enum Usage: UInt8, Sendable, Hashable {
        case pkixTA = 0
        case pkixEE, daneTA, daneEE
    }
    package enum Selector: UInt8, Sendable, Hashable {
        case certificate = 0
        case publicKey
    }
    package enum Matching: UInt8, Sendable, Hashable {
        case exact = 0
        case sha256, sha512
    }

    package let usage: Usage
    package let selector: Selector
    package let matching: Matching
    package let data: [UInt8]

    /// In one line, hexadecimal in lower case.
    package var description: String {
        let digits = data.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "\(usage.rawValue) \(selector.rawValue) \(matching.rawValue) \(digits)"
    }

    /// Whether a certificate at a depth (0 is the leaf) matches.
    func matches(_ certificate: Certificate, depth: Int) -> Bool {
        switch usage {
        case .pkixEE, .daneEE: guard depth == 0 else { return false }
        case .pkixTA, .daneTA: guard depth > 0 else { return false }
        }
        return matches(certificate)
    }

    /// Whether it matches at any depth.
    func matches(_ certificate: Certificate) -> Bool {
        let bytes = selector == .certificate ? certificate.der : certificate.publicKeyDER
        return switch matching {
        case .exact: bytes == data
        case .sha256: SHA256Digest.of(bytes).bytes == data
        case .sha512: SHA512.of(bytes) == data
        }
    }
}

extension TLSARecord {
    /// What is wrong with a text meant as a record.
    package enum Problem: Error, Sendable, Hashable, CustomStringConvertible {
        case usage(String)
        case selector(String)
        case matching(String)
        case notHexadecimal
        case wrongLength(Int, expected: Int)
        /// Matching type 0 with bytes that are no certificate or key; the parser's text.
        case unreadable(String)

        package var description: String {
            switch self {
            case .usage(let text): "“\(text)” is not a usage of a TLSA record (0, 1, 2 or 3)"
            case .selector(let text): "“\(text)” is not a selector of a TLSA record (0 or 1)"
            case .matching(let text): "“\(text)” is not a matching type of a TLSA record (0, 1 or 2)"
            case .notHexadecimal: "the TLSA record's data is not hexadecimal"
            case .wrongLength(let count, let expected):
                "the TLSA record's data has \(count) bytes; its matching type has \(expected)"
            case .unreadable(let cause): "the TLSA record's data is not what its selector says: \(cause)"
            }
        }
    }

    /// Reads a record; nil for other forms.
    init?(text: String) throws(Problem) {
        var words = text.split { $0 == " " || $0 == "\t" || $0 == "\n" || $0 == "(" || $0 == ")" }
        if let type = words.firstIndex(where: { $0.uppercased() == "TLSA" }) {
            // Owner, time to live and class may precede the type.
            guard type <= 3 else { return nil }
            words.removeSubrange(...type)
        } else {
            guard words.count >= 4, words[..<3].allSatisfy({ $0.allSatisfy(\.isNumber) }) else { return nil }
        }
        func word(_ index: Int) -> String { index < words.count ? String(words[index]) : "" }
        guard let usage = UInt8(word(0)).flatMap(Usage.init) else { throw .usage(word(0)) }
        guard let selector = UInt8(word(1)).flatMap(Selector.init) else { throw .selector(word(1)) }
        guard let matching = UInt8(word(2)).flatMap(Matching.init) else { throw .matching(word(2)) }
        // Zone files may split the data.
        guard let data = Self.hexadecimal(words.dropFirst(3).joined()) else { throw .notHexadecimal }
        switch matching {
        case .exact: try Self.check(data, selector)
        case .sha256: guard data.count == 32 else { throw .wrongLength(data.count, expected: 32) }
        case .sha512: guard data.count == 64 else { throw .wrongLength(data.count, expected: 64) }
        }
        self.init(usage: usage, selector: selector, matching: matching, data: data)
    }

    private static func check(_ data: [UInt8], _ selector: Selector) throws(Problem) {
        do {
            switch selector {
            case .certificate: _ = try Certificate(der: data)
            case .publicKey: _ = try PublicKey(der: data)
            }
        } catch {
            throw .unreadable("\(error)")
        }
    }

    private static func hexadecimal(_ text: String) -> [UInt8]? {
        let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard !digits.isEmpty, digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes
    }
}
