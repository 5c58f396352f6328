import Testing

@testable import PinproxySession

/// Invariants of an exchange, in any order of events. No socket, no clock.
@Suite struct ExchangeStateTests {
    typealias Event = ExchangeState.Event
    typealias Action = ExchangeState.Action

    /// Small, so that every sequence of events can be visited.
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
        .upstreamEnded(.ownConnection, resendable: true), .upstreamEnded(.unconfirmed, resendable: true),
        .upstreamEnded(.unconfirmed, resendable: false), .downstreamGone, .deadline, .suspend,
        .resume, .cancel(isTold: true), .cancel(isTold: false),
    ]

    /// The parts of a state that observers look at.
    struct Moment {
        let phase: ExchangeState.Phase
        let isInFlight: Bool
        let isSuspended: Bool
        let asksForRest: Bool

        init(_ state: ExchangeState) {
            phase = state.phase
            isInFlight = state.isInFlight
            isSuspended = state.isSuspended
            asksForRest = state.asksForRest
        }
    }

    /// The reached states, numbered, and the effect of each event on them. Many observers see the same state, so its
    /// steps are computed once.
    struct States {
        struct Step {
            let action: Action
            let next: Int
        }

        private(set) var all = [ExchangeState()]
        private(set) var moments = [Moment(ExchangeState())]
        private var numbers = [ExchangeState(): 0]
        private var steps: [[Step]?] = [nil]

        /// For each event of the alphabet, in its order.
        mutating func steps(from number: Int) -> [Step] {
            if let steps = steps[number] { return steps }
            let before = all[number]
            let new = alphabet.map { event in
                var state = before
                let action = state.received(event)
                return Step(action: action, next: state == before ? number : self.number(of: state))
            }
            steps[number] = new
            return new
        }

        private mutating func number(of state: ExchangeState) -> Int {
            if let number = numbers[state] { return number }
            numbers[state] = all.count
            all.append(state)
            moments.append(Moment(state))
            steps.append(nil)
            return all.count - 1
        }
    }

    /// Follows an exchange as a strict observer, who knows only events and actions. Its memory is finite, so everything
    /// that can happen can be visited.
    struct Observer {
        private var isOpen = false
        /// Connections since the request was last rewritten.
        private var connections = 0
        private var sends = 0
        private var redirects = 0
        private var challenges = 0
        private var leftOthers = 0
        /// Attempts that the origin left unprocessed, since the last redirect.
        private var unprocessed = 0
        private var ownConnections = 0
        /// Successive connections for the rest of a response that brought nothing.
        private var continuations = 0
        /// The response was interrupted, and the rest of it is requested.
        private var isBroken = false
        private var hasForwarded = false
        /// A response is held back and not accepted yet.
        private var isHeld = false
        private var isWhole = false
        private var isAccepted = false
        private var isSuspended = false
        private var answered = false
        private var reused = false

        /// - Returns: the violated invariant, if any.
        mutating func take(
            _ event: Event, giving action: Action, from before: Moment, to state: Moment
        ) -> String? {
            begin(event, before, state)
            if let problem = problem(with: action, after: event, before) ?? problem(of: state) { return problem }
            // Nothing of an ended exchange matters to the next one.
            if !isOpen { self = Observer() }
            return nil
        }

        /// Its memory as one number, which sets find faster than many fields: 4 bits for a count, 1 for a flag.
        var packed: Int {
            let tries = connections | sends &<< 4 | redirects &<< 8 | challenges &<< 12
            let others = leftOthers | unprocessed &<< 4 | ownConnections &<< 8 | continuations &<< 12
            precondition((connections | sends | redirects | challenges) < 16, "a count has more than 4 bits")
            precondition(
                (leftOthers | unprocessed | ownConnections | continuations) < 16, "a count has more than 4 bits")
            var packed = tries | others &<< 16
            packed = packed &<< 1 | (isOpen ? 1 : 0)
            packed = packed &<< 1 | (isBroken ? 1 : 0)
            packed = packed &<< 1 | (hasForwarded ? 1 : 0)
            packed = packed &<< 1 | (isHeld ? 1 : 0)
            packed = packed &<< 1 | (isWhole ? 1 : 0)
            packed = packed &<< 1 | (isAccepted ? 1 : 0)
            packed = packed &<< 1 | (isSuspended ? 1 : 0)
            packed = packed &<< 1 | (answered ? 1 : 0)
            return packed &<< 1 | (reused ? 1 : 0)
        }

        private mutating func begin(_ event: Event, _ before: Moment, _ state: Moment) {
            switch event {
            case .requestArrived where !before.isInFlight:
                self = Observer()
                isOpen = true
            case .responseBegan where before.isInFlight: answered = true
            case .judged(true) where before.phase == .holding || before.phase == .judging:
                isAccepted = true
                // The rest of the response is forwarded on resumption.
                if before.isSuspended { hasForwarded = true }
            case .upstreamReady(let again) where before.phase == .connecting:
                reused = again
                answered = false
            case .head(.askAgain(let rule)) where before.phase == .awaiting && !before.asksForRest && state.isInFlight:
                connections = 0
                // Interim responses at most.
                hasForwarded = false
                if rule == .redirect {
                    (redirects, challenges, unprocessed, leftOthers) = (redirects + 1, 0, 0, 0)
                } else {
                    challenges += 1
                }
            case .upstreamEnded(let rule, _)
            where rule != .staleConnection && before.phase == .awaiting && !before.asksForRest && state.isInFlight:
                connections = 0
                switch rule {
                case .unprocessed: unprocessed += 1
                case .unconfirmed:
                    leftOthers += 1
                    // Interim responses at most.
                    hasForwarded = false
                default: ownConnections += 1
                }
            case .notShared where before.phase == .awaiting && !before.asksForRest && state.isInFlight:
                connections = 0
                leftOthers += 1
            case .head where before.phase == .awaiting: answered = true
            case .responseBroke(_, _, .possible(true)) where [.responding, .holding].contains(before.phase):
                continuations = 0
            default: break
            }
        }

        private mutating func problem(with action: Action, after event: Event, _ before: Moment) -> String? {
            if !isOpen, action != .none { return "something was done without an exchange" }
            switch action {
            case .open, .askAgain:
                let fresh = action == .open(fresh: true)
                connections += 1
                if isBroken { return "the whole was asked for again" }
                if hasForwarded, before.phase != .awaiting { return "asked again after an answer" }
                if redirects > limits.redirects { return "too many redirects" }
                if challenges > limits.challenges { return "too many challenges" }
                if leftOthers > 1 { return "more than one response that was to be shared, or confirmed" }
                if unprocessed > limits.unprocessed { return "too many tries that were not processed" }
                if ownConnections > 1 { return "a second connection of its own" }
                if case .upstreamEnded(let rule, let resendable) = event,
                    !resendable || rule != .unconfirmed && (answered || hasForwarded)
                {
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
            case .proceed: isSuspended = false
            case .none, .wait, .stopReadingRequest, .awaitHead: break
            }
            return nil
        }

        private func problem(of state: Moment) -> String? {
            if state.isInFlight != isOpen { return "an exchange that ended more or less than once" }
            return isOpen && state.isSuspended != isSuspended ? "suspended, and not suspended" : nil
        }

        private var limits: (redirects: Int, challenges: Int, breaks: Int, unprocessed: Int) {
            let limits = ExchangeStateTests.limits
            return (Int(limits.redirects), Int(limits.challenges), Int(limits.breaks), Int(limits.unprocessed))
        }
    }

    private struct Place {
        let observer: Observer
        let state: Int
    }

    /// Checks invariants of a state alone, however it was reached.
    private static func problem(of state: ExchangeState) -> String? {
        if !state.isInFlight || state.isSuspended {
            if state.patience != .unlimited { return "the clock runs" }
            if state.passesRequest { return "bytes pass" }
            if state.movesBody { return "a body is measured" }
        } else if state.phase != .connecting, state.phase != .judging, state.patience == .unlimited {
            return "nobody keeps the time"
        }
        return nil
    }

    /// Visits every state reachable by any sequence of events, with everything that an observer may remember of the
    /// path to it.
    @Test func everySequenceKeepsTheInvariants() {
        var states = States()
        // An observer's memory, 41 bits, and the number of the state.
        var known: Set<Int> = [Observer().packed]
        var next = [Place(observer: Observer(), state: 0)]
        let alphabet = Self.alphabet
        // Loops over indices: a debug build takes many times as long for sequences of tuples.
        while let place = next.popLast() {
            let steps = states.steps(from: place.state)
            let before = states.moments[place.state]
            var index = 0
            while index < steps.count {
                let event = alphabet[index]
                let step = steps[index]
                index += 1
                // An ended exchange ignores the event.
                if !before.isInFlight, step.next == place.state, step.action == .none { continue }
                var follower = place.observer
                if let problem = follower.take(event, giving: step.action, from: before, to: states.moments[step.next])
                {
                    Issue.record(
                        """
                        \(problem) after \(event), which gave \(step.action); before it \(place.observer), \
                        \(states.all[place.state])
                        """)
                    return
                }
                guard known.insert(follower.packed | step.next &<< 41).inserted else { continue }
                next.append(Place(observer: follower, state: step.next))
            }
        }
        for state in states.all {
            let problem = Self.problem(of: state)
            #expect(problem == nil, "\(state)")
        }
        #expect(known.count > 400_000, "only \(known.count) places were reached, with \(states.all.count) states")
    }
}
