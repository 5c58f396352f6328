import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyRecords

/// The differences between two chains as text: each row of docs/incidents.md.
@Suite struct ChainComparisonTests {
    private let authority: IncidentChains
    private let matched: [Certificate]

    init() throws {
        authority = try IncidentChains()
        matched = try authority.chain("api.test")
    }

    private func compare(
        _ chain: [Certificate], with matched: [Certificate]? = nil, host: String = "api.test", isVerified: Bool = true,
        fault: Sighting.Fault = .pin
    ) -> ChainComparison {
        ChainComparison(
            chain, isVerified: isVerified, refusedFor: fault, host: ServerName(host: host),
            with: matched ?? self.matched)
    }

    @Test func theSameCertificateIsNoNews() {
        #expect(compare(matched).kind == .sameChain)
        #expect(compare(matched).lines.count == 1, "nothing differs")
    }

    @Test func aRenewalKeepsItsKey() throws {
        let key = try TestKey(.p256)
        let before = try authority.chain("api.test") { $0.keyPair = key }
        let after = try authority.chain("api.test") { $0.keyPair = key }
        let found = compare(after, with: before)
        #expect(found.kind == .renewal && !found.lines.contains { $0.hasPrefix("pin:") }, "\(found)")
    }

    @Test func anotherKeyOfTheSameIssuerIsARotation() throws {
        let found = compare(try authority.chain("api.test"))
        #expect(found.kind == .rotation)
        #expect(found.headline.contains("a rotation"))
        #expect(found.lines.contains { $0.hasPrefix("pin: sha256/") && $0.contains(", before: sha256/") }, "\(found)")
    }

    /// An unverified chain proves nothing: it may be expired, revoked, or for other uses.
    @Test func whatDoesNotVerifyIsNeitherARenewalNorARotation() throws {
        let key = try TestKey(.p256)
        let before = try authority.chain("api.test") { $0.keyPair = key }
        let renewed = compare(try authority.chain("api.test") { $0.keyPair = key }, with: before, isVerified: false)
        #expect(renewed.kind != .renewal && !renewed.headline.contains("renewal"), "\(renewed)")
        let rotated = compare(try authority.chain("api.test"), isVerified: false)
        #expect(rotated.kind != .rotation && !rotated.headline.contains("rotation"), "\(rotated)")
        for found in [renewed, rotated] { #expect(found.kind == .unverified, "\(found)") }
        // Nor is a chain for another name, regardless of its signer.
        #expect(compare(try authority.chain("www.test") { $0.keyPair = key }, with: before).kind == .otherName)
    }

    /// The headline speaks of a change only if the pins caused the refusal.
    @Test func theSameCertificateIsRefusedForOtherCausesToo() throws {
        let found = compare(matched, fault: .trust)
        #expect(found.kind == .otherCause && !found.headline.contains("changed"), "\(found)")
    }

    @Test(arguments: [true, false]) func aChainWithoutProofOfItsKeySaysNothing(isTheSame: Bool) throws {
        let found = compare(isTheSame ? matched : try authority.chain("api.test"), fault: .unproven)
        #expect(found.kind == .unproven && found.headline.contains("may be a copy"), "\(found)")
    }

    /// The issuer's name is copied, but not its key.
    @Test func anIssuersNameProvesNothing() throws {
        let found = compare(try IncidentChains().chain("api.test"))
        #expect(found.kind == .otherIssuer, "\(found)")
    }

    @Test func anotherIssuerIsNamed() throws {
        let found = compare(try IncidentChains("Other Root").chain("api.test"))
        #expect(found.kind == .otherIssuer)
        #expect(found.headline.contains("Other Root") && found.headline.contains("Test Root"), "\(found)")
        #expect(found.lines.contains { $0.hasPrefix("issuer: ") && $0.contains("before: ") })
    }

    @Test(arguments: InspectionProduct.all.map { ($0.name, $0.mark) })
    func anInspectionProductIsNamed(name: String, mark: String) throws {
        let found = compare(try IncidentChains("The \(mark.uppercased()) CA").chain("api.test"))
        #expect(found.kind == .inspection && found.headline.hasSuffix(": \(name)"), "\(found)")
        // A leaf's own name is the host's.
        let innocent = compare(try IncidentChains("Test CA").chain("api.test") { $0.subject = [("2.5.4.3", mark)] })
        #expect(innocent.kind == .otherIssuer, "\(innocent)")
    }

    @Test func theTableOfProductsIsDocumented() throws {
        let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path
        let text = try String(contentsOfFile: repository + "/docs/incidents.md", encoding: .utf8)
        for product in InspectionProduct.all { #expect(text.contains("| \(product.name) |"), "\(product.name)") }
    }

    @Test func aSelfSignedCertificateVouchesForItself() throws {
        let held = try HeldCertificate.selfSigned(.leaf("api.test"))
        #expect(compare([try Certificate(der: held.der)]).kind == .selfSigned)
        // Even if nothing has matched yet.
        #expect(compare([try Certificate(der: held.der)], with: []).kind == .selfSigned)
    }

    @Test(arguments: ["login.hotel.test", "captive.example.test", "wifi-portal.test"])
    func aCaptivePortalAnswersForItself(name: String) throws {
        let found = compare(try IncidentChains("Hotel").chain(name))
        #expect(found.kind == .captivePortal && found.headline.contains(name), "\(found)")
        #expect(found.headline.contains("may be"), "a name proves nothing: \(found)")
    }

    @Test func anotherServersNameIsNamed() throws {
        let found = compare(try IncidentChains("Other").chain("www.other.test"))
        #expect(found.kind == .otherName)
        #expect(found.headline.contains("www.other.test") && found.headline.contains("api.test"))
        // Not even from the same issuer is it a rotation.
        #expect(compare(try authority.chain("www.other.test")).kind == .otherName)
    }

    @Test func withoutAChainThatMatchedNothingIsCompared() throws {
        let found = compare(try authority.chain("api.test"), with: [])
        #expect(found.kind == .unknown && found.lines.isEmpty)
        #expect(compare([]).kind == .unreadable)
    }
}
