import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// Why a tunnel ended after CONNECT was answered.
struct TunnelRefusal {
    /// One line for the log.
    let cause: String
    /// The error type of RFC 9209 section 2.3.
    let errorType: String
    var isPinFailure = false
    var contact: OriginContact?
}

/// Alerts for handshakes that pass the proxy by (RFC 8446 section 6).
enum TunnelAlert: UInt8 {
    case handshakeFailure = 40
    case badCertificate = 42
    case certificateExpired = 45
    case illegalParameter = 47
    case unknownCA = 48
    /// A signature that can't be verified (RFC 5246 section 7.2.2).
    case decryptError = 51
    case protocolVersion = 70
    case internalError = 80
    case unrecognizedName = 112

    /// Bytes of an alert's record.
    static let recordLength = 7

    /// A fatal alert in the clear, instead of a ServerHello.
    var record: [UInt8] { [21, 3, 3, 0, 2, 2, rawValue] }

    /// As a client would judge the chain itself.
    init(for refusal: Refusal) {
        switch refusal.reason {
        case .trust(let failure), .pinnedAnchors(let failure):
            switch failure.reason {
            case .expired, .notYetValid: self = .certificateExpired
            case .selfSigned, .untrustedRoot, .unknownIssuer: self = .unknownCA
            default: self = .badCertificate
            }
        default: self = .badCertificate
        }
    }
}
