/// Why an authority revoked a certificate (RFC 5280 section 5.3.1).
package struct RevocationReason: Sendable, Hashable, CustomStringConvertible {
    package let code: Int

    package init(code: Int) { self.code = code }

    package var description: String {
        switch code {
        case 0: "unspecified"
        case 1: "key compromise"
        case 2: "authority compromise"
        case 3: "affiliation changed"
        case 4: "superseded"
        case 5: "cessation of operation"
        case 6: "certificate hold"
        case 8: "removed from the list"
        case 9: "privilege withdrawn"
        case 10: "attribute authority compromise"
        default: "reason \(code)"
        }
    }
}
