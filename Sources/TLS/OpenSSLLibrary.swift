internal import CPinproxyOpenSSL

/// The loaded OpenSSL. It may be newer than the version at build time.
package enum OpenSSLLibrary {
    package static var version: String {
        OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"
    }

    /// Since 3.2 OpenSSL ignores read-ahead in a handshake: it reads one record at a time, header and contents apart.
    static let readsAheadAfterHandshakes = OpenSSL_version_num() >= 0x3020_0000
}
