import PinproxyEventLoop
import PinproxyRecords
import PinproxySession

/// A refusal that waits for its client to be found. Kept by the worker: the search may release its closure on another
/// thread.
struct PendingReport {
    let requester: Requester
    /// Ends the wait.
    let timer: Timer
    let report: (WorkerContext, Requester) -> Void

    /// - Parameter traits: nil: nothing more was found.
    func tell(_ worker: WorkerContext, _ traits: ClientTraits?) {
        report(worker, Requester(task: requester.task, client: requester.client, traits: traits ?? requester.traits))
    }
}

/// A worker's refusals that wait for their clients, and what it may search for them. Each waits for
/// ``patienceNanoseconds`` at most, so the searches of two seconds bound their number.
struct PendingReports {
    /// The client waits for its answer meanwhile.
    static let patienceNanoseconds: UInt64 = 250_000_000
    /// In a second, a quarter of them for one user. A search takes a while, and a client that is refused a thousand
    /// times is known by then.
    static let searchesPerSecond = 8

    private var reports: [UInt64: PendingReport] = [:]
    private var next: UInt64 = 0
    private var second: (began: MonotonicTime, searches: FairShare<UInt32>)?

    /// Whether one more refusal may wait for its client to be found.
    mutating func maySearch(for user: UInt32, at now: MonotonicTime) -> Bool {
        var current = second ?? (now, FairShare(places: Self.searchesPerSecond))
        if now - current.began >= 1_000_000_000 { current = (now, FairShare(places: Self.searchesPerSecond)) }
        defer { second = current }
        return current.searches.enter(user) == nil
    }

    /// - Parameter report: made for its place.
    mutating func keep(_ report: (UInt64) -> PendingReport) -> UInt64 {
        next += 1
        reports[next] = report(next)
        return next
    }

    mutating func take(_ place: UInt64) -> PendingReport? { reports.removeValue(forKey: place) }
}
