import EventLoop
import Logging
import Session
import Synchronization

/// The listeners, and whom they hand their clients to. Lives on the loop of the first worker.
final class Acceptor {
    private let loop: EventLoop
    private let workers: [WorkerThread]
    private let logger: Logger
    private var listeners: [Listener] = []
    private var maximum: Int
    private var isFull = false

    /// The addresses that are listened on, ports as the system chose them.
    var addresses: [SocketAddress] { listeners.map(\.address) }

    init(loop: EventLoop, workers: [WorkerThread], maximumClients: Int, logger: Logger) {
        self.loop = loop
        self.workers = workers
        self.logger = logger
        maximum = maximumClients
    }

    /// - Parameter own: told where, before the first client is accepted.
    func listen(on addresses: [SocketAddress], telling own: OwnListeners) throws(SystemError) {
        for address in addresses {
            let listener = try Listener(loop: loop, on: address) { [unowned self] in
                hasRoom()
            } accepted: { [unowned self] socket, peer in
                handOut(socket, from: peer)
            } failed: { [logger] error in
                logger.error("accept.failed", metadata: ["cause": "\(error)"])
            }
            listeners.append(listener)
        }
        own.replace(with: self.addresses)
        for listener in listeners { listener.resume() }
    }

    func limit(clients: Int) {
        maximum = clients
        roomAgain()
    }

    /// A client has gone.
    func roomAgain() {
        guard isFull, hasRoom() else { return }
        isFull = false
        for listener in listeners { listener.resume() }
    }

    func stop() {
        for listener in listeners { listener.stop() }
        listeners = []
    }

    private func hasRoom() -> Bool {
        if workers.reduce(0, { $0 + $1.load.count }) < maximum { return true }
        if !isFull {
            logger.warning("clients.limit", metadata: ["limit": "\(maximum)", "effect": "new clients wait"])
        }
        isFull = true
        return false
    }

    private func handOut(_ socket: consuming Descriptor, from peer: SocketAddress) {
        guard let worker = workers.min(by: { $0.load.count < $1.load.count }) else { return }
        worker.load.began()
        if worker.isOn(loop) { return worker.worker(on: loop).adopt(socket, from: peer) }
        let raw = socket.release()
        worker.perform { $0.adopt(Descriptor(owning: raw), from: peer) }
    }
}
