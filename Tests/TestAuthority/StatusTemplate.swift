import CPinproxyOpenSSL
import CPinproxyShims

/// The contents of an OCSP response (RFC 6960). By default it says, on the tests' clock, that the certificate is good.
public struct StatusTemplate: Sendable {
    public enum Status: Sendable {
        case good, unknown
        case revoked(date: Int64, reason: Int32?)
    }

    public var status = Status.good
    public var thisUpdate = CertificateTemplate.now - CertificateTemplate.day
    /// nil: none.
    public var nextUpdate: Int64? = CertificateTemplate.now + CertificateTemplate.day
    /// Digest of the CertID.
    public var identifierDigest = TestKey.Digest.sha1
    /// Digest of the signature.
    public var digest = TestKey.Digest.sha256
    /// Signs in place of the issuer; its certificate is put into the response.
    public var responder: HeldCertificate?
    /// Encoded timestamps for the response to contain.
    public var timestamps: [[UInt8]] = []
    /// If true, the signature's last byte is wrong.
    public var breaksSignature = false

    public init() {}

    /// This template with changes, for one-line variations.
    public func with(_ change: (inout StatusTemplate) -> Void) -> StatusTemplate {
        var copy = self
        change(&copy)
        return copy
    }
}

extension HeldCertificate {
    /// A response about a certificate, signed by this one or by the template's responder, as DER.
    public func statusResponse(
        for certificate: HeldCertificate, _ template: StatusTemplate = StatusTemplate()
    ) throws -> [UInt8] {
        let basic = OCSP_BASICRESP_new()
        defer { OCSP_BASICRESP_free(basic) }
        let subject = try certificate.parsed()
        defer { X509_free(subject) }
        let issuer = try parsed()
        defer { X509_free(issuer) }
        guard let identifier = OCSP_cert_to_id(template.identifierDigest.algorithm, subject, issuer) else {
            throw AuthorityFailure(what: "OCSP identifier")
        }
        defer { OCSP_CERTID_free(identifier) }
        let single = try add(template, identifier, to: basic)
        if !template.timestamps.isEmpty {
            let list = DERWriter.octets(TestLog.list(template.timestamps))
            let octets = ASN1_OCTET_STRING_new()
            defer { ASN1_OCTET_STRING_free(octets) }
            ASN1_OCTET_STRING_set(octets, list, CInt(list.count))
            let made = X509_EXTENSION_create_by_NID(nil, NID_ct_cert_scts, 0, octets)
            defer { X509_EXTENSION_free(made) }
            try require(OCSP_SINGLERESP_add_ext(single, made, -1), "OCSP extension")
        }
        let signer = try (template.responder ?? self).parsed()
        defer { X509_free(signer) }
        let key = (template.responder ?? self).key
        let digest = key.kind.isWithoutDigest ? nil : template.digest.algorithm
        try require(
            OCSP_basic_sign(
                basic, signer, key.pointer, digest, nil, template.responder == nil ? UInt(OCSP_NOCERTS) : 0),
            "OCSP signature")
        if template.breaksSignature, let signature = OCSP_resp_get0_signature(basic) {
            signature.pointee.data[Int(signature.pointee.length) - 1] ^= 1
        }
        return HeldCertificate.encoded(OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic))
    }

    /// A responder's error, e.g. 3 for tryLater (RFC 6960 section 4.2.1).
    public static func statusError(_ code: Int32) -> [UInt8] { encoded(OCSP_response_create(code, nil)) }

    private func add(
        _ template: StatusTemplate, _ identifier: OpaquePointer, to basic: OpaquePointer?
    ) throws
        -> OpaquePointer
    {
        var (status, reason) = (V_OCSP_CERTSTATUS_GOOD, CInt(-1))
        var revoked: UnsafeMutablePointer<ASN1_TIME>?
        switch template.status {
        case .good: break
        case .unknown: status = V_OCSP_CERTSTATUS_UNKNOWN
        case .revoked(let date, let why):
            (status, reason) = (V_OCSP_CERTSTATUS_REVOKED, why ?? -1)
            revoked = ASN1_GENERALIZEDTIME_set(nil, Int(date))
        }
        let this = ASN1_GENERALIZEDTIME_set(nil, Int(template.thisUpdate))
        let next = template.nextUpdate.flatMap { ASN1_GENERALIZEDTIME_set(nil, Int($0)) }
        defer { for time in [revoked, this, next] { ASN1_GENERALIZEDTIME_free(time) } }
        guard let single = OCSP_basic_add1_status(basic, identifier, status, reason, revoked, this, next) else {
            throw AuthorityFailure(what: "OCSP status")
        }
        return single
    }

    /// The contents of the serial number's INTEGER.
    func serialContents() throws -> [UInt8] {
        let certificate = try parsed()
        defer { X509_free(certificate) }
        let encoded = TestKey.encoded { i2d_ASN1_INTEGER(X509_get0_serialNumber(certificate), $0) }
        return Array(encoded.dropFirst(2))
    }

    /// To be freed by the caller.
    public func parsed() throws -> OpaquePointer {
        let certificate = der.withUnsafeBufferPointer { bytes in
            var cursor = bytes.baseAddress
            return d2i_X509(nil, &cursor, bytes.count)
        }
        guard let certificate else { throw AuthorityFailure(what: "parsing a certificate") }
        return certificate
    }

    private static func encoded(_ response: OpaquePointer?) -> [UInt8] {
        defer { OCSP_RESPONSE_free(response) }
        return TestKey.encoded { i2d_OCSP_RESPONSE(response, $0) }
    }
}
