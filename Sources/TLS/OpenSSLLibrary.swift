internal import COpenSSL

/// The OpenSSL that is loaded, which may be newer than the one that the program was built with.
package enum OpenSSLLibrary {
    package static var version: String { OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown" }
}
