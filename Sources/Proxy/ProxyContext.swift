import EventLoop
import Logging
import Security
import Session
import Synchronization
import TLS

/// What the workers share. All of it is immutable or guards itself.
final class ProxyContext: Sendable {
    let authority: LocalAuthority
    let leaves: LeafCache
    let sessions = UpstreamSessionCache()
    let probes = ProbeCache()
    let names = ResolverCache()
    /// Told by the acceptor before the first client comes.
    let listeners: OwnListeners
    let loops = LoopDetection()
    let clientTLS: TLSClientContext
    let serverTLS: TLSServerContext
    let pins: PinWatch
    let logger: Logger
    let logOutput: LogOutput
    let freeMemory: FreeMemory
    /// Idle upstream connections of one worker.
    let idleUpstreams: Int
    /// The wall clock in Unix seconds.
    let unixTime: @Sendable () -> Int64

    init(
        authority: LocalAuthority, leafLifetime: Duration, pins: PinWatch, listeners: OwnListeners, logger: Logger,
        logOutput: LogOutput, freeMemory: FreeMemory, idleUpstreams: Int,
        unixTime: @escaping @Sendable () -> Int64
    ) throws {
        self.authority = authority
        self.freeMemory = freeMemory
        self.idleUpstreams = idleUpstreams
        self.unixTime = unixTime
        leaves = LeafCache(authority: authority, lifetime: leafLifetime.components.seconds)
        clientTLS = try TLSClientContext(options: .init(for: TrustRequirements()))
        serverTLS = try TLSServerContext()
        self.pins = pins
        self.listeners = listeners
        self.logger = logger
        self.logOutput = logOutput
    }
}

/// How many clients a worker has, as seen by the one who hands them out.
final class WorkerLoad: Sendable {
    private let clients = Atomic<Int>(0)
    /// Called on the worker's thread when a client has gone.
    private let onEnd: @Sendable () -> Void

    init(onEnd: @escaping @Sendable () -> Void) {
        self.onEnd = onEnd
    }

    var count: Int { clients.load(ordering: .relaxed) }
    func began() { clients.add(1, ordering: .relaxed) }
    func ended() {
        clients.subtract(1, ordering: .relaxed)
        onEnd()
    }
}
