internal import PinproxySecurity
internal import PinproxyTLS

/// The shown facts of one certificate of a chain.
struct CertificateFacts: Encodable {
    /// 0 is the leaf.
    let depth: Int
    /// `leaf`, `issuer` or `root` of a verified chain; what was merely sent after the leaf is `sent`.
    let role: String
    let subject: String
    let issuer: String
    let serial: String
    let notBefore: String
    let notAfter: String
    let daysLeft: Int
    let key: String
    /// `sha256/…` of the key.
    let pin: String
    /// The SHA-256 of the whole certificate, as browsers and `openssl x509 -fingerprint` show it.
    let fingerprint: String
    /// To the end of its validity.
    private let end: TimeDistance

    private enum CodingKeys: String, CodingKey {
        case depth, role, subject, issuer, serial, notBefore, notAfter, daysLeft, key, pin, fingerprint
    }

    private init(_ certificate: Certificate, depth: Int, role: String, at now: UnixTime) {
        self.depth = depth
        self.role = role
        subject = certificate.subject.isEmpty ? "(no subject)" : certificate.subject.printable
        issuer = certificate.issuer.printable
        serial = certificate.serialNumber
        notBefore = "\(CalendarDate(certificate.notBefore))"
        notAfter = "\(CalendarDate(certificate.notAfter))"
        daysLeft = now.days(until: certificate.notAfter)
        end = TimeDistance(from: now, to: certificate.notAfter)
        key = certificate.keyDescription
        pin = "sha256/\(certificate.spkiSHA256.base64)"
        fingerprint = certificate.sha256.bytes.map(\.hexadecimal).joined(separator: ":")
    }

    static func of(_ chain: VerifiedChain, at now: UnixTime) -> [CertificateFacts] {
        chain.certificates.enumerated().map { depth, certificate in
            let isRoot = depth == chain.certificates.count - 1 && certificate.isSelfIssued
            return CertificateFacts(
                certificate, depth: depth, role: depth == 0 ? "leaf" : isRoot ? "root" : "issuer", at: now)
        }
    }

    /// Facts about the first certificates: a server may send hundreds.
    static func of(_ chain: PresentedChain, at now: UnixTime) -> [CertificateFacts] {
        chain.certificates.prefix(10).enumerated().map { depth, certificate in
            CertificateFacts(certificate, depth: depth, role: depth == 0 ? "leaf" : "sent", at: now)
        }
    }

    private var left: String { end.isPast ? "expired \(end)" : "\(end.span) left" }

    var shortLines: [String] {
        ["\(depth) \(role.padded(to: 7))\(subject), until \(notAfter) (\(left))", "  \(pin)"]
    }

    var lines: [String] {
        [
            "\(depth) \(role.padded(to: 7))\(subject)",
            "  issued by   \(issuer)",
            "  valid       \(notBefore) to \(notAfter) (\(left))",
            "  key         \(key)",
            "  pin         \(pin)",
            "  SHA-256     \(fingerprint)",
        ]
    }
}

extension UnixTime {
    /// Whole days until another instant, negative once that is past.
    func days(until then: UnixTime) -> Int {
        let (seconds, overflow) = then.subtractingReportingOverflow(self)
        if overflow { return then < self ? .min : .max }
        return Int((Double(seconds) / 86_400).rounded(.down))
    }
}
