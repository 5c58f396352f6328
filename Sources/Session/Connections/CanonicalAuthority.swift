import PinproxyAddresses
package import PinproxyHTTPWire

extension Authority {
    /// The same with a canonical address (``Addresses/IPAddress/canonical``), however a client spells it.
    package var canonical: Authority {
        guard isIPAddress, let address = IPAddress(host)?.canonical, address.description != host,
            case .success(let authority) = Authority.parse(
                address.isIPv6 ? "[\(address)]" : "\(address)", defaultPort: port)
        else { return self }
        return authority
    }
}
