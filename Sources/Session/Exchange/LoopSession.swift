package import PinproxyEventLoop
package import PinproxyTransport

/// One loop's part of the session manager: its connections, task numbers and hooks, used without locks.
package final class LoopSession {
    package let loop: EventLoop
    package let slabs: SlabPool
    package let pool: UpstreamPool
    package let connector: UpstreamConnector
    package let hooks: TaskHooks
    package let bodies: any BodyExecutor
    let challenges: ChallengeMemory
    let fetches: SharedFetches
    let admissions: Admissions
    package let cache: ResponseCache
    package var resumptionPauses = ResumptionPauses()
    /// The proxy stops: connections are not kept.
    package var isDraining = false

    private var nextNumber: UInt64
    private let numberStride: UInt64

    /// - Parameters:
    ///   - bodies, challenges, fetches, admissions, cache: shared by the workers.
    ///   - index: of this session among `count`, from 0, so that numbers are unique without a lock.
    package init(
        loop: EventLoop, slabs: SlabPool, pool: UpstreamPool, connector: UpstreamConnector,
        hooks: TaskHooks = TaskHooks(),
        bodies: any BodyExecutor = ThreadExecutor(), challenges: ChallengeMemory = ChallengeMemory(),
        fetches: SharedFetches = SharedFetches(), admissions: Admissions = Admissions(),
        cache: ResponseCache = ResponseCache(), index: Int = 0, of count: Int = 1
    ) {
        self.loop = loop
        self.slabs = slabs
        self.pool = pool
        self.connector = connector
        self.hooks = hooks
        self.bodies = bodies
        self.challenges = challenges
        self.fetches = fetches
        self.admissions = admissions
        self.cache = cache
        nextNumber = UInt64(index + 1)
        numberStride = UInt64(count)
    }

    /// Adopts the network's state.
    /// - Parameter isAnother: forgets names and connections. TLS sessions stay valid.
    /// - Throws: if the name servers can't be read; the known ones stay.
    package func replaceOutlook(_ outlook: NetworkOutlook, isAnother: Bool) throws(ResolutionError) {
        connector.network.outlook = outlook
        guard isAnother else { return }
        pool.changeNetwork()
        try connector.resolver.reload()
    }

    package func unixTime() -> Int64 { connector.unixTime() }

    package var now: MonotonicTime { loop.now }

    /// Rereads the system's name servers, if it can.
    package func forgetNames() { try? connector.resolver.reload() }

    /// Resolves a name as exchanges do. `completion` is called once, on the loop, perhaps before this returns.
    package func resolve(_ name: String, completion: @escaping (Result<[IPAddress], ResolutionError>) -> Void) {
        connector.resolver.resolve(name, completion: completion)
    }

    /// The session, of `count`, that numbered a task.
    package static func index(ofTask number: UInt64, of count: Int) -> Int? {
        number > 0 ? Int((number - 1) % UInt64(count)) : nil
    }

    /// A task number unique for the life of the process.
    package func takeNumber() -> UInt64 {
        defer { nextNumber += numberStride }
        return nextNumber
    }

    package var taskCount: Int { Int((nextNumber - 1) / numberStride) }

    /// Announces a task, once.
    package func begin(_ record: inout TaskRecord) {
        guard record.announce() else { return }
        hooks.began?(record)
    }

    /// Completes a task, once, and releases its record's objects.
    package func complete(_ record: inout TaskRecord) {
        begin(&record)
        record.completed(at: loop.now)
        hooks.metricsCollected?(record)
        hooks.completed?(record)
        record.release()
    }
}
