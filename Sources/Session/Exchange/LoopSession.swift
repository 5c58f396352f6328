package import EventLoop
package import Transport

/// One loop's part of the session manager: where the loop's exchanges get their connections and their numbers, and
/// who hears of them.
///
/// Nothing of it is shared with other loops: no exchange takes a lock.
package final class LoopSession {
    package let loop: EventLoop
    package let slabs: SlabPool
    package let pool: UpstreamPool
    package let connector: UpstreamConnector
    /// Who hears of tasks.
    package let hooks: TaskHooks
    /// Who judges and converts bodies.
    package let bodies: any BodyExecutor
    /// How origins are told who asks.
    let challenges: ChallengeMemory
    /// Requests that others may share.
    let fetches: SharedFetches
    /// Of hosts that want few at a time.
    let admissions: Admissions
    package var resumptionPauses = ResumptionPauses()
    /// The proxy stops: no connection is kept for another exchange.
    package var isDraining = false

    private var nextNumber: UInt64
    private let numberStride: UInt64

    /// - Parameters:
    ///   - bodies: shared by the workers.
    ///   - challenges, fetches, admissions: shared by the workers.
    ///   - index: of this session among `count`, from 0, so that numbers are unique without a lock.
    package init(
        loop: EventLoop, slabs: SlabPool, pool: UpstreamPool, connector: UpstreamConnector, hooks: TaskHooks = TaskHooks(),
        bodies: any BodyExecutor = ThreadExecutor(), challenges: ChallengeMemory = ChallengeMemory(),
        fetches: SharedFetches = SharedFetches(), admissions: Admissions = Admissions(), index: Int = 0, of count: Int = 1
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
        nextNumber = UInt64(index + 1)
        numberStride = UInt64(count)
    }

    /// Takes note of what the system says of the network.
    /// - Parameter isAnother: names are forgotten, and connections made before are not used again. TLS sessions are, since what was verified
    ///   doesn't depend on the way.
    /// - Throws: if the system's name servers can't be read again; then those known before are asked.
    package func replaceOutlook(_ outlook: NetworkOutlook, isAnother: Bool) throws(ResolutionError) {
        connector.network.outlook = outlook
        guard isAnother else { return }
        pool.changeNetwork()
        try connector.resolver.reload()
    }

    package func unixTime() -> Int64 { connector.unixTime() }

    /// ``EventLoop/now`` of its loop.
    package var now: MonotonicTime { loop.now }

    /// Reads the system's name servers anew, where that can be done.
    package func forgetNames() { try? connector.resolver.reload() }

    /// What the resolver of exchanges says of a name.
    /// - Parameter completion: called once, on the loop, perhaps before this returns.
    package func resolve(_ name: String, completion: @escaping (Result<[IPAddress], ResolutionError>) -> Void) {
        connector.resolver.resolve(name, completion: completion)
    }

    /// Which session of `count` gave a task its number; nil if none did.
    package static func index(ofTask number: UInt64, of count: Int) -> Int? {
        number > 0 ? Int((number - 1) % UInt64(count)) : nil
    }

    /// The number of a new task: unique for the life of the process.
    package func takeNumber() -> UInt64 {
        defer { nextNumber += numberStride }
        return nextNumber
    }

    /// Tasks that were given a number by this session.
    package var taskCount: Int { Int((nextNumber - 1) / numberStride) }

    /// A task is known well enough to be told of: told once.
    package func begin(_ record: inout TaskRecord) {
        guard record.announce() else { return }
        hooks.began?(record)
    }

    /// A task is over: told once, and what its record held alive is let go.
    package func complete(_ record: inout TaskRecord) {
        begin(&record)
        record.completed(at: loop.now)
        hooks.metricsCollected?(record)
        hooks.completed?(record)
        record.release()
    }
}
