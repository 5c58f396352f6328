import Configuration
import EventLoop
import Session
import TLS
import Transport

/// The origin of ``Configuration/TestHost``, within the process of the proxy: one for each worker. A connection to it
/// is a pair of sockets, over which the proxy makes its TLS handshake as with any origin. Any client may ask it: it
/// knows nothing.
final class TestOrigin: OwnOrigin {
    /// Connections at one time: for one more the oldest goes, and whoever had it in the proxy gets another.
    static let limit = 32

    private let loop: EventLoop
    private let slabs: SlabPool
    private let hosts: TestHosts
    private let tls: TLSServerContext
    private let unixTime: @Sendable () -> UnixTime
    /// The oldest is the first.
    private var connections: [TestOriginConnection] = []

    init(
        loop: EventLoop, slabs: SlabPool, hosts: TestHosts, tls: TLSServerContext,
        unixTime: @escaping @Sendable () -> UnixTime
    ) {
        self.loop = loop
        self.slabs = slabs
        self.hosts = hosts
        self.tls = tls
        self.unixTime = unixTime
    }

    func connection(to host: String) throws(OwnOriginError) -> Descriptor? {
        guard let host = TestHost(host) else { return nil }
        if connections.count >= Self.limit { connections.first?.end() }
        do {
            let identity = try hosts.identity(for: host, now: unixTime())
            let pair = try Socket.pair()
            let near = Descriptor(owning: pair.0)
            let connection = TestOriginConnection(
                stream: ByteStream(loop: loop, descriptor: Descriptor(owning: pair.1)), loop: loop, slabs: slabs
            ) { [weak self] ended in self?.connections.removeAll { $0 === ended } }
            connections.append(connection)
            connection.start(tls, identity)
            return near
        } catch {
            throw OwnOriginError("\(error)")
        }
    }
}
