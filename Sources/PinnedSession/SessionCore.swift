import Glibc
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxySession
import PinproxyTLS
import PinproxyTransport

// One idea with ProgramDownstream.swift: a session keeps its tasks' downstreams, which run in it.

/// The part of a ``SessionManager`` on its thread: connections and tasks.
final class SessionCore {
    let loop: EventLoop
    let session: LoopSession
    let routing: SessionRouting
    let hooks: SessionHooks
    let cookies: CookieStore?
    private let resolver: Resolver
    private var inFlight: [UInt64: ProgramDownstream] = [:]
    /// Ended in this round of the loop: programs learn of all at once, so that their threads are woken once.
    private var ended: [(task: SessionTask, outcome: SessionTask.Outcome)] = []
    private let round: AfterRound
    private var isEnding = false
    private var hasEnded = false
    private var waiting: [() -> Void] = []

    init(
        loop: EventLoop, routing: SessionRouting, hooks: SessionHooks, cookies: CookieStore?, cache: ResponseCache
    ) throws {
        self.loop = loop
        self.cookies = cookies
        self.routing = routing
        self.hooks = hooks
        resolver = try Resolver(loop: loop, cache: ResolverCache())
        let slabs = SlabPool(budget: BodyBudget(limit: routing.longestBodies))
        let pool = UpstreamPool()
        let connector = UpstreamConnector(
            loop: loop, resolver: resolver, slabs: slabs, pool: pool, sessions: UpstreamSessionCache(),
            tls: try TLSClientContext(options: .init(for: TrustRequirements())), unixTime: { Int64(time(nil)) })
        let records = Records()
        var told = TaskHooks()
        told.metricsCollected = { record in records.core?.inFlight[record.number]?.collect(record) }
        session = LoopSession(
            loop: loop, slabs: slabs, pool: pool, connector: connector, hooks: told, cache: cache)
        round = AfterRound(loop: loop)
        round.bind(to: self) { $0.roundEnded() }
        records.core = self
    }

    /// Weak, since the loop's session keeps the hooks.
    private final class Records {
        weak var core: SessionCore?
    }

    // MARK: Tasks

    func begin(_ task: SessionTask) {
        guard !isEnding else { return task.complete(.failure(.invalidated)) }
        let downstream = ProgramDownstream(task, of: self)
        inFlight[task.id] = downstream
        hooks.resumed?(task)
        downstream.begin(task.request)
    }

    func suspend(_ task: SessionTask) {
        guard let downstream = inFlight[task.id] else { return }
        hooks.suspended?(task)
        downstream.suspend()
    }

    func resume(_ task: SessionTask) {
        guard let downstream = inFlight[task.id] else { return }
        hooks.resumed?(task)
        downstream.resume()
    }

    func cancel(_ task: SessionTask) { inFlight[task.id]?.fail(.cancelled) }

    /// Called once for each task that began, as its last call.
    func ended(_ task: SessionTask, metrics: TaskMetrics, _ outcome: SessionTask.Outcome) {
        if let completed = hooks.completed {
            var error: SessionError?
            if case .failure(let failure) = outcome { error = failure }
            completed(task, metrics, error)
        }
        ended.append((task, outcome))
        round.schedule()
    }

    private func roundEnded() {
        let ended = self.ended
        self.ended.removeAll(keepingCapacity: true)
        for (task, outcome) in ended {
            inFlight[task.id] = nil
            task.complete(outcome)
        }
        if isEnding, inFlight.isEmpty { stop() }
    }

    func destination(
        of url: RequestURL, within timeout: Duration?
    ) throws(SessionError) -> (Destination, ExchangeRules) {
        try routing.destination(of: url, within: timeout, over: session.pool)
    }

    // MARK: The end

    func finishAndInvalidate() {
        isEnding = true
        session.isDraining = true
        if inFlight.isEmpty { stop() }
    }

    func invalidate() {
        isEnding = true
        session.isDraining = true
        for downstream in Array(inFlight.values) { downstream.fail(.invalidated) }
        if inFlight.isEmpty { stop() }
    }

    /// Calls `ended` once, after the last task.
    func finishAndInvalidate(_ ended: @escaping () -> Void) {
        guard !hasEnded else { return ended() }
        waiting.append(ended)
        finishAndInvalidate()
    }

    private func stop() {
        guard !hasEnded else { return }
        hasEnded = true
        session.pool.close()
        hooks.invalidated?()
        loop.stop()
        for ended in waiting { ended() }
        waiting = []
    }
}

extension LoopThread: TaskRunner where Object == SessionCore {
    func perform(_ order: TaskOrder, for task: SessionTask) -> Bool {
        perform { core in
            switch order {
            case .begin: core.begin(task)
            case .suspend: core.suspend(task)
            case .resume: core.resume(task)
            case .cancel: core.cancel(task)
            }
        }
    }
}
