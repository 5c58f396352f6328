internal import COpenSSL

/// The loaded OpenSSL. It may be newer than the version at build time.
package enum OpenSSLLibrary {
    package static var version: String {
        OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"
    }
}
