/// What a process that decodes is about, as the proxy knows it. A value: it is told what happened and says what is to
/// be done. ``DecoderProcess`` does it.
///
///     starting → working ⇄ idle
///         ↘         ↓       ↙
///               dying → gone
///
/// It has a body to work on while it is starting or working, and that is told the outcome once: by `finish`, by a
/// `kill` with a reason, or, where how it ended is the reason, by `bury`.
struct DecoderState: Hashable {
    enum Phase: Hashable, CaseIterable {
        case starting, working, idle
        /// It is killed, and what there was to say has been said.
        case dying
        /// It ended by itself: why isn't known yet.
        case fallen
        case gone
    }

    enum Event: Hashable, CaseIterable {
        /// It was given a body.
        case given
        /// It said that it is ready.
        case ready
        /// It answered.
        case answered
        /// It said anything else, or at another time.
        case nonsense
        /// It closed its end of the socket.
        case closed
        /// Its time is over.
        case late
        /// It isn't needed any more.
        case dismissed
        /// The kernel says that it has ended.
        case ended
    }

    enum Action: Hashable {
        case none
        /// Sends it the body.
        case send
        /// Hands the answer on.
        case finish
        /// Ends it, for that reason.
        case kill(Reason)
        /// Ends it; why it ends by itself is said later.
        case await
        /// Forgets it.
        case bury(saysHow: Bool)
    }

    enum Reason: Hashable {
        case late, nonsense, dismissed
    }

    private(set) var phase = Phase.starting
    /// It never got ready.
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
