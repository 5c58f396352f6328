import COpenSSL

extension Certificate {
    /// A certificate for a key that is at hand: the same as `init(der:)`, at a sixth of its cost.
    ///
    /// OpenSSL 3.0 decodes a certificate's key through a chain of decoders that it builds anew each
    /// time, for more than 100 µs. Here the other fields are decoded one by one and the key is put in
    /// as it is. The result counts only if it encodes to the very same bytes; if not, or if the
    /// certificate is for another key, it is decoded in the ordinary way.
    package convenience init(der: [UInt8], certifying key: PrivateKey) throws(CertificateError) {
        OpenSSLErrorQueue.clear()
        let assembled = der.withUnsafeBufferPointer { Self.assemble($0, key) }
        guard let assembled else {
            try self.init(der: der)
            return
        }
        self.init(owning: assembled)
    }

    private static func assemble(_ der: UnsafeBufferPointer<UInt8>, _ key: PrivateKey) -> OpaquePointer? {
        guard let subjectKey = key.forCertificates, let certificate = X509_new() else { return nil }
        let assembly = Assembly(certificate: certificate)
        guard assembly.read(der, key: subjectKey, keyDER: key.publicDER), encodes(certificate, to: der) else {
            X509_free(certificate)
            ERR_clear_error()
            return nil
        }
        return certificate
    }

    private static func encodes(_ certificate: OpaquePointer, to der: UnsafeBufferPointer<UInt8>) -> Bool {
        DER.bytes { i2d_X509(certificate, $0) }.elementsEqual(der)
    }
}

/// An X509 under construction.
private struct Assembly {
    let certificate: OpaquePointer

    /// Fills the certificate from its encoding; false if something in it is not as this room's own
    /// certificates have it.
    func read(_ der: UnsafeBufferPointer<UInt8>, key: OpaquePointer, keyDER: [UInt8]) -> Bool {
        var outer = DERReader(der)
        guard let whole = outer.take(0x30), outer.isAtEnd else { return false }
        var parts = DERReader(whole.contents)
        guard let body = parts.take(0x30), let algorithm = parts.take(0x30), let signature = parts.take(0x03),
            parts.isAtEnd, setSignature(algorithm, signature)
        else { return false }

        var fields = DERReader(body.contents)
        guard let version = fields.take(0xA0), version.contents.elementsEqual([0x02, 0x01, 0x02]),
            X509_set_version(certificate, 2) == 1, let serial = fields.take(0x02), setSerial(serial),
            let inner = fields.take(0x30), inner.whole.elementsEqual(algorithm.whole),
            let issuer = fields.take(0x30), setName(issuer, X509_set_issuer_name),
            let validity = fields.take(0x30), setValidity(validity),
            let subject = fields.take(0x30), setName(subject, X509_set_subject_name),
            let publicKey = fields.take(0x30), publicKey.whole.elementsEqual(keyDER),
            X509_set_pubkey(certificate, key) == 1
        else { return false }
        guard let extensions = fields.take(0xA3), fields.isAtEnd else { return false }
        return addExtensions(extensions)
    }

    private func setSerial(_ value: DERReader.Value) -> Bool {
        var cursor = value.whole.baseAddress
        guard let number = d2i_ASN1_INTEGER(nil, &cursor, value.whole.count) else { return false }
        defer { ASN1_INTEGER_free(number) }
        return X509_set_serialNumber(certificate, number) == 1
    }

    private func setName(_ value: DERReader.Value, _ set: (OpaquePointer?, OpaquePointer?) -> CInt) -> Bool {
        var cursor = value.whole.baseAddress
        guard let name = d2i_X509_NAME(nil, &cursor, value.whole.count) else { return false }
        defer { X509_NAME_free(name) }
        return set(certificate, name) == 1
    }

    private func setValidity(_ value: DERReader.Value) -> Bool {
        var times = DERReader(value.contents)
        for destination in [X509_getm_notBefore(certificate), X509_getm_notAfter(certificate)] {
            guard let time = times.take(UInt8(V_ASN1_UTCTIME)) ?? times.take(UInt8(V_ASN1_GENERALIZEDTIME)),
                let destination, ASN1_STRING_set(destination, time.contents.baseAddress, CInt(time.contents.count)) == 1
            else { return false }
            destination.pointee.type = CInt(time.tag)
        }
        return times.isAtEnd
    }

    private func addExtensions(_ value: DERReader.Value) -> Bool {
        var outer = DERReader(value.contents)
        guard let list = outer.take(0x30), outer.isAtEnd else { return false }
        var items = DERReader(list.contents)
        while !items.isAtEnd {
            guard let item = items.take(0x30) else { return false }
            var cursor = item.whole.baseAddress
            guard let decoded = d2i_X509_EXTENSION(nil, &cursor, item.whole.count) else { return false }
            defer { X509_EXTENSION_free(decoded) }
            guard X509_add_ext(certificate, decoded, -1) == 1 else { return false }
        }
        return true
    }

    private func setSignature(_ algorithm: DERReader.Value, _ signature: DERReader.Value) -> Bool {
        var bits: UnsafePointer<ASN1_BIT_STRING>?
        var outer: UnsafePointer<X509_ALGOR>?
        X509_get0_signature(&bits, &outer, certificate)
        // Read-only for those who receive a certificate; this one is nobody's yet.
        guard let own = UnsafeMutablePointer(mutating: bits), signature.contents.first == 0,
            let start = signature.contents.baseAddress,
            ASN1_STRING_set(own, start + 1, CInt(signature.contents.count - 1)) == 1
        else { return false }
        // No bits of the last byte are unused.
        own.pointee.flags = own.pointee.flags & ~0x0F | Int(ASN1_STRING_FLAG_BITS_LEFT)

        var cursor = algorithm.whole.baseAddress
        guard let decoded = d2i_X509_ALGOR(nil, &cursor, algorithm.whole.count) else { return false }
        defer { X509_ALGOR_free(decoded) }
        return X509_ALGOR_copy(UnsafeMutablePointer(mutating: outer), decoded) == 1
            && X509_ALGOR_copy(UnsafeMutablePointer(mutating: X509_get0_tbs_sigalg(certificate)), decoded) == 1
    }
}
