import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// A thread with its loop, clients and their upstream connections. Nothing is shared, so that requests take no lock.
final class Worker {
    /// After a peak, until its memory is freed: another may follow.
    private static let quietNanoseconds: UInt64 = 5_000_000_000

    let context: WorkerContext
    private let load: WorkerLoad

    private var clients: [ObjectIdentifier: ClientConnection] = [:]
    private var fronts: [ObjectIdentifier: TLSFront] = [:]
    private var headers: [ObjectIdentifier: HeaderReader] = [:]
    private var peak = PeakWatch()
    private lazy var quiet = Deadline(loop: context.loop, owner: self) { $0.giveMemoryBack() }
    private lazy var descriptors = Shortage(
        "descriptors.lack", .idleConnectionsClosed, loop: context.loop, logger: context.shared.logger)
    private var nextSearch = MonotonicTime(nanoseconds: 0)
    private var stopped: (() -> Void)?
    /// Shared by all clients, to save an allocation for each.
    private lazy var clientEnded: (ClientConnection) -> Void = { [weak self] in self?.remove($0) }

    /// - Parameter number: of this worker, from 0.
    init(
        loop: EventLoop, number: Int, shared: ProxyContext, configuration: ActiveConfiguration, load: WorkerLoad
    ) throws {
        context = try WorkerContext(loop: loop, number: number, shared: shared, configuration: configuration)
        self.load = load
        context.session.pool.relief = { [weak self] in self?.makeRoom() ?? 0 }
    }

    // MARK: Clients

    /// Takes over an accepted socket, after ``WorkerLoad/handedOver()``.
    func adopt(_ socket: consuming Descriptor, _ arrival: Arrival) {
        load.adopted()
        guard !context.isDraining else { return load.ended() }
        switch arrival.header {
        case .none: begin(socket, arrival)
        case .awaited: readHeader(socket, arrival)
        case .untrusted:
            log("\(arrival.source) is not a trusted sender of PROXY headers (proxy_protocol)", of: arrival)
            load.ended()
        }
    }

    private func readHeader(_ socket: consuming Descriptor, _ arrival: Arrival) {
        let reader = HeaderReader(loop: context.loop, socket: socket) { [weak self] reader, result in
            guard let self else { return }
            headers[ObjectIdentifier(reader)] = nil
            switch result {
            case .success(let header): begin(reader.take(), arrival.behind(header))
            case .failure(let failure):
                log(failure.cause, of: arrival)
                load.ended()
                finishDraining()
            }
        }
        headers[ObjectIdentifier(reader)] = reader
        reader.start()
    }

    private func begin(_ socket: consuming Descriptor, _ arrival: Arrival) {
        if let frontTLS = context.configuration.frontTLS {
            let front = TLSFront(
                loop: context.loop, socket: socket, slabs: context.session.slabs,
                idleNanoseconds: context.serverSettings.idleNanoseconds
            ) { [weak self] front, inside, stream, aborted in
                self?.serve(inside, arrival, behind: front, on: stream, aborted) ?? false
            } noticed: { [weak self] notice, front in
                self?.context.report(notice, by: arrival.source, arrival.peer.traits, requests: front.streams ?? 0)
            } ended: { [weak self] front, failure in
                guard let self else { return }
                if let failure { log(failure, of: arrival) }
                fronts[ObjectIdentifier(front)] = nil
                load.ended()
                finishDraining()
            }
            fronts[ObjectIdentifier(front)] = front
            front.start(frontTLS, within: context.snapshot.timeouts.tlsHandshake.nanoseconds)
        } else {
            serve(socket, arrival)
        }
    }

    /// - Parameter front: terminates the client's TLS, and is counted for the first client behind it.
    /// - Returns: false: there are too many.
    private func serve(
        _ socket: consuming Descriptor, _ arrival: Arrival, behind front: TLSFront, on carrier: Int32?,
        _ aborted: @escaping () -> Void
    ) -> Bool {
        let isCounted = !front.isFirst
        if isCounted {
            guard load.count < context.snapshot.limits.clients, !context.isDraining else { return false }
            load.handedOver()
            load.adopted()
        }
        let stream = ByteStream(loop: context.loop, descriptor: socket)
        stream.aborted = aborted
        serve(stream, arrival, behind: front, on: carrier, isCounted: isCounted)
        return true
    }

    private func serve(_ socket: consuming Descriptor, _ arrival: Arrival) {
        serve(ByteStream(loop: context.loop, descriptor: socket), arrival, isCounted: true)
    }

    private func serve(
        _ stream: ByteStream, _ arrival: Arrival, behind front: TLSFront? = nil, on carrier: Int32? = nil,
        isCounted: Bool
    ) {
        let client = ClientConnection(
            worker: context, stream: stream, arrival: arrival, isCounted: isCounted, on: carrier,
            url: arrival.source.path.map { "unix:\($0)" } ?? front.flatMap { $0.localAddress.map { "https://\($0)" } },
            ended: clientEnded)
        clients[ObjectIdentifier(client)] = client
        _ = peak.changed(to: connections)
        client.start()
    }

    /// For a connection that ended before any request.
    private func log(_ failure: String, of arrival: Arrival) {
        var record = TaskRecord()
        record.began(number: context.session.takeNumber(), at: context.loop.now)
        record.client = arrival.source
        record.traits = arrival.peer.traits
        record.failed(failure)
        context.session.complete(&record)
    }

    private func remove(_ client: ClientConnection) {
        guard clients.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
        if client.isCounted { load.ended() }
        if peak.changed(to: connections), !quiet.isSet { quiet.set(afterNanoseconds: Self.quietNanoseconds) }
        finishDraining()
    }

