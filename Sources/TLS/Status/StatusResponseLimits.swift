extension CertificateLimits {
    /// Checks the certificates that an OCSP response (RFC 6960 section 4.2.1) carries for its signature.
    static func check(statusResponse bytes: Span<UInt8>) throws(Fault) {
        var outside = DERReader(0..<bytes.count)
        // Bytes after it are found after parsing.
        guard var response = outside.next(DERReader.Tag.sequence, in: bytes),
            response.next(DERReader.Tag.enumerated, in: bytes) != nil
        else { throw .notDER }
        // A responder's error has nothing more.
        guard !response.isAtEnd else { return }
        guard var field = response.next(DERReader.Tag.context(0), in: bytes), response.isAtEnd,
            var typed = field.next(DERReader.Tag.sequence, in: bytes), field.isAtEnd,
            typed.next(DERReader.Tag.identifier, in: bytes) != nil,
            var octets = typed.next(DERReader.Tag.octetString, in: bytes), typed.isAtEnd,
            var basic = octets.next(DERReader.Tag.sequence, in: bytes), octets.isAtEnd
        else { throw .notDER }
        // What is signed, how, and the signature.
        guard basic.next(DERReader.Tag.sequence, in: bytes) != nil,
            basic.next(DERReader.Tag.sequence, in: bytes) != nil,
            basic.next(DERReader.Tag.bitString, in: bytes) != nil
        else { throw .notDER }
        guard !basic.isAtEnd else { return }
        guard var last = basic.next(DERReader.Tag.context(0), in: bytes), basic.isAtEnd,
            var certificates = last.next(DERReader.Tag.sequence, in: bytes), last.isAtEnd
        else { throw .notDER }
        var count = 0
        while !certificates.isAtEnd {
            count += 1
            guard count <= mostCertificates else {
                throw .costly("it has more than \(mostCertificates) certificates in it")
            }
            let start = certificates.range.lowerBound
            guard certificates.next(in: bytes) != nil else { throw .notDER }
            do { try check(start..<certificates.range.lowerBound, of: bytes) } catch {
                throw .costly("certificate \(count) in it is refused: \(error.text)")
            }
        }
    }
}
