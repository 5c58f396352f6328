import Testing

@testable import Session

/// What must hold of an exchange in whatever order things happen to it, held against every short sequence of
/// events and long random ones. No socket, no clock.
@Suite struct ExchangeStateTests {
    typealias Event = ExchangeState.Event
    typealias Action = ExchangeState.Action

    /// Few, so that all that can happen can be gone through.
    static let limits = RetryRule.Limits(redirects: 1, challenges: 1, breaks: 2, unprocessed: 1)

    /// Everything that can happen, each flag in both ways.
    static let alphabet: [Event] = [
        .requestArrived(expectsContinue: false, leased: false, limits: limits),
        .requestArrived(expectsContinue: true, leased: true, limits: limits),
        .upstreamReady(reused: false), .upstreamReady(reused: true), .upstreamFailed(isFinal: false),
        .upstreamFailed(isFinal: true), .requestPaused, .requestStalled,
        .requestResumed, .requestSent, .requestRejected, .requestMalformed, .responseBegan,
        .head(.interim(isContinue: true)), .head(.interim(isContinue: false)), .head(.final),
        .head(.upgrade(isWanted: true)), .head(.upgrade(isWanted: false)), .head(.malformed), .head(.tooLarge),
        .notShared(resendable: true), .notShared(resendable: false), .head(.askAgain(.redirect)),
        .head(.askAgain(.challenge)), .head(.rest), .head(.notNow), .head(.another),
        .responseBroke(begun: true, resumption: .possible(progressed: true)),
        .responseBroke(begun: true, resumption: .possible(progressed: false)),
        .head(.held), .head(.unacceptable), .judged(isAccepted: true), .judged(isAccepted: false),
        .responseMoved(isBlocked: false), .responseMoved(isBlocked: true), .responseEnded, .responseBroke(begun: true),
        .responseBroke(begun: false),
        .responseBroke(begun: true, isBlocked: true),
        .upstreamEnded(.staleConnection, resendable: true), .upstreamEnded(.staleConnection, resendable: false),
        .upstreamEnded(.unprocessed, resendable: true), .upstreamEnded(.unprocessed, resendable: false),
        .upstreamEnded(.ownConnection, resendable: true), .downstreamGone, .deadline, .suspend,
        .resume, .cancel(isTold: true), .cancel(isTold: false),
    ]

    /// Follows an exchange as a strict observer, who knows only events and actions. What it remembers is finite, so
    /// that all that can ever happen can be gone through.
    struct Observer: Hashable {
        private(set) var state = ExchangeState()
        private var isOpen = false
        /// Connections since the request was last put in other words.
        private var connections = 0
        private var sends = 0
        private var redirects = 0
        private var challenges = 0
        private var leftShared = 0
        /// Tries that the origin did nothing for, since the last redirect.
        private var unprocessed = 0
        private var ownConnections = 0
        /// Connections for the rest of a response, one after another that brought nothing.
        private var continuations = 0
        /// The response broke off, and the rest of it is asked for.
        private var isBroken = false
        private var hasForwarded = false
        /// A response is kept that nobody has accepted yet.
        private var isHeld = false
        private var isWhole = false
        private var isAccepted = false
        private var isSuspended = false
        private var answered = false
        private var reused = false

        /// - Returns: what must not be.
        mutating func take(_ event: Event) -> String? {
            let before = state
            let action = state.received(event)
            begin(event, before)
            let problem = problem(with: action, after: event, before) ?? problemOfTheState()
            return problem.map { "\($0) after \(event), which gave \(action)" }
        }

        private mutating func begin(_ event: Event, _ before: ExchangeState) {
            switch event {
            case .requestArrived where !before.isUnderWay:
                self = Observer(state: state, isOpen: true)
            case .responseBegan where before.isUnderWay: answered = true
            case .judged(true) where before.phase == .holding || before.phase == .judging:
                isAccepted = true
                // It goes on with the rest when it is resumed.
                if before.isSuspended { hasForwarded = true }
            case .upstreamReady(let again) where before.phase == .connecting:
                reused = again
                answered = false
            case .head(.askAgain(let rule)) where before.phase == .awaiting && !before.asksForRest && state.isUnderWay:
                connections = 0
                // Interim responses at most.
                hasForwarded = false
                if rule == .redirect {
                    (redirects, challenges, unprocessed) = (redirects + 1, 0, 0)
                } else {
                    challenges += 1
                }
            case .upstreamEnded(let rule, _)
            where rule != .staleConnection && before.phase == .awaiting && !before.asksForRest && state.isUnderWay:
                connections = 0
                if rule == .unprocessed { unprocessed += 1 } else { ownConnections += 1 }
            case .notShared where before.phase == .awaiting && !before.asksForRest && state.isUnderWay:
                connections = 0
                leftShared += 1
            case .head where before.phase == .awaiting: answered = true
            case .responseBroke(_, _, .possible(true)) where [.responding, .holding].contains(before.phase):
                continuations = 0
            default: break
            }
        }

