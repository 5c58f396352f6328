import Testing

@testable import Session

/// What must hold of an exchange in whatever order things happen to it, held against every short sequence of
/// events and long random ones. No socket, no clock.
@Suite struct ExchangeStateTests {
    typealias Event = ExchangeState.Event
    typealias Action = ExchangeState.Action

    /// Everything that can happen, each flag in both ways.
    static let alphabet: [Event] = [
        .requestArrived(expectsContinue: false, leased: false), .requestArrived(expectsContinue: true, leased: true),
        .upstreamReady(reused: false), .upstreamReady(reused: true), .upstreamFailed, .requestPaused, .requestStalled,
        .requestResumed, .requestSent, .requestRejected, .requestMalformed, .responseBegan,
        .head(.interim(isContinue: true)), .head(.interim(isContinue: false)), .head(.final),
        .head(.upgrade(isWanted: true)), .head(.upgrade(isWanted: false)), .head(.malformed), .head(.tooLarge),
        .head(.held), .head(.unacceptable), .judged(isAccepted: true), .judged(isAccepted: false),
        .responseMoved, .responseEnded, .responseBroke(begun: true), .responseBroke(begun: false),
        .upstreamEnded(resendable: true), .upstreamEnded(resendable: false), .downstreamGone, .deadline, .suspend,
        .resume, .cancel(isTold: true), .cancel(isTold: false),
    ]

