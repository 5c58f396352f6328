import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// A rotation of the local authority, step by step, with every interruption.
@Suite struct AuthorityRotationTests {
    private static let now = Int64(Date().timeIntervalSince1970)
    private static let year: Int64 = 365 * 86_400
    private static let names = [
        "authority.pem", "authority.key", "authority.next.pem", "authority.next.key", "authority.previous.pem",
    ]

    private let directory: TemporaryDirectory
    private let files: AuthorityFiles
    private let first: LocalAuthority

    init() throws {
        directory = try TemporaryDirectory()
        let state = directory.path + "/state"
        files = AuthorityFiles(certificate: state + "/authority.pem", key: state + "/authority.key", state: state)
        first = try files.create(at: Self.now).authority
    }

    private func set(at time: Int64 = now) throws -> AuthoritySet {
        files.withRotation(try files.load(at: time), at: time)
    }

    private func present() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path + "/state").sorted()
    }

    /// The files, by name.
    private func contents() -> [String: Data] {
        Dictionary(
            uniqueKeysWithValues: Self.names.compactMap { name in
                FileManager.default.contents(atPath: directory.path + "/state/" + name).map { (name, $0) }
            })
    }

    private func restore(_ contents: [String: Data]) throws {
        for name in Self.names {
            let path = directory.path + "/state/" + name
            try? FileManager.default.removeItem(atPath: path)
            guard let data = contents[name] else { continue }
            try data.write(to: URL(fileURLWithPath: path))
            let mode = name.hasSuffix(".key") ? 0o600 : 0o644
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
    }

    @Test func eachStepSaysWhoSignsAndWhoIsTrusted() throws {
        #expect(try files.rotationPhase(at: Self.now) == .none)
        let (next, isNew) = try files.beginRotation(at: Self.now)
        #expect(isNew && next != first.certificate)
        #expect(try directory.mode("state/authority.next.key") == 0o600)
        #expect(try directory.mode("state/authority.next.pem") == 0o644)
        #expect(try files.rotationPhase(at: Self.now) == .begun)
        #expect(try files.trustedCertificates(at: Self.now) == [first.certificate, next])
        let begun = try set()
        #expect(begun.signer(at: Self.now).certificate == first.certificate && begun.next?.certificate == next)
        #expect(begun.anchorsWithoutSelf(TrustAnchors([first.certificate, next])).certificates.isEmpty)
        // A second call changes nothing.
        let before = contents()
        #expect(try files.beginRotation(at: Self.now) == (next, false))
        #expect(contents() == before)

        #expect(try files.activateNext(at: Self.now) == (next, true))
        #expect(try present() == ["authority.key", "authority.pem", "authority.previous.pem"])
        #expect(try directory.mode("state/authority.key") == 0o600)
        let activated = try set()
        #expect(
            activated.current.certificate == next && activated.next == nil && activated.previous == [first.certificate])
        #expect(activated.anchorsWithoutSelf(TrustAnchors([first.certificate, next])).certificates.isEmpty)
        #expect(try files.trustedCertificates(at: Self.now) == [next, first.certificate])
        #expect(try files.rotationPhase(at: Self.now) == .activated)
        #expect(try files.activateNext(at: Self.now) == (next, false))

        try files.finishRotation(at: Self.now)
        #expect(try present() == ["authority.key", "authority.pem"])
        #expect(try files.trustedCertificates(at: Self.now) == [next])
        #expect(try files.rotationPhase(at: Self.now) == .none)
        try files.finishRotation(at: Self.now)
        // The same with another one.
        #expect(try files.beginRotation(at: Self.now).isNew)
    }

    @Test func aStepOutOfTurnIsRefused() throws {
        func refusal(_ step: () throws -> Void) -> String {
            #expect(throws: AuthorityError.self, performing: step)?.description ?? ""
        }
        #expect(refusal { _ = try files.activateNext(at: Self.now) }.contains("pinproxy ca rotate makes one"))
        _ = try files.beginRotation(at: Self.now)
        #expect(refusal { try files.finishRotation(at: Self.now) }.contains("--activate first"))
        _ = try files.activateNext(at: Self.now)
        #expect(refusal { _ = try files.beginRotation(at: Self.now) }.contains("--finish first"))
    }

    /// However far an activation came, its key and certificate work, no client has lost one that it trusts, and
    /// repeating the step completes it.
    @Test(arguments: 0...5) func anActivationMayBeInterruptedAnywhere(_ written: Int) throws {
        let next = try files.beginRotation(at: Self.now).certificate
        let before = contents()
        _ = try files.activateNext(at: Self.now)
        let after = contents()
        var cut = before
        let steps = [
            "authority.previous.pem", "authority.key", "authority.pem", "authority.next.pem", "authority.next.key",
        ]
        for name in steps.prefix(written) { cut[name] = after[name] }
        try restore(cut)
        let loaded = try set()
        #expect(loaded.problems.isEmpty, "\(loaded.problems)")
        #expect(loaded.current.certificate == (written < 2 ? first.certificate : next))
        #expect(Set(loaded.certificates) == [first.certificate, next])
        #expect(try Set(files.trustedCertificates(at: Self.now)) == [first.certificate, next])
        _ = try files.activateNext(at: Self.now)
        #expect(contents() == after)
    }

    /// The next authority's key is written first. A key without a certificate is completed.
    @Test func aBeginningMayBeInterrupted() throws {
        _ = try files.beginRotation(at: Self.now)
        let key = contents()["authority.next.key"]
        try FileManager.default.removeItem(atPath: directory.path + "/state/authority.next.pem")
        #expect(try set().next == nil)
        #expect(try files.beginRotation(at: Self.now).isNew)
        #expect(contents()["authority.next.key"] == key)
        #expect(try set().next != nil)
    }

    /// A leftover key belongs to the present authority, and is never reused for another.
    @Test func aKeyThatIsInForceIsNotUsedForTheNext() throws {
        try FileManager.default.copyItem(atPath: files.key, toPath: directory.path + "/state/authority.next.key")
        let next = try files.beginRotation(at: Self.now).certificate
        #expect(next.spkiSHA256 != first.certificate.spkiSHA256)
    }

    @Test func theNextOneSignsWhenThePresentOneHasExpired() throws {
        let late = first.certificate.notAfter + 1
        let next = try files.beginRotation(at: late - Self.year).certificate
        let set = try set(at: late)
        #expect(set.signer(at: late - 1).certificate == first.certificate)
        #expect(set.signer(at: late).certificate == next)
        let leaves = LeafCache(authorities: set, lifetime: 30 * 86_400)
        let before = try leaves.identity(for: .dns("a.test"), now: late - 2).leaf
        let after = try leaves.identity(for: .dns("a.test"), now: late).leaf
        #expect(
            before.issuer == first.certificate.subject && after.issuer == next.subject
                && next.subject != first.certificate.subject)
    }

    @Test func whatHasExpiredIsNoLongerTrusted() throws {
        _ = try files.beginRotation(at: Self.now + Self.year)
        _ = try files.activateNext(at: Self.now + Self.year)
        let late = first.certificate.notAfter + 1
        #expect(try set(at: late).previous.isEmpty)
        #expect(try files.trustedCertificates(at: late).count == 1)
        #expect(try files.rotationPhase(at: late) == .none)
    }

    /// A rotation that can't continue doesn't stop the proxy.
    @Test(arguments: ["authority.next.pem", "authority.next.key", "authority.previous.pem"])
    func aBrokenFileIsSaidAndNoMore(_ name: String) throws {
        _ = try files.beginRotation(at: Self.now)
        try Data("nonsense".utf8).write(to: URL(fileURLWithPath: directory.path + "/state/" + name))
        let loaded = try set()
        #expect(loaded.current.certificate == first.certificate)
        #expect(
            loaded.problems.count == 1 && loaded.problems.first?.description.contains(name) == true,
            "\(loaded.problems)")
    }

    @Test func anAuthorityOfACompanyIsNotReplacedByOneOfOurOwn() throws {
        let root = try HeldCertificate.root("Company Root")
        let own = try root.issue(.intermediate("Proxy"))
        let pair = AuthorityFiles(
            certificate: try directory.write(own.pem + root.pem, "company.pem"),
            key: try directory.write(own.keyPEM, "company.key", mode: 0o600))
        let error = #expect(throws: AuthorityError.self) { try pair.beginRotation(at: CertificateTemplate.now) }
        #expect(error?.description.contains("was issued by") == true, "\(String(describing: error))")
    }

    @Test(arguments: [
        ("/a/authority.pem", "/a/authority.next.pem"), ("ca", "ca.next"), ("/a.b/ca", "/a.b/ca.next"),
        ("/a/.ca", "/a/.ca.next"),
    ])
    func theNextOneIsBesideThePresentOne(_ path: String, _ next: String) {
        #expect(AuthorityFiles(certificate: path, key: "/k").next.certificate == next)
    }
}
