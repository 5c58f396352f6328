/// A server's Certificate message (RFC 5246 section 7.4.2, RFC 8446 section 4.4.2), checked in a callback before
/// OpenSSL parses it. As that can't stop OpenSSL, ``spoil(_:)`` breaks the first certificate: parsing fails at its
/// first byte with the alert bad_certificate.
struct CertificateMessage {
    /// Why the certificates must not be parsed.
    let objection: String?
    private let first: Int?

    /// - Parameters:
    ///   - message: with its header of four bytes.
    ///   - isTLS13: the list follows a context, and each certificate has extensions.
    init(_ message: Span<UInt8>, isTLS13: Bool) {
        var rest = min(4, message.count)..<message.count
        // OpenSSL parses a truncated message up to its end. So does this.
        guard !isTLS13 || Self.vector(1, from: &rest, in: message) != nil,
            var list = Self.vector(3, from: &rest, in: message)
        else {
            (objection, first) = (nil, nil)
            return
        }
        var count = 0
        var first: Int?
        var found: (number: Int, fault: CertificateLimits.Fault)?
        while let certificate = Self.vector(3, from: &list, in: message) {
            count += 1
            if count == 1 { first = certificate.lowerBound }
            if found == nil, count <= CertificateLimits.mostCertificates {
                do { try CertificateLimits.check(certificate, of: message) } catch { found = (count, error) }
            }
            if isTLS13, Self.vector(2, from: &list, in: message) == nil { break }
        }
        self.first = first
        let most = CertificateLimits.mostCertificates
        objection =
            count > most
            ? "the peer sent \(count) certificates; the limit is \(most)"
            : found.map { "certificate \($0.number) of \(count) from the peer is refused: \($0.fault.text)" }
    }

    /// - Parameter message: the bytes given to the initialiser.
    func spoil(_ message: UnsafeMutableRawBufferPointer) {
        guard let first, first < message.count else { return }
        // An invalid tag.
        message[first] = 0
    }

    /// A vector with its length prefix (RFC 8446 section 3.4).
    private static func vector(_ width: Int, from rest: inout Range<Int>, in bytes: Span<UInt8>) -> Range<Int>? {
        guard width <= rest.count else { return nil }
        let start = rest.lowerBound + width
        var length = 0
        for offset in rest.lowerBound..<start { length = length << 8 | Int(bytes[offset]) }
        guard length <= rest.upperBound - start else { return nil }
        rest = start + length..<rest.upperBound
        return start..<start + length
    }
}
