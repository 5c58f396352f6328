import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// An issuer's constraints on the certificates below it: names, and the number of issuers.
@Suite struct IssuerConstraintTests {
    let root: HeldCertificate

    init() throws { root = try HeldCertificate.root() }

    static let constraints: [(String, [UInt8], Bool)] = [
        ("permits its name", permitted(0x82, Array("api.test".utf8)), true),
        ("permits its domain", permitted(0x82, Array("test".utf8)), true),
        ("permits another name", permitted(0x82, Array("other.test".utf8)), false),
        ("excludes its name", excluded(0x82, Array("api.test".utf8)), false),
        ("excludes its domain", excluded(0x82, Array("test".utf8)), false),
        ("excludes another name", excluded(0x82, Array("other.test".utf8)), true),
        ("permits its network", permitted(0x87, [192, 0, 2, 0, 255, 255, 255, 0]), true),
        ("permits another network", permitted(0x87, [198, 51, 100, 0, 255, 255, 255, 0]), false),
        ("excludes its network", excluded(0x87, [192, 0, 2, 0, 255, 255, 255, 0]), false),
        ("excludes all of IPv4", excluded(0x87, [0, 0, 0, 0, 0, 0, 0, 0]), false),
    ]

    @Test(arguments: constraints, [true, false])
    func constrained(_ example: (String, [UInt8], Bool), _ ofRoot: Bool) throws {
        let constrain: (inout CertificateTemplate) -> Void = { $0.extensions = [("2.5.29.30", true, example.1)] }
        let root = try HeldCertificate.selfSigned(ofRoot ? .root("Root").with(constrain) : .root("Root"))
        let issuer = try root.issue(ofRoot ? .intermediate("Issuer") : .intermediate("Issuer").with(constrain))
        let leaf = try issuer.issue(.leaf("api.test", ipAddresses: ["192.0.2.1"]))
        let failure = try failure(leaf)
        #expect(failure?.reason == (example.2 ? nil : .nameConstraint))
    }

    @Test func pathLengths() throws {
        for (limit, depth, fits) in [(0, 0, true), (0, 1, false), (1, 1, true), (1, 2, false)] {
            var issuer = try root.issue(.intermediate("Limited", pathLength: limit))
            for level in 0..<depth { issuer = try issuer.issue(.intermediate("Level \(level)", pathLength: nil)) }
            let failure = try failure(issuer.issue(.leaf("api.test")))
            #expect(failure?.reason == (fits ? nil : .pathTooLong))
        }
    }

    // MARK: Bed

    private func failure(_ leaf: HeldCertificate) throws -> VerificationFailure? {
        let chain = try leaf.chain.map { try Certificate(der: $0.der) }
        let anchors = TrustAnchors(try leaf.issuers.suffix(1).map { try Certificate(der: $0.der) })
        let options = VerificationOptions(name: .dns("api.test"), time: CertificateTemplate.now)
        let result = anchors.verify(PresentedChain(leaf: chain[0], rest: Array(chain.dropFirst())), options: options)
        return if case .failure(let failure) = result { failure } else { nil }
    }

    private static func permitted(_ tag: UInt8, _ base: [UInt8]) -> [UInt8] { subtrees(0xA0, tag, base) }
    private static func excluded(_ tag: UInt8, _ base: [UInt8]) -> [UInt8] { subtrees(0xA1, tag, base) }

    private static func subtrees(_ kind: UInt8, _ tag: UInt8, _ base: [UInt8]) -> [UInt8] {
        DERWriter.sequence(DERWriter.value(kind, DERWriter.sequence(DERWriter.value(tag, base))))
    }
}
