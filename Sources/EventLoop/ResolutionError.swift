internal import CPinproxyCares

package enum ResolutionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Not a host name: an empty or too long label, over 253 characters, a NUL.
    case invalidName(String)
    case notFound(String)
    /// The name has neither an IPv4 nor an IPv6 address.
    case noAddresses(String)
    case timedOut(String)
    /// A server refused, failed or sent a malformed answer; `reason` is c-ares' text.
    case serverFailure(name: String, reason: String)
    case noDescriptors(String)
    /// The resolver was released.
    case cancelled

    /// One human-readable line: `api.example.test: no such host`
    package var description: String {
        switch self {
        case .invalidName(let name): "\(name.debugDescription): not a host name"
        case .notFound(let name): "\(name): no such host"
        case .noAddresses(let name): "\(name): the host has no address"
        case .timedOut(let name): "\(name): the name servers didn't answer in time"
        case .serverFailure(let name, let reason): "\(name): name resolution failed: \(reason)"
        case .noDescriptors(let name): "\(name): out of file descriptors: no name server can be asked"
        case .cancelled: "name resolution was cancelled"
        }
    }

    /// Whether it is about the name, and may be cached, or temporary.
    var isAboutName: Bool {
        switch self {
        case .notFound, .noAddresses: true
        case .invalidName, .timedOut, .serverFailure, .noDescriptors, .cancelled: false
        }
    }

    /// From a c-ares status other than ARES_SUCCESS.
    init(status: CInt, name: String) {
        switch status {
        case shim_ARES_ENOTFOUND: self = .notFound(name)
        case shim_ARES_ENODATA: self = .noAddresses(name)
        case shim_ARES_EBADNAME: self = .invalidName(name)
        case shim_ARES_ETIMEOUT: self = .timedOut(name)
        case shim_ARES_ECANCELLED, shim_ARES_EDESTRUCTION: self = .cancelled
        default: self = .serverFailure(name: name, reason: String(cString: ares_strerror(status)))
        }
    }
}
