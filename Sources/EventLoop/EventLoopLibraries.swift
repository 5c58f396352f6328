internal import CPinproxyCares
internal import CPinproxyLibevent

/// The versions of the libraries loaded here.
package enum EventLoopLibraries {
    package static var versions: [(name: String, version: String)] {
        [("libevent", event_get_version()), ("c-ares", ares_version(nil))].map {
            ($0, $1.map { String(cString: $0) } ?? "unknown")
        }
    }
}
