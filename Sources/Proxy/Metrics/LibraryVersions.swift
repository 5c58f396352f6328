import EventLoop
import TLS

/// The libraries that the proxy's own process has loaded. Those that decode bodies are loaded by processes of their own.
package enum LibraryVersions {
    package static var all: [(name: String, version: String)] {
        [("OpenSSL", OpenSSLLibrary.version)] + EventLoopLibraries.versions
    }
}
