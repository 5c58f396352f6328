import Testing

@testable import PinproxyClients

/// Invariants of a client's connection, in any order of events: every reachable state is visited with every event. No
/// socket, no clock.
@Suite struct ConnectionStateTests {
    private typealias Event = ConnectionState.Event
    private typealias Action = ConnectionState.Action

    /// Everything that can happen, each flag in both ways.
    private static let alphabet: [Event] = [
        .connect, .connected(.inspected), .connected(.tunnel), .connected(.verifiedTunnel), .overtaken,
        .connectFailed(.mayBePlain), .connectFailed(.shown), .connectFailed(.told),
        .answered(isRetired: false), .answered(isRetired: true),
        .spoke(.request), .spoke(.handshake(isServed: true)), .spoke(.handshake(isServed: false)),
        .spoke(.refusedHandshake),
        .spoke(.other), .secured(isWhole: true), .secured(isWhole: false),
        .judged(.verified), .judged(.refused), .judged(.failed),
        .upgraded, .deadline, .cancel, .suspend, .resume, .closed,
    ]

    /// Follows a connection as a strict observer, who knows only events and actions.
    private struct Observer: Hashable {
        private(set) var state = ConnectionState()
        /// Attempts of the CONNECT that waits for an upstream connection; nil: none is waiting.
        private var attempts: [ConnectionState.Attempt]?
        private var answered: ConnectionState.Passage?
        private var hasVerdict = false
        private var isSecured = false
        private var isPlain = false
        private var isSuspended = false
        private var isEnded = false

        /// - Returns: the violated invariant, if any.
        mutating func take(_ event: Event) -> String? {
            let before = state
            let action = state.received(event)
            if isEnded, action != .none { return "\(action) after the end" }
            if isSuspended, ![.none, .proceed, .refuse, .cut, .giveUp].contains(action) {
                return "\(action) while suspended"
            }
            note(event, before)
            return problem(of: action, event)
        }

        private mutating func note(_ event: Event, _ before: ConnectionState) {
            switch event {
            case .secured(isWhole: true) where before.phase == .securing && !before.isSuspended: isSecured = true
            case .spoke(.request) where before.phase == .awaitingHandshake && !before.isSuspended: isPlain = true
            case .judged(.verified) where before.phase == .verifying && !before.isSuspended: hasVerdict = true
            case .closed: isEnded = true
            default: break
            }
        }

        private mutating func problem(of action: Action, _ event: Event) -> String? {
            switch action {
            case .open(let attempt):
                if attempts?.contains(attempt) == true { return "the same attempt twice" }
                if (attempt == .secure) != (answered != nil) { return "an attempt in the wrong place" }
                attempts = (attempts ?? []) + [attempt]
            case .answer(let passage):
                if answered != nil { return "answered twice" }
                if attempts == nil { return "answered what was not asked" }
                if passage != .refusal, event != .connected(passage) { return "answered without a connection" }
                answered = passage
            case .refuse, .decideAnew:
                if answered != nil { return "a refusal in the clear after 200" }
                attempts = nil
                isSuspended = false
            case .awaitHandshake:
                if answered != .inspected, answered != .refusal { return "the handshake of a tunnel" }
            case .secure:
                if event != .spoke(.handshake(isServed: true)) { return "TLS with a client that isn't served" }
            case .serve:
                if !isSecured, !isPlain { return "requests behind no handshake" }
            case .verify:
                if answered != .verifiedTunnel { return "verified what isn't to be" }
            case .relay:
                if event != .upgraded {
                    if answered != .tunnel, answered != .verifiedTunnel { return "relayed what is to be read" }
                    if answered == .verifiedTunnel, !hasVerdict { return "relayed without a verdict" }
                }
            case .alert:
                if answered == nil { return "an alert before the answer" }
                isEnded = true
            case .fail, .giveUp, .cut: isEnded = true
            case .pause: isSuspended = true
            case .proceed: isSuspended = false
            case .none: break
            }
            // The connection closes after these.
            if isEnded, event != .closed { _ = state.received(.closed) }
            if state.isSuspended != isSuspended, !isEnded { return "suspended, and not suspended" }
            return nil
        }
    }

    @Test func whateverHappens() {
        var seen: Set<Observer> = [Observer()]
        var fringe = [Observer()]
        while let observer = fringe.popLast() {
            for event in Self.alphabet {
                var next = observer
                if let problem = next.take(event) {
                    Issue.record("\(problem): \(event) in \(observer.state)")
                    return
                }
                if seen.insert(next).inserted { fringe.append(next) }
            }
        }
        // Every phase was reached.
        #expect(Set(seen.map(\.state.phase)).count == 1 + 3 + 4 + 6 && seen.count > 50, "\(seen.count)")
    }

    private func expect(_ steps: [(Event, Action)], sourceLocation: SourceLocation = #_sourceLocation) {
        var state = ConnectionState()
        for (index, step) in steps.enumerated() {
            #expect(state.received(step.0) == step.1, "step \(index), \(step.0)", sourceLocation: sourceLocation)
        }
    }

    private static let asked: [(Event, Action)] = [(.connect, .open(.asAsked))]

    @Test func aHostIsIntercepted() {
        expect(
            Self.asked + [
                (.connected(.inspected), .answer(.inspected)), (.answered(isRetired: false), .awaitHandshake),
                (.spoke(.handshake(isServed: true)), .secure), (.secured(isWhole: true), .serve), (.upgraded, .relay),
            ])
    }

    @Test func aTunnelIsCarriedOnceItIsJudged() {
        expect(
            Self.asked + [
                (.connected(.verifiedTunnel), .answer(.verifiedTunnel)), (.answered(isRetired: false), .verify),
                (.judged(.verified), .relay),
            ])
        expect(
            Self.asked + [
                (.connected(.verifiedTunnel), .answer(.verifiedTunnel)), (.answered(isRetired: false), .verify),
                (.judged(.refused), .alert),
            ])
    }

    /// The server spoke plain HTTP, the client speaks TLS.
    @Test func tlsIsNeverServedOverAPlainConnection() {
        expect(
            Self.asked + [
                (.connectFailed(.mayBePlain), .open(.plain)), (.connected(.inspected), .answer(.inspected)),
                (.answered(isRetired: false), .awaitHandshake), (.spoke(.handshake(isServed: false)), .open(.secure)),
                (.connected(.inspected), .awaitHandshake), (.spoke(.handshake(isServed: true)), .secure),
            ])
    }

    /// A reload overtakes the attempt: the decision is made again, and so may be the attempt.
    @Test func anOvertakenAttemptIsDecidedAnew() {
        expect(Self.asked + [(.overtaken, .decideAnew)] + Self.asked + [(.connectFailed(.told), .refuse)])
    }

    @Test func aSuspendedTaskIsRefusedWhenItIsCancelled() {
        expect(Self.asked + [(.suspend, .pause), (.connected(.tunnel), .none), (.cancel, .refuse)] + Self.asked)
    }
}
