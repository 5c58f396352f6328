package import Logging
package import PinproxyEventLoop
package import PinproxyRecords
import PinproxySecurity
package import PinproxySession
import PinproxyTLS
package import PinproxyTransport
import Synchronization

/// State that the workers share: immutable or thread-safe.
package final class ProxyContext: Sendable {
    let sessions = UpstreamSessionCache()
    let probes = ProbeCache()
    package let names = ResolverCache()
    /// Set before the first client is accepted.
    let listeners: OwnListeners
    let loops = LoopDetection()
    package let slots = EntrySlots()
    let bodies: any BodyExecutor
    /// For the bodies that workers keep.
    let budget: BodyBudget
    let pressure: MemoryPressure
    let challenges = ChallengeMemory()
    let fetches = SharedFetches()
    let admissions = Admissions()
    /// Shared by all workers.
    package let cache: ResponseCache
    let clientTLS: TLSClientContext
    let interceptedTLS: InterceptedTLS
    let pins: PinWatch
    let rules: RuleLedger
    package let runs = RunRegister()
    let trust = TrustWatch()
    let testHosts: TestHosts
    let peers: PeerInquiry
    /// Whether the signer fails, which is logged once.
    let isSignerOut = Atomic(false)
    package let logger: Logger
    let logOutput: LogOutput
    package let freeMemory: FreeMemory
    /// The limit for each worker.
    let idleUpstreams: Int
    /// Sessions that number tasks: each worker's, and last the control socket's.
    package let sessionCount: Int
    let unixTime: @Sendable () -> Int64

    package init(
        pins: PinWatch, rules: RuleLedger, listeners: OwnListeners, logger: Logger,
        logOutput: LogOutput, freeMemory: FreeMemory, idleUpstreams: Int, sessionCount: Int,
        bodies: any BodyExecutor = ThreadExecutor(), cache: ResponseCache = ResponseCache(),
        budget: BodyBudget = BodyBudget(),
        pressure: MemoryPressure = MemoryPressure(), unixTime: @escaping @Sendable () -> Int64
    ) throws {
        peers = try PeerInquiry()
        self.bodies = bodies
        self.cache = cache
        self.budget = budget
        self.pressure = pressure
        self.freeMemory = freeMemory
        self.idleUpstreams = idleUpstreams
        self.sessionCount = sessionCount
        self.unixTime = unixTime
        clientTLS = try TLSClientContext(options: .init(for: TrustRequirements()))
        interceptedTLS = InterceptedTLS()
        testHosts = try TestHosts(at: unixTime())
        self.pins = pins
        self.rules = rules
        self.listeners = listeners
        self.logger = logger
        self.logOutput = logOutput
    }
}