    /// Called from time to time, so that requests pay nothing for it.
    func tellLoad() { load.tell(requests: context.session.taskCount) }

    /// Counted on demand, so that requests pay nothing for it.
    var openConnections: OpenConnections {
        var open = OpenConnections()
        for client in clients.values { open.add(client) }
        for streams in fronts.values.compactMap(\.streams) { open.addFront(streams: streams) }
        return open
    }

    var everyClient: some Collection<ClientConnection> { clients.values }

    // MARK: Descriptors

    /// Idle clients to close at a time, and their least idle time: a recent one may be sending its next request.
    private static let givenUp = 32
    private static let leastIdleNanoseconds: UInt64 = 1_000_000_000
    /// Between two unsuccessful searches.
    private static let searchNanoseconds: UInt64 = 100_000_000

    /// No descriptor is left: closes idle upstream connections, or else idle clients, the longest idle first.
    /// - Returns: how many were closed.
    func makeRoom() -> Int {
        descriptors.strike(.warning, ["limit": .stringConvertible(Descriptor.limit)])
        var closed = context.session.pool.giveUp()
        if closed == 0 { closed = giveUpClients() }
        descriptors.met(closed)
        return closed
    }

    /// The memory is short: closes some idle connections, the longest idle first.
    /// - Returns: how many were closed.
    func shed() -> Int { context.session.pool.giveUp() + giveUpClients() }

    private func giveUpClients() -> Int {
        let now = context.loop.now
        guard now >= nextSearch else { return 0 }
        let idle = clients.values.filter { $0.hasBeenIdle(nanoseconds: Self.leastIdleNanoseconds, at: now) }
        for client in idle.sorted(by: { $0.lastUsed < $1.lastUsed }).prefix(Self.givenUp) { client.close() }
        if idle.isEmpty { nextSearch = now.advanced(byNanoseconds: Self.searchNanoseconds) }
        return min(idle.count, Self.givenUp)
    }

    // MARK: Memory

    private var connections: Int { clients.count + context.session.pool.idleCount }

    private func giveMemoryBack() {
        guard peak.changed(to: connections) else { return }
        clients = Dictionary(uniqueKeysWithValues: clients.lazy.map { ($0.key, $0.value) })
        context.session.slabs.releaseFree()
        context.shared.freeMemory.giveBack()
        peak.gaveBack(at: connections)
        // Idle upstream connections outlast a peak's clients, and close without notice.
        if context.session.pool.idleCount >= PeakWatch.smallest {
            quiet.set(afterNanoseconds: context.snapshot.timeouts.idleUpstream.nanoseconds)
        }
    }

    // MARK: The configuration

    /// Applies to the next exchange; connections and TLS sessions that it rules out are closed.
    func replace(with fresh: ActiveConfiguration) {
        context.replace(with: fresh)
        for client in clients.values {
            client.dropRetired()
            if fresh.snapshot.log.access { client.askPeer() }
        }
        reviewRelays(Array(clients.values)[...])
    }

    /// A few at a time, for fairness: each may verify a chain.
    private func reviewRelays(_ clients: ArraySlice<ClientConnection>) {
        for client in clients.prefix(64) { client.reviewRelay() }
        let rest = clients.dropFirst(64)
        guard !rest.isEmpty else { return }
        context.loop.afterThisTurn { [weak self] in self?.reviewRelays(rest) }
    }

    /// - Parameter isAnother: idle connections and names of the earlier network are dropped.
    func replaceOutlook(_ outlook: NetworkOutlook, isAnother: Bool) {
        do throws(ResolutionError) {
            try context.session.replaceOutlook(outlook, isAnother: isAnother)
        } catch {
            context.log(.error, "resolver.reload", ["cause": "\(error)"])
        }
        guard isAnother else { return }
        for client in clients.values { client.dropRetired() }
    }

    func reloadResolver() { context.reloadResolver() }

    // MARK: The end

    /// Finishes what is in flight, closes what is idle, and calls `stopped` after the last client.
    /// - Parameter quietTunnels: how long nothing may move in a tunnel.
    func drain(quietTunnels: Duration, stopped: @escaping () -> Void) {
        context.drain(quietTunnels: quietTunnels)
        self.stopped = stopped
        for client in Array(clients.values) { client.drain() }
        // PROXY headers have their own deadline.
        for front in Array(fronts.values) { front.drain(within: WorkerContext.lastChanceNanoseconds) }
        finishDraining()
    }

    func stopClients() {
        for client in Array(clients.values) { client.stop() }
        for front in Array(fronts.values) { front.stop() }
        for reader in Array(headers.values) { reader.stop() }
        finishDraining()
    }

    private func finishDraining() {
        guard context.isDraining, clients.isEmpty, fronts.isEmpty, headers.isEmpty, let stopped else { return }
        self.stopped = nil
        context.flushLog()
        stopped()
    }
}

typealias TaskOrder = ClientConnection.TaskOrder

/// The tasks of a worker's clients, found by a search, so that requests pay nothing for it.
extension Worker {
    var tasks: [TaskSummary] {
        everyClient.flatMap { client in
            let tasks = client.tasks
            // Without a log this is the first inquiry: the next look has the answer.
            if !tasks.isEmpty { client.askPeer() }
            return tasks
        }
    }

    func task(_ number: UInt64) -> TaskSummary? {
        for client in everyClient {
            if let task = client.task(number) { return task }
        }
        return nil
    }

    /// - Returns: the task afterwards; nil: not in flight.
    func obey(_ order: TaskOrder, task number: UInt64, because cause: String) -> TaskSummary? {
        for client in everyClient {
            if let task = client.obey(order, task: number, because: cause) { return task }
        }
        return nil
    }
}
