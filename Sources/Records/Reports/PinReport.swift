import Configuration
import FoundationEssentials
import Security
import TLS

/// What is told to `report_uri` of a chain that met no pin: the report of RFC 7469 section 3, which
/// collectors of HPKP reports understand.
///
/// Where the RFC has no word for what pins can be here: `effective-expiration-date` is left out of an
/// entry without `expires` (the RFC's pins always have one, and a date that isn't one would break
/// parsers); pins of whole certificates and DNS records are `pin-cert-sha256` and `pin-tlsa`, by the
/// grammar of section 2.1.1, which lets a receiver ignore what it doesn't know.
struct PinReport: Encodable {
    let dateTime: String
    let hostname: String
    let port: UInt16
    let effectiveExpirationDate: String?
    let includeSubdomains: Bool
    let notedHostname: String
    let servedCertificateChain: [String]
    let validatedCertificateChain: [String]
    let knownPins: [String]

    private enum CodingKeys: String, CodingKey {
        case dateTime = "date-time"
        case hostname
        case port
        case effectiveExpirationDate = "effective-expiration-date"
        case includeSubdomains = "include-subdomains"
        case notedHostname = "noted-hostname"
        case servedCertificateChain = "served-certificate-chain"
        case validatedCertificateChain = "validated-certificate-chain"
        case knownPins = "known-pins"
    }

    /// Nil if it wasn't the chain that the pins were held against.
    init?(_ refusal: Refusal, host: String, port: UInt16, entry: HostEntry, at time: UnixTime) {
        switch refusal.reason {
        case .pinMismatch, .pinnedAnchors: break
        default: return nil
        }
        dateTime = Self.date(time)
        hostname = host
        self.port = port
        effectiveExpirationDate = entry.policy.expiry.map { Self.date($0.date) }
        let pattern = try? HostPattern(entry.pattern)
        includeSubdomains = pattern.map { $0.scope != .exact } ?? false
        notedHostname = pattern?.name ?? entry.pattern
        servedCertificateChain = refusal.presented.certificates.map(\.pem)
        validatedCertificateChain = refusal.chain?.certificates.map(\.pem) ?? []
        knownPins = entry.policy.pins.pins.map(Self.directive)
    }

    var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings and numbers can't fail to be encoded.
        return (try? encoder.encode(self)).map { [UInt8]($0) } ?? []
    }

    private static func date(_ time: UnixTime) -> String {
        Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601)
    }

    private static func directive(_ pin: Pin) -> String {
        switch pin.kind {
        case .spki(let digest): "pin-sha256=\"\(digest.base64)\""
        case .certificate(let digest, _): "pin-cert-sha256=\"\(digest.base64)\""
        case .record(let record): "pin-tlsa=\"\(record)\""
        }
    }
}
