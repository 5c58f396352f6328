import Foundation
import PinproxyAddresses
import PinproxyTLS
import PinproxyTestAuthority
import Synchronization
import Testing

@testable import PinproxySecurity

/// A directory that is deleted after the test.
final class TemporaryDirectory {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "/pinproxy-security-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ text: String, _ name: String, mode: Int = 0o644) throws -> String {
        let file = path + "/" + name
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }

    func mode(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
    }
}

@Suite struct LocalAuthorityTests {
    static let now = Int64(Date().timeIntervalSince1970)
    static let day: Int64 = 86_400

    let directory: TemporaryDirectory
    let files: AuthorityFiles

    init() throws {
        directory = try TemporaryDirectory()
        files = AuthorityFiles(
            certificate: directory.path + "/state/authority.pem", key: directory.path + "/state/authority.key")
    }

    @Test func aNewAuthorityIsWrittenForItsOwnerAloneAndLoadedAgain() throws {
        let (created, provenance) = try files.loadOrCreate(at: Self.now)
        #expect(provenance == .created)
        #expect(try directory.mode("state") == 0o700)
        #expect(try directory.mode("state/authority.key") == 0o600)
        #expect(try directory.mode("state/authority.pem") == 0o644)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path + "/state").count == 2)

        let (loaded, later) = try files.loadOrCreate(at: Self.now)
        #expect(later == .found)
        #expect(loaded.certificate == created.certificate)
        let certificate = loaded.certificate
        #expect(certificate.isAuthority && certificate.isSelfIssued)
        #expect(certificate.subject.hasPrefix("CN=pinproxy on "))
        #expect(certificate.keyDescription == "EC P-256")
        #expect(certificate.notBefore == Self.now - Self.day)
        #expect(certificate.notAfter == Self.now + 3652 * Self.day)
        #expect(certificate.subjectKeyIdentifier?.count == 20)
        #expect(throws: AuthorityError.self) { try files.create(at: Self.now) }
    }

    @Test func startsAtTheSameTimeAgreeOnOneAuthority() async throws {
        let files = files
        let made = try await withThrowingTaskGroup(of: (Certificate, AuthorityFiles.Provenance).self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let (authority, provenance) = try files.loadOrCreate(at: Self.now)
                    return (authority.certificate, provenance)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(made.map(\.0)).count == 1)
        #expect(made.filter { $0.1 == .created }.count == 1)
    }

    @Test(arguments: [
        ("build.example.com", "pinproxy on build.example.com (2030-01-01)"),
        ("", "pinproxy on this machine (2030-01-01)"),
        (String(repeating: "h", count: 64), "pinproxy on " + String(repeating: "h", count: 39) + " (2030-01-01)"),
        ("bad\nname ü", "pinproxy on badname (2030-01-01)"),
    ])
    func theNameTellsTheMachine(_ machine: String, _ name: String) {
        #expect(LocalAuthority.commonName(machine: machine, at: CertificateTemplate.now) == name)
        #expect(name.utf8.count <= 64)
    }

    // MARK: What loading refuses

