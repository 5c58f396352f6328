/// The state of a decoder process. A value: each event yields an action for ``DecoderProcess``.
///
///     starting → working ⇄ idle
///         ↘         ↓       ↙
///               dying → gone
///
/// A body of a starting or working process gets its outcome once: by `finish`, `kill` or `bury`.
struct DecoderState: Hashable {
    enum Phase: Hashable, CaseIterable {
        case starting, working, idle
        /// It has been killed, and the cause reported.
        case dying
        /// It died on its own: the cause isn't known yet.
        case fallen
        case gone
    }

    enum Event: Hashable, CaseIterable {
        case given
        case ready
        case answered
        /// It sent anything else, or at another time.
        case nonsense
        case closed
        /// Its time is up.
        case late
        /// It is no longer needed.
        case dismissed
        case ended
    }

    enum Action: Hashable {
        case none
        case send
        case finish
        /// Kills it for that reason.
        case kill(Reason)
        /// Kills it; the exit status will give the cause.
        case await
        case bury(saysHow: Bool)
    }

    enum Reason: Hashable {
        case late, nonsense, dismissed
    }

    private(set) var phase = Phase.starting
    /// False once it was ready.
    private(set) var isNew = true

    mutating func received(_ event: Event) -> Action {
        switch (phase, event) {
        case (.gone, _): return .none
        case (_, .ended):
            let saysHow = phase != .dying
            phase = .gone
            return .bury(saysHow: saysHow)
        case (.dying, _), (.fallen, _): return .none
        case (.starting, .ready), (.idle, .given):
            phase = .working
            isNew = false
            return .send
        case (.working, .answered):
            phase = .idle
            return .finish
        case (_, .closed):
            phase = .fallen
            return .await
        case (_, .late): return kill(.late)
        case (_, .dismissed): return kill(.dismissed)
        case (.starting, _), (.working, _), (.idle, _): return kill(.nonsense)
        }
    }

    private mutating func kill(_ reason: Reason) -> Action {
        phase = .dying
        return .kill(reason)
    }
}
