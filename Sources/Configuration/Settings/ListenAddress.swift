internal import PinproxyAddresses
package import PinproxyEventLoop
package import PinproxySession

/// An address and port to listen on, e.g. `127.0.0.1:7467` or `[::1]:7467`.
package struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// In canonical form, without brackets.
    package let ip: String
    /// 0 lets the system choose.
    package let port: UInt16
    package var isIPv6: Bool { ip.utf8.contains(UInt8(ascii: ":")) }

    package init(ip: String, port: UInt16) {
        self.ip = ip
        self.port = port
    }

    package var description: String { isIPv6 ? "[\(ip)]:\(port)" : "\(ip):\(port)" }

    /// True if only programs of this machine can reach it (127.0.0.0/8, ::1).
    package var isLoopback: Bool { ip == "::1" || ip.hasPrefix("127.") }

    /// True if the parent proxy's address can be seen to be this one, in whichever spelling. What a name resolves to
    /// can't.
    func isReached(by parent: ParentProxy) -> Bool {
        guard port == parent.port, let own = IPAddress(ip) else { return false }
        let isEverywhere = own.isUnspecified
        let name = parent.host.lowercased()
        if name == "localhost" || name.hasSuffix(".localhost") { return isEverywhere || isLoopback }
        guard let address = IPAddress(name)?.canonical else { return false }
        let isOwnLoopback =
            ListenAddress(ip: address.description, port: port).isLoopback && own.isIPv6 == address.isIPv6
        return address == own.canonical || (isEverywhere && isOwnLoopback)
    }

    /// Nil if it isn't `ADDRESS:PORT` as ``parse(_:)`` has it.
    package init?(_ text: some StringProtocol) {
        guard case .success(let address) = Self.parse(String(text)) else { return nil }
        self = address
    }

    /// Parses `ADDRESS:PORT` with IPv6 addresses in brackets. Names are refused: their addresses may change.
    static func parse(_ text: String) -> Result<ListenAddress, Reason> {
        let example = "write an address and a port, e.g. 127.0.0.1:7467 or \"[::1]:7467\""
        guard let colon = text.lastIndex(of: ":") else {
            if UInt16(text) != nil {
                return .failure(Reason("\"\(text)\" has no address; write e.g. 127.0.0.1:\(text)"))
            }
            return .failure(Reason("\"\(text)\" has no port; \(example)"))
        }
        var host = text[..<colon]
        let port = text[text.index(after: colon)...]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        guard let address = IPAddress(host) else {
            if host == "localhost" {
                return .failure(
                    Reason("\"localhost\" is a name; write 127.0.0.1:\(port) or \"[::1]:\(port)\", or both as a list"))
            }
            if host == "*" || host.isEmpty {
                let everybody = "0.0.0.0:\(port) or \"[::]:\(port)\""
                return .failure(Reason("\"\(text)\" has no address; write \(everybody) if every machine may connect"))
            }
            return .failure(Reason("\"\(host)\" is not an IP address; \(example)"))
        }
        guard address.isIPv6 == isBracketed else {
            return .failure(
                Reason(
                    isBracketed
                        ? "only IPv6 addresses are written in brackets; write \(address):\(port)"
                        : "an IPv6 address is written in brackets, and in quotes because of them; \(example)"))
        }
        guard let number = UInt16(port), port.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return .failure(Reason("\"\(port)\" is not a port; write a number from 0 to 65535"))
        }
        return .success(ListenAddress(ip: address.description, port: number))
    }
}

extension SocketAddress {
    package init?(_ address: ListenAddress) {
        guard let ip = IPAddress(address.ip) else { return nil }
        self.init(ip: ip, port: address.port)
    }
}

/// Places that accept clients: `listen` of `proxy` in pinproxy.yaml.
package struct ListenSettings: Sendable, Equatable {
    /// Without duplicates. Empty only with ``paths`` or ``takesInherited``.
    package var addresses: [ListenAddress]
    /// `systemd`: also on its sockets of the port's name, `proxy` or `admin` (FileDescriptorName=, systemd.socket(5)).
    package var takesInherited = false
    /// Unix sockets, by absolute paths. None twice.
    package var paths: [String] = []
    /// Addresses with a PROXY header before a client's first byte, and its trusted senders.
    package var proxyProtocol: [ListenAddress: [AddressRange]] = [:]

    /// The addresses that a program can connect to.
    package var directAddresses: [ListenAddress] { addresses.filter { proxyProtocol[$0] == nil } }
}