    /// Follows an exchange as a strict observer, who knows only events and actions. What it remembers is finite, so
    /// that all that can ever happen can be gone through.
    struct Observer: Hashable {
        private(set) var state = ExchangeState()
        private var isOpen = false
        private var connections = 0
        private var sends = 0
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
            case .head where before.phase == .awaiting: answered = true
            case .judged(true) where before.phase == .holding || before.phase == .judging:
                isAccepted = true
                // It goes on with the rest when it is resumed.
                if before.isSuspended { hasForwarded = true }
            case .upstreamReady(let again) where before.phase == .connecting:
                reused = again
                answered = false
            default: break
            }
        }

        private mutating func problem(with action: Action, after event: Event, _ before: ExchangeState) -> String? {
            if !isOpen, action != .none { return "something was done without an exchange" }
            switch action {
            case .open(let fresh):
                connections += 1
                if connections > 2 { return "a third connection" }
                if connections == 2 {
                    if !fresh { return "a retry on a connection that served before" }
                    if answered || hasForwarded { return "a retry though an answer had begun" }
                    if !reused { return "a retry though the connection was new" }
                }
            case .send, .resend:
                sends += 1
                if (action == .send) != (sends == 1) { return "sent \(sends) times" }
                if isSuspended, event != .resume { return "sent while suspended" }
                isSuspended = false
            case .forwardInterim, .forwardFinal, .forwardUpgrade:
                if sends == 0 { return "an answer to what was not asked" }
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
                if isHeld, !isAccepted { return "finished with an answer that nobody accepted" }
                isOpen = false
            case .refuse:
                let nothingPassed = event == .responseBroke(begun: false) && before.phase != .interim
                if [.interim, .responding, .switching].contains(before.phase), !nothingPassed {
                    return "refused within a response"
                }
                isOpen = false
            case .cut: isOpen = false
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

    // MARK: Ways that exchanges go

    private func run(_ steps: [(Event, Action)]) {
        var state = ExchangeState()
        for (index, step) in steps.enumerated() {
            let action = state.received(step.0)
            #expect(action == step.1, "step \(index), \(step.0)")
        }
    }

    @Test func anExchangeOverAnIdleConnection() {
        run([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send), (.requestSent, .wait), (.responseBegan, .none),
            (.head(.final), .forwardFinal), (.responseMoved, .wait), (.responseEnded, .finish),
            (.responseEnded, .none), (.deadline, .none),
        ])
    }

    @Test func aStaleConnectionIsTriedAgainOnce() {
        run([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send), (.requestSent, .wait),
            (.upstreamEnded(resendable: true), .open(fresh: true)), (.upstreamReady(reused: false), .resend),
            (.requestSent, .wait), (.upstreamEnded(resendable: true), .refuse(.upstreamClosed)),
        ])
    }

    /// A connection that is new each time, and always closes, must not be tried for ever, whatever it claims to be.
    @Test func noMoreThanOneRetry() {
        run([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send), (.upstreamEnded(resendable: true), .open(fresh: true)),
            (.upstreamReady(reused: true), .resend), (.upstreamEnded(resendable: true), .refuse(.upstreamClosed)),
        ])
    }

    @Test func whatCannotBeResentIsRefused() {
        run([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send),
            (.upstreamEnded(resendable: false), .refuse(.upstreamClosed)),
        ])
    }

    @Test func nothingIsSentAgainOnceAnAnswerHasBegun() {
        run([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send), (.responseBegan, .none),
            (.upstreamEnded(resendable: true), .refuse(.upstreamClosed)),
        ])
    }

    @Test func aHeldResponseIsForwardedOnlyOnceItIsAccepted() {
        let asked: [(Event, Action)] = [
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.held), .hold), (.responseMoved, .wait),
        ]
        run(asked + [(.responseEnded, .judge), (.judged(isAccepted: true), .release), (.responseEnded, .finish)])
        run(asked + [(.responseEnded, .judge), (.judged(isAccepted: false), .refuse(.unacceptable))])
        // Its beginning may be enough to know.
        run(asked + [(.judged(isAccepted: false), .refuse(.unacceptable))])
        run(asked + [(.judged(isAccepted: true), .release), (.responseBroke(begun: true), .cut(.responseBroke))])
        // Nothing was forwarded: the client is told.
        run(asked + [(.responseBroke(begun: true), .refuse(.responseBroke))])
        run(asked + [(.deadline, .refuse(.nothingMoved))])
        run(asked + [
            (.responseEnded, .judge), (.suspend, .pause), (.judged(isAccepted: true), .none), (.resume, .goOn),
            (.responseEnded, .finish),
        ])
    }

    @Test func aClientThatExpectsIsNotTimedForItsBody() {
        var state = ExchangeState()
        _ = state.received(.requestArrived(expectsContinue: true, leased: false))
        #expect(state.patience == .unlimited)
        _ = state.received(.upstreamReady(reused: false))
        _ = state.received(.requestPaused)
        #expect(state.patience == .firstByte, "the origin is to say whether it wants the body")
        #expect(state.received(.head(.interim(isContinue: true))) == .forwardInterim)
        #expect(state.received(.responseEnded) == .awaitHead)
        #expect(state.patience == .idle, "the client's turn")
        _ = state.received(.requestResumed)
        _ = state.received(.requestSent)
        #expect(state.patience == .firstByte)
        #expect(state.received(.deadline) == .refuse(.noResponse))
    }

    /// The first byte's deadline is not left running while a retry connects: it is over with the try.
    @Test func aRetryStopsTheClock() {
        var state = ExchangeState()
        _ = state.received(.requestArrived(expectsContinue: false, leased: false))
        _ = state.received(.upstreamReady(reused: true))
        _ = state.received(.requestSent)
        #expect(state.patience == .firstByte)
        _ = state.received(.upstreamEnded(resendable: true))
        #expect(state.patience == .unlimited)
    }

    @Test func suspendedBeforeItsConnectionItSendsWhenResumed() {
        run([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)), (.suspend, .pause),
            (.suspend, .none), (.upstreamReady(reused: false), .none), (.deadline, .none), (.resume, .send),
            (.resume, .none), (.requestSent, .wait), (.suspend, .pause), (.resume, .goOn),
        ])
    }

    /// Whoever has nothing of a response is told of a cancellation, and nobody else.
    @Test func aCancellationIsToldWhileThereIsNothingOfAResponse() {
        let begin: [(Event, Action)] = [
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
        ]
        run([begin[0], (.cancel(isTold: true), .refuse(.cancelled))])
        run(begin + [(.suspend, .pause), (.cancel(isTold: true), .refuse(.cancelled)), (.resume, .none)])
        run(begin + [(.cancel(isTold: false), .cut(.cancelled))])
        run(begin + [(.head(.final), .forwardFinal), (.cancel(isTold: true), .cut(.cancelled)), (.cancel(isTold: true), .none)])
        run(begin + [(.head(.interim(isContinue: false)), .forwardInterim), (.cancel(isTold: true), .cut(.cancelled))])
    }

    @Test func anUpgradeNobodyAskedForIsRefused() {
        run([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.upgrade(isWanted: false)), .refuse(.unaskedUpgrade)),
        ])
        run([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.head(.upgrade(isWanted: true)), .refuse(.unaskedUpgrade)),
        ])
    }

    @Test func aResponseThatBreaksIsCutNotRefused() {
        run([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.final), .forwardFinal), (.responseBroke(begun: true), .cut(.responseBroke)),
        ])
        run([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.final), .forwardFinal),
            (.responseBroke(begun: false), .refuse(.malformedResponse)),
        ])
    }
}
