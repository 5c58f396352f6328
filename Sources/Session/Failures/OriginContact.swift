package import PinproxyEventLoop
package import PinproxyTLS
import PinproxyTransport

/// A snapshot of a connection to an origin when its certificates were verified. A class: it travels with failures,
/// which stay small, and hardly any connection has one.
package final class OriginContact: Sendable {
    /// The origin's, or the parent proxy's.
    package let address: SocketAddress
    /// `HOST:PORT` of the parent proxy, if any: ``address`` and ``answer`` are about it.
    package let parent: String?
    /// The resolver's answer; nil: it wasn't asked (an origin within this process).
    package let answer: AddressAnswer?
    /// Nil: the handshake failed before the server's choice.
    package let tls: NegotiatedTLS?

    package init(address: SocketAddress, parent: String? = nil, answer: AddressAnswer?, tls: NegotiatedTLS?) {
        self.address = address
        self.parent = parent
        self.answer = answer
        self.tls = tls
    }

    /// `DNS server 192.0.2.53:53`, with the parent proxy's name if the addresses are its.
    package var source: String? {
        answer.map { "\($0.source)" + (parent.map { ", of the parent proxy \($0)" } ?? "") }
    }

    /// The addresses that the resolver gave; of many the first ones.
    package var resolved: String? {
        guard let addresses = answer?.addresses, !addresses.isEmpty else { return nil }
        let more = addresses.count > Self.shown ? " and \(addresses.count - Self.shown) more" : ""
        return addresses.prefix(Self.shown).map(\.description).joined(separator: ", ") + more
    }

    private static let shown = 16
}

extension OriginContact {
    convenience init(
        _ target: UpstreamTarget, at address: SocketAddress, _ answer: AddressAnswer?, over stream: ByteStream?
    ) {
        self.init(
            address: address, parent: target.key.parent.map { "\($0.host):\($0.port)" }, answer: answer,
            tls: stream?.withTLS { $0.negotiated } ?? nil)
    }
}

extension UpstreamConnection {
    /// - Parameter tls: of a tunnel's handshake, which is not this connection's own; nil: its own.
    package func contact(_ tls: NegotiatedTLS? = nil) -> OriginContact {
        OriginContact(
            address: address, parent: origin.key.parent.map { "\($0.host):\($0.port)" }, answer: answer,
            tls: tls ?? stream.withTLS { $0.negotiated } ?? nil)
    }
}

extension UpstreamFailure {
    /// The failure of a judged origin, with what is known of the connection to it.
    func met(_ contact: @autoclosure () -> OriginContact?) -> UpstreamFailure {
        switch self {
        case .refused(let verdict, nil): .refused(verdict, contact())
        case .tls(let error, nil): .tls(error, contact())
        default: self
        }
    }

    /// Nil: the origin was not reached, or is refused for nothing of its TLS.
    package var contact: OriginContact? {
        switch self {
        case .refused(_, let contact), .tls(_, let contact): contact
        default: nil
        }
    }
}
