import Glibc
import PinproxyAddresses
import PinproxyConfiguration
package import PinproxyHTTPWire
import PinproxyLocalPeers
import PinproxySecurity
import PinproxySession
package import PinproxyTLS

extension Rehearsal {
    /// A host on a command line: `example.com`, `[::1]:8443`, `::1`, `bücher.example`.
    package struct Host: Sendable, Hashable, CustomStringConvertible {
        package let authority: Authority

        /// Lower case, without a trailing dot or brackets.
        package var name: String { authority.host }
        package var port: UInt16 { authority.port }

        package var serverName: ServerName { ServerName(host: name) }

        /// `host:port`, with brackets around an IPv6 address.
        package var description: String { authority.description }

        /// - Parameter text: the default port is 443.
        package init(_ text: String) throws(HostError) {
            if text.contains("://") { throw HostError(text, "a host is wanted, not a URL; write e.g. example.com:443") }
            // Only an address has that form, so brackets are optional.
            let written = IPAddress(text)?.isIPv6 == true ? "[\(text)]" : text
            switch Authority.parse(try Self.ascii(written), defaultPort: 443) {
            case .success(let authority): self.authority = authority.canonical
            case .failure(let error): throw HostError(text, "\(error)")
            }
        }

        /// - Parameter name: as the configuration holds it, IPv6 without brackets.
        package init(name: String, port: UInt16) throws(HostError) {
            try self.init(name.contains(":") ? "[\(name)]:\(port)" : "\(name):\(port)")
        }

        /// Converts to A-labels; the port is unchanged.
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

    package struct HostError: Error, CustomStringConvertible {
        package let description: String

        init(_ text: String, _ reason: String) { description = "\(text.debugDescription): \(reason)" }
    }
}

extension Rehearsal {
    /// A client as a command line describes it: `user=build,unit=ci.service,executable=/usr/bin/curl`, all optional.
    package struct Client: Sendable {
        let peer: ClientPeer

        /// Nil: unknown.
        package var user: UInt32? { peer.socket?.user }

        package init(_ text: String) throws(ClientError) {
            var user: (number: UInt32, name: String?)?
            var unit: String?
            var executable: String?
            for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
                guard pair.count == 2 else {
                    throw ClientError(
                        "\(text.debugDescription): write it as user=build,unit=ci.service,executable=/usr/bin/curl")
                }
                switch pair[0] {
                case "user": user = try Self.user(pair[1])
                case "unit": unit = pair[1]
                case "executable": executable = pair[1]
                default: throw ClientError("\(text.debugDescription): \"\(pair[0])\" is not user, unit or executable")
                }
            }
            var peer = ClientPeer(user.map { LocalSocket(user: $0.number, inode: nil) })
            peer.userName = user?.name
            peer.processes = .found(
                [LocalProcess(id: 0, started: 0, executable: executable, unit: unit)], isComplete: true)
            self.peer = peer
        }

        private static func user(_ text: String) throws(ClientError) -> (number: UInt32, name: String?) {
            if let number = UInt32(text) { return (number, nil) }
            guard let entry = getpwnam(text) else {
                throw ClientError("there is no user \"\(text)\"; getent passwd shows which there are")
            }
            return (entry.pointee.pw_uid, text)
        }
    }

    package struct ClientError: Error, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }
}
