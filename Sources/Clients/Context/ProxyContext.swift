package import EventLoop
package import Logging
package import Records
import Security
package import Session
import TLS
package import Transport

/// What the workers share. All of it is immutable or guards itself.
package final class ProxyContext: Sendable {
    let sessions = UpstreamSessionCache()
    let probes = ProbeCache()
    package let names = ResolverCache()
    /// Told by the acceptor before the first client comes.
    let listeners: OwnListeners
    let loops = LoopDetection()
    package let slots = EntrySlots()
    let bodies: any BodyExecutor
    /// What they keep of bodies is drawn from it.
    let budget: BodyBudget
    let pressure: MemoryPressure
    let challenges = ChallengeMemory()
    let fetches = SharedFetches()
    let admissions = Admissions()
    let clientTLS: TLSClientContext
    let serverTLS: TLSServerContext
    let pins: PinWatch
    let rules: RuleLedger
    package let runs = RunRegister()
    let testHosts: TestHosts
    let peers: PeerInquiry
    package let logger: Logger
    let logOutput: LogOutput
    package let freeMemory: FreeMemory
    /// Idle upstream connections of one worker.
    let idleUpstreams: Int
    /// Sessions of the process that give numbers to tasks: each worker's, and the control socket's as the last.
    package let sessionCount: Int
    /// The wall clock in Unix seconds.
    let unixTime: @Sendable () -> Int64

    package init(
        pins: PinWatch, rules: RuleLedger, listeners: OwnListeners, logger: Logger,
        logOutput: LogOutput, freeMemory: FreeMemory, idleUpstreams: Int, sessionCount: Int,
        bodies: any BodyExecutor = ThreadExecutor(), budget: BodyBudget = BodyBudget(),
        pressure: MemoryPressure = MemoryPressure(), unixTime: @escaping @Sendable () -> Int64
    ) throws {
        peers = try PeerInquiry()
        self.bodies = bodies
        self.budget = budget
        self.pressure = pressure
        self.freeMemory = freeMemory
        self.idleUpstreams = idleUpstreams
        self.sessionCount = sessionCount
        self.unixTime = unixTime
        clientTLS = try TLSClientContext(options: .init(for: TrustRequirements()))
        serverTLS = try TLSServerContext()
        testHosts = try TestHosts(at: unixTime())
        self.pins = pins
        self.rules = rules
        self.listeners = listeners
        self.logger = logger
        self.logOutput = logOutput
    }
}
