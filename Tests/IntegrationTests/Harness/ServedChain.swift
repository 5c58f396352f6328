import Foundation
import PinproxyTestAuthority

/// What a server presents: certificates as PEM, leaf first, and the leaf's key.
struct ServedChain: Sendable {
    var pem: String
    var keyPEM: String

    init(_ leaf: HeldCertificate) {
        pem = leaf.chainPEM
        keyPEM = leaf.keyPEM
    }

    init(pem: String, keyPEM: String) {
        self.pem = pem
        self.keyPEM = keyPEM
    }

    /// - Parameter certificates: what is presented after the leaf, right or wrong.
    init(_ leaf: HeldCertificate, followedBy certificates: [HeldCertificate]) {
        pem = ([leaf] + certificates).map(\.pem).joined()
        keyPEM = leaf.keyPEM
    }
}

/// A root that the proxy trusts, an intermediate below it, and leaves that are valid today.
struct TestRoots: Sendable {
    let root: HeldCertificate
    let intermediate: HeldCertificate

    init(_ name: String = "Test") throws {
        root = try .selfSigned(.root("\(name) Root").validToday)
        intermediate = try root.issue(.intermediate("\(name) Intermediate").validToday)
    }

    /// The peers' clock: the programs that the tests start take the machine's.
    static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    func leaf(
        _ names: String..., change: (inout CertificateTemplate) -> Void = { _ in }
    ) throws -> HeldCertificate {
        try intermediate.issue(Self.template(names, change))
    }

    func chain(
        _ names: String..., change: (inout CertificateTemplate) -> Void = { _ in }
    ) throws -> ServedChain {
        ServedChain(try intermediate.issue(Self.template(names, change)))
    }

    /// A server's certificate, valid today, for the names. Addresses among them are recognized.
    static func template(
        _ names: [String], _ change: (inout CertificateTemplate) -> Void = { _ in }
    ) -> CertificateTemplate {
        var template = CertificateTemplate.leaf().validToday
        template.ipAddresses = names.filter { $0.contains(":") || $0.allSatisfy { $0.isNumber || $0 == "." } }
        template.dnsNames = names.filter { !template.ipAddresses.contains($0) }
        template.commonName = names.first.flatMap { $0.utf8.count <= 64 ? $0 : nil }
        change(&template)
        return template
    }

    /// Writes the root as `NAME.pem`, for `upstream.trust`.
    func write(to bed: TestBed, name: String = "roots") throws -> String {
        try bed.file("\(name).pem", root.pem, mode: 0o644)
    }
}

extension HeldCertificate {
    /// `sha256/…` of the public key, computed by the openssl command: not by the code under test.
    func pin(_ bed: TestBed) async throws -> String {
        let run = try await bed.run(
            ["/bin/sh", "-c", "openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64"],
            input: Array(key.publicKeyPEM.utf8))
        guard run.succeeded, !run.output.isEmpty else { throw TestBedError("no pin: \(run)") }
        return "sha256/" + run.output
    }
}

extension String {
    /// A pin of the right form that matches no key.
    static let wrongPin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
}

extension CertificateTemplate {
    /// As long a validity with its middle now.
    var validToday: Self {
        with {
            $0.notBefore += TestRoots.now - Self.now
            $0.notAfter += TestRoots.now - Self.now
        }
    }
}
