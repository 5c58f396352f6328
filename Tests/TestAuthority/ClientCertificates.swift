import CPinproxyOpenSSL

/// Makes a test server request client certificates, and records what clients present.
public final class ClientCertificates {
    /// DER, as the client sent them; empty if it presented none.
    public private(set) var shown: [[UInt8]] = []

    public init() {}

    /// For all connections of the SSL_CTX, which it must outlive. All certificates are accepted.
    public func install(on context: OpaquePointer) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, me in
                guard let store, let me else { return 0 }
                let stack = X509_STORE_CTX_get0_untrusted(store)
                Unmanaged<ClientCertificates>.fromOpaque(me).takeUnretainedValue().shown =
                    (0..<max(OPENSSL_sk_num(stack), 0)).map { index in
                        let certificate = OPENSSL_sk_value(stack, index).map { OpaquePointer($0) }
                        return TestKey.encoded { i2d_X509(certificate, $0) }
                    }
                return 1
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}
