import PinproxyEventLoop

/// Passes a status that has held for 200 ms, or an unsettled one after 2 s; the first at once. A more precise reason
/// passes at once, except isolation, for which requests are refused.
struct StatusFilter {
    enum Outcome: Equatable {
        case same
        /// The same status, with a better reason.
        case refined
        case changed(from: ReachabilityStatus)
        /// Not settled; to be observed again at that time.
        case unsettled(until: MonotonicTime)
    }

    static let settlingNanoseconds: UInt64 = 200_000_000
    static let longestNanoseconds: UInt64 = 2_000_000_000

    /// The last reported status.
    private(set) var current = ReachabilityStatus.unknown
    private var candidate: (status: ReachabilityStatus, since: MonotonicTime)?
    private var unsettledSince: MonotonicTime?

    mutating func observed(_ status: ReachabilityStatus, at now: MonotonicTime) -> Outcome {
        if current.mayTurn(into: status) {
            candidate = nil
            unsettledSince = nil
            guard status != current else { return .same }
            current = status
            return .refined
        }
        let began = unsettledSince ?? now
        unsettledSince = began
        if candidate.map({ !$0.status.mayTurn(into: status) }) ?? true { candidate = (status, now) }
        let since = candidate?.since ?? now
        let settled = min(
            since.advanced(byNanoseconds: Self.settlingNanoseconds),
            began.advanced(byNanoseconds: Self.longestNanoseconds))
        guard current == .unknown || settled <= now else { return .unsettled(until: settled) }
        defer { self = StatusFilter(current: status) }
        return current.covers(status) ? .refined : .changed(from: current)
    }

    init(current: ReachabilityStatus = .unknown) {
        self.current = current
    }
}

extension ReachabilityStatus {
    /// Whether `next` passes at once after this one.
    fileprivate func mayTurn(into next: ReachabilityStatus) -> Bool {
        covers(next) && (isIsolation || !next.isIsolation)
    }

    private var isIsolation: Bool { if case .notReachable(let reason) = self { reason.isIsolation } else { false } }
}
