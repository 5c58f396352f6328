import Addresses
import HTTPWire
import Security
import Session
package import TLS

extension Rehearsal {
    /// A host as a person names it on a command line: `example.com`, `example.com:8443`, `[::1]:8443`,
    /// `::1`, `bücher.example`. In the form in which the proxy compares hosts.
    package struct Host: Sendable, Hashable, CustomStringConvertible {
        let authority: Authority

        /// Lower case, without a trailing dot or brackets.
        package var name: String { authority.host }
        package var port: UInt16 { authority.port }

        /// What the server must prove to be.
        package var serverName: ServerName { ServerName(host: name) }

        /// `host:port`, with brackets around an IPv6 address.
        package var description: String { authority.description }

        /// - Parameter text: without a port 443 is meant.
        package init(_ text: String) throws(HostError) {
            if text.contains("://") { throw HostError(text, "a host is wanted, not a URL; write e.g. example.com:443") }
            // Nothing but an address has that form, so it is understood without its brackets.
            let written = IPAddress(text)?.isIPv6 == true ? "[\(text)]" : text
            switch Authority.parse(try Self.ascii(written), defaultPort: 443) {
            case .success(let authority): self.authority = authority.canonical
            case .failure(let error): throw HostError(text, "\(error)")
            }
        }

        /// A host and a port in the form in which the configuration holds them.
        package init(name: String, port: UInt16) throws(HostError) {
            try self.init(name.contains(":") ? "[\(name)]:\(port)" : "\(name):\(port)")
        }

        /// With A-labels in the place of others; the port stays as it is.
        private static func ascii(_ text: String) throws(HostError) -> String {
            if text.utf8.allSatisfy({ $0 < 0x80 }) { return text }
            let end = text.lastIndex(of: ":") ?? text.endIndex
            do {
                return try InternationalName.toASCII(String(text[..<end])) + text[end...]
            } catch {
                throw HostError(text, "\(error)")
            }
        }
    }

    /// Why a text names no host.
    package struct HostError: Error, CustomStringConvertible {
        package let description: String

        init(_ text: String, _ reason: String) { description = "\(text.debugDescription): \(reason)" }
    }
}
