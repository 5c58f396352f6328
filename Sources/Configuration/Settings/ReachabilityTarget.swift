internal import Glibc
internal import PinproxyAddresses
internal import PinproxyHTTPWire

/// A target to watch for reachability (`reachability` in pinproxy.yaml).
package enum ReachabilityTarget: Sendable, Hashable {
    /// The machine as a whole.
    case any
    /// In canonical form, without brackets.
    case address(String)
    /// In lower case.
    case host(String)

    /// Whether it is an interface of this machine, or named like one by Linux and systemd: looking it up would fail.
    private static func isInterface(_ name: String) -> Bool {
        guard !name.contains(".") else { return false }
        return access("/sys/class/net/\(name)", F_OK) == 0
            || name.wholeMatch(of: /(eth|wlan|wwan|ppp|tun|tap|wg|usb)\d+|(en|wl|ww)((o|s|p\d+s)\d+.*|x[0-9a-f]{12})/)
                != nil
    }

    static func parse(_ text: String) -> Result<ReachabilityTarget, Reason> {
        if text == "any" { return .success(.any) }
        if let address = IPAddress(text) { return .success(.address(address.description)) }
        // With no port to fall back on, only a text that has one can be read.
        if case .success = Authority.parse(text, defaultPort: nil) {
            return .failure(Reason("\"\(text)\": a port can't be watched; leave it out"))
        }
        switch Authority.parse(text, defaultPort: 443) {
        case .success(let authority) where isInterface(authority.host):
            return .failure(
                Reason(
                    "\"\(text)\" is a network interface, and what is watched is a way to somewhere; write any, an "
                        + "address or a host name (a host of that name with its domain)"))
        case .success(let authority):
            return .success(authority.isIPAddress ? .address(authority.host) : .host(authority.host))
        case .failure(let error):
            return .failure(Reason("\(text.debugDescription): \(error); write any, an address or a host name"))
        }
    }
}
