import Glibc
import Logging
import PinproxyClients
import PinproxyEventLoop
import PinproxyLocalPeers
import PinproxySession

/// Accepts clients for the workers. On its own thread: no busy worker or reload delays a client.
final class Acceptor {
    private let loop: EventLoop
    private let logger: Logger
    private let workers: [WorkerThread]
    private let vacancy: Vacancy
    private var listeners: [Listener] = []
    private var maximum: Int
    private var isFull = false
    private var choice = WorkerChoice()
    private let desk = ArrivalDesk()
    /// Places with PROXY headers, and their trusted senders.
    private var senders: [Endpoint: [AddressRange]]
    private lazy var limit = Shortage("clients.limit", loop: loop, logger: logger) { [weak self] in
        self?.isFull == true
    }
    private lazy var descriptors = Shortage("accept.failed", loop: loop, logger: logger)
    private let pressure: MemoryPressure
    /// Nil: memory isn't limited.
    private var memory: MemoryWatch?
    /// Clients served even while memory is short: the proxy itself may fill the limit.
    private static let clientsInNeed = 16

    /// - Parameter vacancy: must notify this acceptor before ``start()``.
    init(
        loop: EventLoop, sockets: [ListeningSocket], workers: [WorkerThread], vacancy: Vacancy, maximumClients: Int,
        senders: [Endpoint: [AddressRange]] = [:], pressure: MemoryPressure = MemoryPressure(),
        memory group: MemoryGroup? = nil, freeMemory: FreeMemory? = nil, logger: Logger
    ) {
        self.pressure = pressure
        self.senders = senders
        self.loop = loop
        self.logger = logger
        self.workers = workers
        self.vacancy = vacancy
        maximum = maximumClients
        add(sockets)
        memory = group.map { group in
            MemoryWatch(loop: loop, group: group, pressure: pressure, logger: logger) { closed in
                for worker in workers { worker.perform { closed($0.shed()) } }
                freeMemory?.giveBack()
            } ended: { [weak self] in
                self?.roomAgain()
            }
        }
    }

    private func add(_ sockets: [ListeningSocket]) {
        for socket in sockets {
            let isKnown = desk.knowsConnections(to: socket.raw)
            let listener = Listener(loop: loop, socket: socket) { [weak self] in
                self?.hasRoom == true
            } mustWait: { [weak self] in
                self?.waitForRoom()
            } accepted: { [weak self] descriptor, source, hasWaited in
                guard let self else { return }
                if hasWaited {
                    limit.met()
                    descriptors.met()
                }
                handOut(descriptor, from: source, at: socket, isKnown: isKnown)
            } failed: { [weak self] error in
                self?.failed(error)
            }
            listeners.append(listener)
        }
    }

    private func failed(_ error: SystemError) {
        descriptors.strike(.error, Self.fields(of: error))
        guard error.isLackOfDescriptors else { return }
        for worker in workers { worker.perform { _ = $0.makeRoom() } }
    }

    func start() {
        memory?.measure()
        for listener in listeners { listener.resume() }
    }

    /// Follows a reload.
    /// - Parameter senders: places with PROXY headers, and the ranges that are trusted to send them.
    func replace(_ removed: [ListeningSocket], with added: [ListeningSocket], senders: [Endpoint: [AddressRange]]) {
        self.senders = senders
        for listener in listeners where removed.contains(where: { $0.wanted == listener.wanted }) { listener.stop() }
        listeners.removeAll { listener in removed.contains { $0.wanted == listener.wanted } }
        add(added)
        start()
    }

    func limit(clients: Int) {
        maximum = clients
        roomAgain()
    }

    func roomAgain() {
        guard isFull else { return }
        limit.lasted()
        isFull = false
        // A listener without room will report again.
        for listener in listeners { listener.resume() }
    }

    func stop() {
        for listener in listeners { listener.stop() }
        listeners = []
    }

    private var hasRoom: Bool { clientCount < (lacksMemory ? min(maximum, Self.clientsInNeed) : maximum) }
    private var lacksMemory: Bool { pressure.level > .none }

    private func waitForRoom() {
        isFull = true
        vacancy.await()
        // A client may have gone before `await()`.
        if hasRoom { return roomAgain() }
        // ``MemoryWatch`` logs it.
        if lacksMemory { return }
        limit.strike(.warning, ["limit": .stringConvertible(maximum)])
    }

    private var clientCount: Int { workers.reduce(0) { $0 + $1.load.count } }

    private func arrival(of socket: CInt, from source: Endpoint, at place: Endpoint, isKnown: Bool) -> Arrival {
        guard let senders = senders[place] else { return desk.arrival(of: socket, from: source, isKnown: isKnown) }
        // The connecting process is the load balancer.
        let isTrusted = source.address.map { sender in senders.contains { $0.contains(sender.ip.bytes) } } ?? false
        let peer = ClientPeer(nil, why: "it comes by way of a load balancer")
        return Arrival(from: source, peer: peer, header: isTrusted ? .awaited : .untrusted)
    }

    private func handOut(
        _ socket: consuming Descriptor, from source: Endpoint, at listener: ListeningSocket, isKnown: Bool
    ) {
        let number = choice.pick(of: workers.count) { number in
            let load = workers[number].load
            return (load.waitingCount, load.count)
        }
        var arrival = arrival(of: socket.raw, from: source, at: listener.wanted, isKnown: isKnown)
        arrival.isByDoor = listener.isDoor
        workers[number].handOver(socket, arrival)
        memory?.clientAccepted()
    }

    private static func fields(of error: SystemError) -> Logger.Metadata {
        guard error.code == EMFILE else { return ["cause": "\(error)"] }
        let cause =
            "\(error): this process may have \(Descriptor.limit) of them; raise LimitNOFILE (ulimit -n), "
            + "or lower limits.clients"
        return ["cause": "\(cause)"]
    }
}

/// Identifies clients when they are accepted. Belongs to the acceptor's thread.
struct ArrivalDesk {
    /// Nil: the kernel can't be asked.
    private let sockets: SocketTable?

    init() { sockets = try? SocketTable() }

    /// Whether clients of the listener can be identified.
    func knowsConnections(to listener: CInt) -> Bool { sockets?.knowsConnections(to: listener) ?? false }

    /// - Parameter isKnown: ``knowsConnections(to:)`` of its listener.
    func arrival(of socket: CInt, from source: Endpoint, isKnown: Bool) -> Arrival {
        guard let sockets else {
            return Arrival(
                from: source, peer: ClientPeer(nil, why: "the kernel can't be asked about its sockets (sock_diag)"))
        }
        let found: LocalSocket?
        let why: String
        switch source {
        case .unix:
            found = sockets.peer(ofUnix: socket)
            why = "the kernel doesn't say who connected"
        case .network(let address):
            found = isKnown ? sockets.peer(of: socket, from: address) : nil
            why = "its connection doesn't come over loopback, or it has closed it"
        }
        return Arrival(from: source, peer: ClientPeer(found, why: why))
    }
}
