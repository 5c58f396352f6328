/// Limits that a certificate must keep before OpenSSL parses it; every ``Certificate`` has passed them.
///
/// Two things cost far more to parse than their length suggests. For a compressed point on explicit curve parameters
/// (RFC 3279 section 2.3.5) OpenSSL takes a square root modulo the peer's number: 110 ms for 660 bytes. For each CRL
/// distribution point relative to the issuer it copies the issuer's name: 8 s for 70 KB. RFC 5480 forbids the one, and
/// RFC 5280 advises against the other.
enum CertificateLimits {
    /// Certificates that a peer may send. Web servers send two to four; Java accepts ten.
    static let mostCertificates = 32
    /// Bytes of a public key. RSA of 16,384 bits, the most that OpenSSL supports, takes half of it.
    static let longestKey = 4096

    enum Fault: Error, Equatable {
        case notDER
        /// It would cost too much. The text says why, of "it".
        case costly(String)

        var text: String {
            switch self {
            case .notDER: "its encoding is not DER"
            case .costly(let text): text
            }
        }
    }

    static func check(_ certificate: Span<UInt8>) throws(Fault) {
        try check(0..<certificate.count, of: certificate)
    }

    /// Checks a certificate that is a part of the bytes.
    static func check(_ certificate: Range<Int>, of bytes: Span<UInt8>) throws(Fault) {
        var outside = DERReader(certificate)
        guard var inside = outside.next(DERReader.Tag.sequence, in: bytes), outside.isAtEnd,
            var signed = inside.next(DERReader.Tag.sequence, in: bytes)
        else { throw .notDER }
        guard var field = signed.next(in: bytes) else { throw .notDER }
        if field.tag == DERReader.Tag.context(0) {
            guard let number = signed.next(in: bytes) else { throw .notDER }
            field = number
        }
        guard field.tag == DERReader.Tag.integer else { throw .notDER }
        // signature, issuer, validity, subject
        for _ in 0..<4 { guard signed.next(DERReader.Tag.sequence, in: bytes) != nil else { throw .notDER } }
        guard let key = signed.next(DERReader.Tag.sequence, in: bytes) else { throw .notDER }
        try check(key: key, in: bytes)
        while !signed.isAtEnd {
            guard let field = signed.next(in: bytes) else { throw .notDER }
            // The unique identifiers of version 2.
            if isContext(1, field.tag) || isContext(2, field.tag) { continue }
            guard isContext(3, field.tag) else { throw .notDER }
            try check(extensions: field.contents, in: bytes)
        }
    }

    // MARK: Key

    /// Looks at the form alone, for any algorithm: OpenSSL decodes curves under several identifiers.
    /// - Parameter key: the contents of a SubjectPublicKeyInfo.
    private static func check(key: DERReader, in bytes: Span<UInt8>) throws(Fault) {
        var key = key
        guard var algorithm = key.next(DERReader.Tag.sequence, in: bytes),
            algorithm.next(DERReader.Tag.identifier, in: bytes) != nil,
            let value = key.next(DERReader.Tag.bitString, in: bytes), key.isAtEnd
        else { throw .notDER }
        guard value.range.count <= longestKey else {
            throw .costly("its key has \(value.range.count) bytes; the limit is \(longestKey)")
        }
        guard !algorithm.isAtEnd else { return }
        guard let parameters = algorithm.next(in: bytes), algorithm.isAtEnd else { throw .notDER }
        switch parameters.tag {
        case DERReader.Tag.identifier: try check(point: value, in: bytes)
        case DERReader.Tag.sequence: try check(parameters: parameters.contents, in: bytes)
        default: break
        }
    }

    /// Only ECParameters begin with a version and the description of a field.
    private static func check(parameters: DERReader, in bytes: Span<UInt8>) throws(Fault) {
        var parameters = parameters
        guard !parameters.isAtEnd else { return }
        guard let first = parameters.next(in: bytes) else { throw .notDER }
        guard first.tag == DERReader.Tag.integer, !parameters.isAtEnd else { return }
        guard let second = parameters.next(in: bytes) else { throw .notDER }
        guard second.tag != DERReader.Tag.sequence else {
            throw .costly("its key has explicit curve parameters; only named curves are accepted")
        }
    }

    /// The first byte, after the count of unused bits, says the form (SEC 1 section 2.3.3).
    private static func check(point: DERReader, in bytes: Span<UInt8>) throws(Fault) {
        guard point.range.count > 1 else { return }
        switch bytes[point.range.lowerBound + 1] {
        case 2, 3: throw .costly("its key is a compressed point; only uncompressed points are accepted")
        case 6, 7: throw .costly("its key is a point in hybrid form; only uncompressed points are accepted")
        default: break
        }
    }

    // MARK: Extensions

    /// 2.5.29.31
    private static let distributionPoints: [UInt8] = [0x55, 0x1D, 0x1F]

    /// - Parameter field: the contents of `[3]`.
    private static func check(extensions field: DERReader, in bytes: Span<UInt8>) throws(Fault) {
        var field = field
        guard var list = field.next(DERReader.Tag.sequence, in: bytes), field.isAtEnd else { throw .notDER }
        while !list.isAtEnd {
            guard var item = list.next(DERReader.Tag.sequence, in: bytes),
                let name = item.next(DERReader.Tag.identifier, in: bytes), var value = item.next(in: bytes)
            else { throw .notDER }
            if value.tag == DERReader.Tag.boolean {
                guard let second = item.next(in: bytes) else { throw .notDER }
                value = second
            }
            guard value.tag == DERReader.Tag.octetString else { throw .notDER }
            guard isDistributionPoints(name.range, in: bytes) else { continue }
            try check(distributionPoints: value.contents, in: bytes)
        }
    }

    private static func isDistributionPoints(_ name: Range<Int>, in bytes: Span<UInt8>) -> Bool {
        guard name.count == distributionPoints.count else { return false }
        for (offset, byte) in zip(name, distributionPoints) where bytes[offset] != byte { return false }
        return true
    }

    /// RFC 5280 section 4.2.1.13.
    private static func check(distributionPoints contents: DERReader, in bytes: Span<UInt8>) throws(Fault) {
        var contents = contents
        guard var points = contents.next(DERReader.Tag.sequence, in: bytes), contents.isAtEnd else { throw .notDER }
        while !points.isAtEnd {
            guard var point = points.next(DERReader.Tag.sequence, in: bytes) else { throw .notDER }
            guard !point.isAtEnd else { continue }
            guard let field = point.next(in: bytes) else { throw .notDER }
            guard isContext(0, field.tag) else { continue }
            var name = field.contents
            guard let form = name.next(in: bytes) else { throw .notDER }
            if isContext(1, form.tag) {
                throw .costly("its CRL distribution points are relative to the issuer's name (nameRelativeToCRLIssuer)")
            }
        }
    }

    /// OpenSSL also accepts implicitly tagged lists that aren't marked as constructed.
    private static func isContext(_ number: UInt8, _ tag: UInt8) -> Bool {
        tag | 0x20 == DERReader.Tag.context(number)
    }
}
