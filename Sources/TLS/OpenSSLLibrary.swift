internal import COpenSSL

/// The loaded OpenSSL. It may be newer than the version at build time.
package enum OpenSSLLibrary {
    package static var version: String {
        OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"
    }

    /// Since 3.2 it reads one record at a time in a handshake, header and contents apart, whatever it was told.
    static let readsAheadAfterHandshakes = OpenSSL_version_num() >= 0x3020_0000
}
