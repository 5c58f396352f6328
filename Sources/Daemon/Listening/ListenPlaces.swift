import Configuration
import EventLoop
import Session

extension ListenSettings {
    /// Where clients are awaited, besides at the sockets of a supervisor.
    var places: [Endpoint] {
        addresses.compactMap { SocketAddress($0).map(Endpoint.network) } + paths.map(Endpoint.unix)
    }

    /// Where a PROXY header comes first, and from whom it is taken.
    var senders: [Endpoint: [AddressRange]] {
        var senders: [Endpoint: [AddressRange]] = [:]
        for (address, ranges) in proxyProtocol {
            if let address = SocketAddress(address) { senders[.network(address)] = ranges }
        }
        return senders
    }
}
