internal import Addresses
internal import HTTPWire

/// What is watched, to know whether the network can be reached (`reachability` in pinproxy.yaml).
package enum ReachabilityTarget: Sendable, Hashable {
    /// The machine as a whole.
    case any
    /// In canonical form, without brackets.
    case address(String)
    /// In lower case.
    case host(String)

    static func parse(_ text: String) -> Result<ReachabilityTarget, Reason> {
        if text == "any" { return .success(.any) }
        if let address = IPAddress(text) { return .success(.address(address.description)) }
        // With no port to fall back on, only a text that has one can be read.
        if case .success = Authority.parse(text, defaultPort: nil) {
            return .failure(Reason("\"\(text)\": a port can't be watched; leave it out"))
        }
        switch Authority.parse(text, defaultPort: 443) {
        case .success(let authority):
            return .success(authority.isIPAddress ? .address(authority.host) : .host(authority.host))
        case .failure(let error):
            return .failure(Reason("\(text.debugDescription): \(error); write any, an address or a host name"))
        }
    }
}
