import PinproxyTLS
import PinproxyTestAuthority

@testable import PinproxySecurity

/// The clock and the chains that the policy's tests share: root → intermediate → leaf for api.test.
struct Chains {
    static let now = CertificateTemplate.now
    static let host = ServerName.dns("api.test")

    let root: HeldCertificate
    let intermediate: HeldCertificate
    let leaf: HeldCertificate
    /// An unrelated chain, under another root.
    let stranger: HeldCertificate

    init(leaf template: CertificateTemplate = .leaf("api.test")) throws {
        root = try .root("Test Root")
        intermediate = try root.issue(.intermediate("Test Intermediate"))
        leaf = try intermediate.issue(template)
        stranger = try HeldCertificate.root("Strange Root").issue(.leaf("api.test"))
    }

    var anchors: TrustAnchors { get throws { TrustAnchors([try root.parsed]) } }
    var presented: PresentedChain { get throws { try leaf.presented() } }
}

extension HeldCertificate {
    var parsed: Certificate { get throws { try Certificate(der: der) } }

    /// What a server with this certificate sends, with more certificates at its end.
    func presented(appending others: HeldCertificate...) throws -> PresentedChain {
        PresentedChain(
            leaf: try parsed, rest: try chain.dropFirst().map { try $0.parsed } + others.map { try $0.parsed })
    }

    func keyPin() throws -> Pin { Pin(.spki(try parsed.spkiSHA256), origin: "key of \(try parsed.subject)") }
    func certificatePin() throws -> Pin {
        let certificate = try parsed
        return Pin(.certificate(certificate.sha256, certificate), origin: "file: \(certificate.subject).pem")
    }
}

/// A pin that matches nothing.
let wrongPin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

extension Refusal {
    /// The reason's name, and the cause below it.
    var kind: String {
        switch reason {
        case .trust(let failure): "trust: \(failure.reason)"
        case .pinnedAnchors(let failure): "pinnedAnchors: \(failure.reason)"
        case .pinMismatch: "pinMismatch"
        case .contradiction(let contradiction): "contradiction: \(contradiction)"
        case .status(let failure): "status: \(failure)"
        case .transparency: "transparency"
        case .expired: "expired"
        }
    }
}
