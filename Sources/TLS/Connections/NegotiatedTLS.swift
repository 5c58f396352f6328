import CPinproxyOpenSSL

/// The negotiated parameters of a TLS connection.
package struct NegotiatedTLS: Sendable, Hashable, CustomStringConvertible {
    package let version: TLSVersion
    /// OpenSSL's name of the cipher suite, e.g. `TLS_AES_128_GCM_SHA256`.
    package let cipher: String
    /// The TLS registry's name of the key exchange's group; nil: not agreed on yet (TLS 1.2, before ServerKeyExchange).
    package let group: String?

    package init(version: TLSVersion, cipher: String, group: String?) {
        self.version = version
        self.cipher = cipher
        self.group = group
    }

    /// - Parameter suite: the number of the cipher suite in a ServerHello.
    package init(version: TLSVersion, suite: UInt16, group: String? = nil) {
        self.init(version: version, cipher: Self.name(of: suite), group: group)
    }

    /// OpenSSL's name; the number where it knows none.
    private static func name(of suite: UInt16) -> String {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        let bytes = [UInt8(suite >> 8), UInt8(truncatingIfNeeded: suite)]
        guard let connection = CipherTable.shared.connection,
            let cipher = SSL_CIPHER_find(connection, bytes)
        else { return "0x" + String(suite, radix: 16, uppercase: true) }
        return String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// OpenSSL looks ciphers up in the table of a connection's method, which needs a connection: this one never speaks.
    private struct CipherTable: @unchecked Sendable {
        // Made once and never released. A look-up reads its method alone, which never changes.
        let connection: OpaquePointer?

        static let shared = CipherTable()

        private init() {
            let context = TLS_client_method().flatMap { SSL_CTX_new($0) }
            connection = context.flatMap { SSL_new($0) }
            // The connection holds it.
            SSL_CTX_free(context)
        }
    }

    /// `TLS 1.3, TLS_AES_128_GCM_SHA256, x25519`
    package var description: String {
        ([version.description, cipher] + [group].compactMap(\.self)).joined(separator: ", ")
    }
}