    private func loadFailure(at time: Int64 = now) -> String? {
        #expect(throws: AuthorityError.self) { try files.load(at: time) }?.description
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o601])
    func aKeyThatOthersMayTouchIsRefused(_ mode: Int) throws {
        _ = try files.create(at: Self.now)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: files.key)
        #expect(loadFailure()?.contains("\(files.key) is open to other users (mode \(String(mode, radix: 8)))") == true)
        #expect(throws: AuthorityError.self) { try files.loadOrCreate(at: Self.now) }
    }

    @Test(.enabled(if: getuid() == 0, "only root can give a file away"))
    func aKeyOfAnotherUserIsRefused() throws {
        _ = try files.create(at: Self.now)
        try FileManager.default.setAttributes([.ownerAccountID: 12345], ofItemAtPath: files.key)
        #expect(loadFailure()?.contains("belongs to user 12345") == true)
    }

    /// The state after an interrupted start, since the key is written first.
    @Test(arguments: [false, true]) func aKeyWithoutItsCertificateIsCompletedAndKept(_ byCommand: Bool) throws {
        let first = try files.create(at: Self.now).authority
        let key = try String(contentsOfFile: files.key, encoding: .utf8)
        try FileManager.default.removeItem(atPath: files.certificate)
        let (authority, provenance) =
            byCommand ? try files.create(at: Self.now) : try files.loadOrCreate(at: Self.now)
        #expect(provenance == .completed)
        #expect(try String(contentsOfFile: files.key, encoding: .utf8) == key)
        #expect(authority.certificate.subjectKeyIdentifier == first.certificate.subjectKeyIdentifier)
        #expect(try files.loadOrCreate(at: Self.now).authority.certificate == authority.certificate)
        #expect(try files.loadOrCreate(at: Self.now).provenance == .found)
    }

    /// Not every stored key can be an authority's.
    @Test(arguments: [
        ("weak", 0o600, "can't serve"), ("text", 0o600, "authority.key"), ("open", 0o644, "open to other users"),
    ])
    func aLoneKeyIsHeldToWhatAnAuthoritysMustBe(_ kind: String, _ mode: Int, _ problem: String) throws {
        let weak = try HeldCertificate.selfSigned(.root("R").with { $0.key = .rsa(1024) }).keyPEM
        let good = try HeldCertificate.root().keyPEM
        _ = try directory.write("", "nothing")
        try FileManager.default.createDirectory(atPath: directory.path + "/state", withIntermediateDirectories: true)
        _ = try directory.write(
            kind == "weak" ? weak : kind == "text" ? "text" : good, "state/authority.key", mode: mode)
        let error = #expect(throws: AuthorityError.self) { try files.loadOrCreate(at: Self.now) }
        #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
        #expect(!FileManager.default.fileExists(atPath: files.certificate))
    }

    @Test func aCertificateWithoutItsKeyIsNamedAndNeverReplaced() throws {
        _ = try files.create(at: Self.now)
        try FileManager.default.removeItem(atPath: files.key)
        let text = #expect(throws: AuthorityError.self) { try files.loadOrCreate(at: Self.now) }?.description
        #expect(text?.hasPrefix("\(files.certificate) is there, but its key \(files.key) is not") == true)
        #expect(throws: AuthorityError.self) { try files.create(at: Self.now) }
    }

    @Test func nothingThereIsNamed() {
        #expect(loadFailure() == "\(files.certificate): No such file or directory")
    }

    @Test func aKeyOfAnotherCertificateIsRefused() throws {
        _ = try files.create(at: Self.now)
        let other = AuthorityFiles(certificate: directory.path + "/other.pem", key: directory.path + "/other.key")
        _ = try other.create(at: Self.now)
        let mixed = AuthorityFiles(certificate: files.certificate, key: other.key)
        let text = #expect(throws: AuthorityError.self) { try mixed.load(at: Self.now) }?.description
        #expect(text == "\(other.key) is not the key of \(files.certificate)")
    }

    @Test func datesAreThoseOfTheClockGiven() throws {
        _ = try files.create(at: Self.now)
        // An expired authority signs nothing, and doesn't keep the proxy from starting.
        let late = Self.now + 3653 * Self.day
        let expired = try files.load(at: late)
        #expect(throws: AuthorityError.self) { try expired.mint(for: .dns("a.test"), at: late, lifetime: 3600) }
        #expect(loadFailure(at: Self.now - 2 * Self.day)?.contains("not valid before") == true)
        _ = try files.load(at: Self.now + 3651 * Self.day)
    }

    @Test func certificatesThatCannotServeAreRefused() throws {
        let root = try HeldCertificate.root()
        let unfit: [(HeldCertificate, String)] = [
            (try root.issue(.leaf("api.test")), "not a CA certificate"),
            (try .selfSigned(.root("R").with { $0.keyUsage = [.digitalSignature] }), "clients would refuse its leaves"),
            (try .selfSigned(.root("R").with { $0.key = .rsa(1024) }), "clients would refuse its leaves"),
            (try .selfSigned(.root("R").with { $0.subjectKeyIdentifier = .none }), "no subjectKeyIdentifier"),
        ]
        for (index, (held, expected)) in unfit.enumerated() {
            let pair = AuthorityFiles(
                certificate: try directory.write(held.pem, "\(index).pem"),
                key: try directory.write(held.keyPEM, "\(index).key", mode: 0o600))
            let error = #expect(throws: AuthorityError.self) { try pair.load(at: CertificateTemplate.now) }
            #expect(error?.description.contains(expected) == true, "\(error?.description ?? "")")
        }
        for (name, text) in [("empty", ""), ("text", "hello"), ("cut", String(root.pem.dropLast(40)))] {
            let pair = AuthorityFiles(
                certificate: try directory.write(text, name + ".pem"),
                key: try directory.write(root.keyPEM, name + ".key", mode: 0o600))
            let error = #expect(throws: AuthorityError.self) { try pair.load(at: CertificateTemplate.now) }
            #expect(error?.description.hasPrefix(pair.certificate) == true)
            let mirrored = AuthorityFiles(
                certificate: try directory.write(root.pem, name + "2.pem"),
                key: try directory.write(text, name + "2.key", mode: 0o600))
            let keyError = #expect(throws: AuthorityError.self) { try mirrored.load(at: CertificateTemplate.now) }
            #expect(keyError?.description.hasPrefix(mirrored.key) == true)
        }
    }

    /// The authority was issued by a company's root: leaves come with the chain up to that root.
    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048)])
    func anAuthorityBelowARootOfOnesOwn(_ kind: TestKey.Kind) throws {
        let root = try HeldCertificate.root("Company Root")
        let middle = try root.issue(.intermediate("Company Middle", pathLength: 1))
        let held = try middle.issue(.intermediate("Company Proxies").with { $0.key = kind })
        let pair = AuthorityFiles(
            certificate: try directory.write(held.chainPEM + root.pem, "own.pem"),
            key: try directory.write(held.keyPEM, "own.key", mode: 0o400))
        let authority = try pair.load(at: CertificateTemplate.now)
        let identity = try authority.mint(for: .dns("api.test"), at: CertificateTemplate.now, lifetime: 30 * Self.day)
        #expect(identity.chain.dropFirst().map(\.subject) == ["CN=Company Proxies", "CN=Company Middle"])
        let anchors = TrustAnchors([try root.parsed])
        let chain = PresentedChain(leaf: identity.leaf, rest: Array(identity.chain.dropFirst()))
        let options = VerificationOptions(name: .dns("api.test"), time: CertificateTemplate.now)
        #expect(throws: Never.self) { try anchors.verify(chain, options: options).get() }
    }

    @Test func theAuthorityIsNoAnchorForUpstreams() throws {
        let authority = try files.create(at: Self.now).authority
        let other = try HeldCertificate.root().parsed
        let anchors = AuthoritySet(authority).anchorsWithoutSelf(TrustAnchors([authority.certificate, other]))
        #expect(anchors.certificates == [other])
        let leaf = try authority.mint(for: Chains.host, at: Self.now, lifetime: Self.day).leaf
        let verdict = SecurityPolicy().evaluate(
            PresentedChain(leaf: leaf, rest: [authority.certificate]), host: Chains.host, anchors: anchors, at: Self.now
        )
        #expect(verdict.refusal?.kind == "trust: untrustedRoot")
    }

    /// Verified by this proxy's own code, as a client would verify it.
    @Test(arguments: [
        ("example.test", true), ("a.example.test", true), ("pinproxy.test", true), ("wrong.pinproxy.test", true),
        ("10.1.2.3", true), ("other.test", false), ("anexample.test", false), ("11.0.0.1", false), ("::1", false),
    ]) func aConstrainedAuthoritySignsForPermittedNamesOnly(_ host: String, isPermitted: Bool) throws {
        let network = PermittedNames.Item.network(try #require(IPAddress("10.0.0.0")), prefixLength: 8)
        let names = PermittedNames([try PermittedNames.domain("example.test").get(), network])
        let constrained = AuthorityFiles(certificate: files.certificate, key: files.key, permitting: names)
        let authority = try constrained.loadOrCreate(at: Self.now).authority
        #expect(authority.certificate.extensionValue(.nameConstraints) == names.certificateExtension.value)
        #expect(
            authority.certificate.nameConstraints?.contains("permits pinproxy.test, example.test, 10.0.0.0/8") == true)
        let name = ServerName(host: host)
        #expect((authority.violation(by: name) == nil) == isPermitted)
        // A start accepts it unchanged, whatever the configuration says by then.
        let leaf = try files.load(at: Self.now).mint(for: name, at: Self.now, lifetime: Self.day)
        let presented = PresentedChain(leaf: leaf.leaf, rest: Array(leaf.chain.dropFirst()))
        let result = TrustAnchors([authority.certificate]).verify(
            presented, options: VerificationOptions(name: name, time: Self.now))
        switch result {
        case .success: #expect(isPermitted)
        case .failure(let failure): #expect(!isPermitted && failure.reason == .nameConstraint, "\(failure)")
        }
    }

    /// A rotation's certificate has the constraints of the current configuration.
    @Test func theNextAuthorityHasTheConstraintsOfTheConfiguration() throws {
        let current = try files.loadOrCreate(at: Self.now).authority.certificate
        let names = PermittedNames([.domain("example.test")])
        let constrained = AuthorityFiles(certificate: files.certificate, key: files.key, permitting: names)
        #expect(AuthorityReview(current, issuers: [], at: Self.now).remarks(hosts: [], permitted: names).count == 1)
        let next = try constrained.beginRotation(at: Self.now).certificate
        #expect(AuthorityReview(next, issuers: [], at: Self.now).remarks(hosts: [], permitted: names) == [])
        let refused = AuthorityReview(next, issuers: [], at: Self.now).remarks(
            hosts: [.dns("other.test")], permitted: names)
        #expect(refused.count == 1 && refused[0].contains("other.test"), "\(refused)")
        #expect(AuthorityReview(next, issuers: [], at: Self.now).remarks(hosts: []).count == 1)
    }

    @Test(arguments: ["", "*.example.test", ".example.test", "exa mple", "example.test.", "a/b"])
    func aPermittedDomainIsAName(_ text: String) {
        #expect(throws: PermittedNameError.self) { try PermittedNames.domain(text).get() }
    }
}
