internal import Glibc
package import PinproxyEventLoop
internal import PinproxyTransport

/// The way out of a command's network: forwards connections that its sockets accept to the proxy, and knows no policy.
/// For a program without proxy support it sends the proxy request itself, once it knows the host and its address.
package final class Door {
    /// The most connections at a time; others wait to be accepted.
    private static let limit = 4096

    private let context: DoorContext
    private var listeners: [DoorListener] = []
    private var datagrams: [NameDatagrams] = []
    private var connections: [ObjectIdentifier: DoorConnection] = [:]
    private var drained: (() -> Void)?

    /// - Parameters:
    ///   - sockets: those that ``CommandSurroundings/enter()`` made; taken over.
    ///   - connect: connects to the proxy, marked as coming from a command's network; doesn't wait.
    ///   - credentials: for the proxy, `Basic …`; nil: none.
    ///   - ask: asks the proxy for the addresses of a name; answers once, on the loop.
    package init(
        loop: EventLoop, network: IsolatedNetwork, sockets: [CInt],
        connect: @escaping () throws(ProxyUnreachable) -> Descriptor,
        credentials: String?, reports: DoorReports,
        ask: @escaping (_ name: String, _ answered: @escaping (NameAnswer) -> Void) -> Void
    ) {
        context = DoorContext(
            loop: loop, network: network, connect: connect, credentials: credentials, reports: reports,
            names: Names(ask))
        for raw in sockets {
            if Socket.isStream(raw) {
                listeners.append(DoorListener(loop: loop, raw: raw) { [weak self] in self?.accepted($0) })
            } else {
                datagrams.append(NameDatagrams(loop: loop, raw: raw, names: context.names))
            }
        }
    }

    private func accepted(_ socket: consuming Descriptor) {
        let connection = DoorConnection(context, socket) { [weak self] in self?.ended($0) }
        connections[ObjectIdentifier(connection)] = connection
        if connections.count >= Self.limit { for listener in listeners { listener.pause() } }
        connection.start()
    }

    private func ended(_ connection: DoorConnection) {
        connections[ObjectIdentifier(connection)] = nil
        if connections.count == Self.limit - 1 { for listener in listeners { listener.proceed() } }
        if connections.isEmpty { tellDrained() }
    }

    /// The command has ended: data it sent may still arrive. `done` is called once nothing is in flight.
    package func drain(_ done: @escaping () -> Void) {
        drained = done
        context.isDraining = true
        datagrams = []
        for listener in listeners { listener.acceptRest() }
        listeners = []
        for connection in connections.values { connection.drain() }
        if connections.isEmpty { tellDrained() }
    }

    private func tellDrained() {
        let drained = drained
        self.drained = nil
        drained?()
    }
}

final class DoorListener: SocketHandler {
    private static let perTurn = 16
    private static let pauseNanoseconds: UInt64 = 100_000_000

    private let loop: EventLoop
    private let raw: CInt
    private let accepted: (consuming Descriptor) -> Void
    private var source: SocketSource?
    private var timer: Timer?

    /// - Parameter raw: taken over.
    init(loop: EventLoop, raw: CInt, accepted: @escaping (consuming Descriptor) -> Void) {
        self.loop = loop
        self.raw = raw
        self.accepted = accepted
        source = SocketSource(loop: loop, descriptor: raw, handler: self)
        source?.wantsRead = true
    }

    deinit {
        source?.invalidate()
        close(raw)
    }

    func pause() { source?.wantsRead = false }
    func proceed() { source?.wantsRead = true }

    /// Accepts connections that are already established.
    func acceptRest() {
        for _ in 0..<4096 { guard acceptOne() else { return } }
    }

    func socketReady(_ readiness: Readiness) {
        for _ in 0..<Self.perTurn where source?.wantsRead == true { guard acceptOne() else { return } }
    }

    private func acceptOne() -> Bool {
        switch Socket.accept(raw) {
        case .accepted(let socket, peer: _):
            accepted(socket)
            return true
        case .wouldBlock: return false
        case .failed:
            pause()
            timer = Timer(loop: loop, owner: self, afterNanoseconds: Self.pauseNanoseconds) { $0.proceed() }
            return false
        }
    }
}