        private mutating func problem(with action: Action, after event: Event, _ before: ExchangeState) -> String? {
            if !isOpen, action != .none { return "something was done without an exchange" }
            switch action {
            case .open, .askAgain:
                let fresh = action == .open(fresh: true)
                connections += 1
                if isBroken { return "the whole was asked for again" }
                if hasForwarded, before.phase != .awaiting { return "asked again after an answer" }
                if redirects > limits.redirects { return "too many redirects" }
                if challenges > limits.challenges { return "too many challenges" }
                if leftShared > 1 { return "more than one response that was to be shared" }
                if unprocessed > limits.unprocessed { return "too many tries that were not processed" }
                if ownConnections > 1 { return "a second connection of its own" }
                if case .upstreamEnded(_, let resendable) = event, answered || hasForwarded || !resendable {
                    return "sent again though it may have been processed"
                }
                if connections > 2 { return "a third connection" }
                if connections == 2 {
                    if !fresh { return "a retry on a connection that served before" }
                    if answered || hasForwarded { return "a retry though an answer had begun" }
                    if !reused { return "a retry though the connection was new" }
                }
            case .reopen:
                if !hasForwarded, !isHeld { return "the rest of nothing" }
                if isWhole { return "the rest of what was whole" }
                isBroken = true
                continuations += 1
                if continuations > limits.breaks { return "too many tries for the rest" }
            case .takeUp:
                if !isBroken || event != .head(.rest) { return "taken up out of turn" }
                isBroken = false
            case .send, .resend:
                sends = min(sends + 1, 2)
                if (action == .send) != (sends == 1) { return "sent \(sends) times" }
                if isSuspended, event != .resume { return "sent while suspended" }
                isSuspended = false
            case .forwardInterim, .forwardFinal, .forwardUpgrade:
                if sends == 0 { return "an answer to what was not asked" }
                if isBroken { return "a second head" }
                if isHeld { return "another answer beside the one that is held back" }
                hasForwarded = true
            case .hold:
                if sends == 0 || isHeld { return "held back out of turn" }
                isHeld = true
            case .judge:
                if !isHeld || isWhole { return "judged out of turn" }
                isWhole = true
            case .release:
                if !isHeld { return "released what was not held" }
                if event != .judged(isAccepted: true) { return "released unjudged" }
                hasForwarded = true
            case .finish, .becomeRelay:
                if !hasForwarded { return "finished without an answer" }
                if isBroken { return "finished without the rest" }
                if isHeld, !isAccepted { return "finished with an answer that nobody accepted" }
                isOpen = false
            case .refuse:
                let nothingPassed = event == .responseBroke(begun: false) && before.phase != .interim
                if [.interim, .responding, .switching].contains(before.phase), !nothingPassed {
                    return "refused within a response"
                }
                if isBroken, !isHeld || isAccepted { return "refused after a part of the response" }
                isOpen = false
            case .cut(let how):
                if how == .delivered, event == .downstreamGone || event == .responseBroke(begun: true, isBlocked: true)
                {
                    return "delivered to nobody"
                }
                if how == .delivered, !isBroken, !hasForwarded { return "delivered nothing" }
                isOpen = false
            case .pause: isSuspended = true
            case .goOn: isSuspended = false
            case .none, .wait, .stopReadingRequest, .awaitHead: break
            }
            return nil
        }

        private func problemOfTheState() -> String? {
            if state.isUnderWay != isOpen { return "an exchange that ended more or less than once" }
            if !state.isUnderWay || state.isSuspended {
                if state.patience != .unlimited { return "the clock runs" }
                if state.passesRequest { return "bytes pass" }
                if state.movesBody { return "a body is measured" }
            } else if state.phase != .connecting, state.phase != .judging, state.patience == .unlimited {
                return "nobody keeps the time"
            }
            if isOpen, state.isSuspended != isSuspended {
                return "suspended, and not suspended"
            }
            return nil
        }

        init() {}

        private init(state: ExchangeState, isOpen: Bool) {
            self.state = state
            self.isOpen = isOpen
            connections = 0
        }

        private var limits: (redirects: Int, challenges: Int, breaks: Int, unprocessed: Int) {
            let limits = ExchangeStateTests.limits
            return (Int(limits.redirects), Int(limits.challenges), Int(limits.breaks), Int(limits.unprocessed))
        }
    }

    /// Goes through every state that any sequence of events, of whatever length, leads to.
    @Test func everySequenceKeepsTheInvariants() {
        var known: Set<Observer> = [Observer()]
        var next = [Observer()]
        while let observer = next.popLast() {
            for event in Self.alphabet {
                var follower = observer
                if let problem = follower.take(event) {
                    Issue.record("\(problem); before it \(observer)")
                    return
                }
                if known.insert(follower).inserted { next.append(follower) }
            }
        }
        #expect(known.count > 100, "only \(known.count) states were reached")
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>) func longRandomSequencesKeepTheInvariants(seed: UInt64) {
        var random = SplitMix(state: seed)
        var observer = Observer()
        var trail: [Event] = []
        for _ in 0..<5_000 {
            let event = Self.alphabet[Int(random.next() % UInt64(Self.alphabet.count))]
            trail.append(event)
            if let problem = observer.take(event) {
                Issue.record("seed \(seed): \(problem); before it \(trail.suffix(12))")
                return
            }
        }
    }

    private struct SplitMix {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }
}
