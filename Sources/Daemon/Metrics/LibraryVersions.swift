import EventLoop
import TLS

/// The libraries that the proxy process has loaded. Separate processes load those that decode bodies.
package enum LibraryVersions {
    package static var all: [(name: String, version: String)] {
        [("OpenSSL", OpenSSLLibrary.version)] + EventLoopLibraries.versions
    }
}
