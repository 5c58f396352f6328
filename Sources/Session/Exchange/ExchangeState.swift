/// The state of one request with its response: takes events and returns actions. It has no socket, buffer, clock or
/// version of HTTP; ``Exchange`` carries the actions out.
///
/// ```
/// idle → connecting → awaiting → responding → idle
///            ↑ retry     ↑ ↓ ↘ switching ────→ idle
///            ├───────── interim   ↑
///            │            ↘ holding → judging
///            ├─ ask again ─ awaiting
///            └─ resume ───── responding, holding
/// ```
/// The request is sent while the response arrives: ``phase`` describes the response, ``request`` the request.
/// Whatever the order of events, an exchange ends once: with ``Action/finish``, ``Action/becomeRelay``,
/// ``Action/refuse(_:)`` or ``Action/cut(_:)``. Events are then ignored until the next
/// ``Event/requestArrived(expectsContinue:leased:limits:)``.
package struct ExchangeState: Sendable, Hashable {
    package private(set) var phase = Phase.idle
    package private(set) var request = Request.moving
    private var expectation = Expectation.none
    private var suspension = Suspension.none
    private var broken = Broken.no
    private var isWhole = false
    /// The client must take what was received before more is read.
    package private(set) var isBlocked = false
    private var retry = RetryRule.Progress(limits: RetryRule.Limits())

    package init() {}

    package var isInFlight: Bool { phase != .idle }
    package var isSuspended: Bool { suspension != .none }
    /// A response was interrupted, and the remainder is requested.
    package var asksForRest: Bool { broken != .no }

    /// Whether the request may be sent again under that rule.
    package func allows(_ rule: RetryRule, resendable: Bool) -> Bool { retry.allows(rule, resendable: resendable) }

    /// How often the request of this hop was sent again because an origin had not processed it.
    package var refusals: Int { Int(retry.unprocessed) }

    /// Whether bytes of the request must be handled.
    package var passesRequest: Bool {
        guard request == .moving || request == .stalled else { return false }
        return phase != .idle && phase != .connecting && !isSuspended
    }

    package var movesBody: Bool {
        if isSuspended { return false }
        return switch phase {
        case .awaiting: request == .moving || request == .stalled && expectation == .none
        case .responding, .holding: true
        case .idle, .connecting, .interim, .switching, .judging: false
        }
    }

    package var patience: Patience {
        if isSuspended { return .unlimited }
        return switch phase {
        // A judgement is bounded by the body's size.
        case .idle, .connecting, .judging: .unlimited
        case .awaiting: request == .moving ? .idle : .firstByte
        case .interim, .responding, .switching, .holding: .idle
        }
    }

    package var words: String {
        switch phase {
        case .idle: "over"
        case .connecting where asksForRest: "connecting to continue the response"
        case .connecting: "connecting"
        case .awaiting: request == .moving ? "sending the request" : "waiting for the response"
        case .interim, .responding, .holding: "receiving the response"
        case .judging: "judging the response"
        case .switching: "changing the protocol"
        }
    }

    package mutating func received(_ event: Event) -> Action {
        if case .requestArrived(let expectsContinue, let leased, let limits) = event {
            guard phase == .idle else { return .none }
            self = ExchangeState()
            retry = RetryRule.Progress(limits: limits)
            phase = .connecting
            expectation = expectsContinue ? .continuation : .none
            return leased ? .none : .open(fresh: false)
        }
        guard isInFlight else { return .none }
        switch event {
        case .requestArrived: return .none
        case .upstreamReady(let reused): return upstreamReady(reused: reused)
        case .upstreamFailed(let isFinal): return upstreamFailed(isFinal: isFinal)
        case .requestPaused, .requestStalled, .requestResumed, .requestSent, .requestRejected, .requestMalformed:
            return requestMoved(event)
        case .responseBegan:
            retry.answered()
            return .none
        case .head(let head): return phase == .awaiting ? received(head) : .none
        case .responseMoved(let isBlocked):
            self.isBlocked = isBlocked && phase == .responding
            return .wait
        case .responseEnded: return responseEnded()
        case .judged(let isAccepted): return judged(isAccepted)
        case .responseBroke(let begun, let isBlocked, let resumption):
            if isBlocked { self.isBlocked = true }
            return responseBroke(begun: begun, resumption)
        case .upstreamEnded(let rule, let resendable):
            guard phase == .awaiting else { return .none }
            if asksForRest { return askForRest(orEnd: .upstreamClosed) }
            guard retry.begin(rule, resendable: resendable) else { return end(.upstreamClosed) }
            phase = .connecting
            return .open(fresh: rule == .staleConnection)
        case .notShared(let resendable):
            guard phase == .awaiting else { return .none }
            guard !asksForRest, retry.begin(.notShared, resendable: resendable) else { return end(.upstreamClosed) }
            phase = .connecting
            return .open(fresh: false)
        case .downstreamGone: return cut(.downstreamGone)
        case .deadline: return timedOut()
        case .suspend:
            guard !isSuspended else { return .none }
            suspension = .suspended
            return .pause
        case .resume:
            let before = suspension
            suspension = .none
            return switch before {
            case .none: .none
            case .suspended: .proceed
            case .suspendedBeforeSending: begin()
            }
        case .cancel(let isTold): return isTold ? end(.cancelled) : cut(.cancelled)
        }
    }

    // MARK: The request

    private mutating func upstreamReady(reused: Bool) -> Action {
        guard phase == .connecting else { return .none }
        retry.connected(reused: reused)
        if isSuspended {
            suspension = .suspendedBeforeSending
            return .none
        }
        return begin()
    }

    private mutating func begin() -> Action {
        phase = .awaiting
        request = .moving
        return retry.isFirstTry ? .send : .resend
    }

    private mutating func upstreamFailed(isFinal: Bool) -> Action {
        guard phase == .connecting else { return .none }
        return asksForRest && !isFinal ? askForRest(orEnd: .unreachable) : end(.unreachable)
    }

    private mutating func requestMoved(_ event: Event) -> Action {
        guard phase != .connecting, request == .moving || request == .stalled else { return .none }
        switch event {
        case .requestPaused: request = expectation == .continuation ? .stalled : .moving
        case .requestStalled: request = .stalled
        case .requestResumed:
            expectation = .none
            return .none
        case .requestSent: request = .sent
        case .requestRejected:
            request = .abandoned
            return .stopReadingRequest
        case .requestMalformed: return end(.malformedRequest)
        default: return .none
        }
        return .wait
    }

    // MARK: The response

    private mutating func received(_ head: Head) -> Action {
        retry.answered()
        if asksForRest { return receivedRest(head) }
        switch head {
        case .interim(let isContinue):
            if isContinue { bodyIsWanted() }
            phase = .interim
            return .forwardInterim
        case .final:
            phase = .responding
            isBlocked = false
            return .forwardFinal
        case .held:
            phase = .holding
            return .hold
        case .unacceptable: return refuse(.unacceptable)
        case .askAgain(let rule):
            guard retry.begin(rule, resendable: true) else { return refuse(.notAskedAgain) }
            phase = .connecting
            return .askAgain
        case .upgrade(let isWanted):
            guard isWanted, request == .sent else { return end(.unaskedUpgrade) }
            phase = .switching
            return .forwardUpgrade
        case .malformed, .rest, .notNow, .another: return end(.malformedResponse)
        case .tooLarge: return end(.responseHeadTooLarge)
        }
    }

    /// The answer to the request for the remainder.
    private mutating func receivedRest(_ head: Head) -> Action {
        switch head {
        case .rest:
            phase = broken == .held ? .holding : .responding
            broken = .no
            return .takeUp
        case .notNow: return askForRest(orEnd: .responseBroke)
        default: return end(.entityChanged)
        }
    }

    /// The origin wants the body: wait for the client.
    private mutating func bodyIsWanted() {
        expectation = .none
        if request == .stalled { request = .moving }
    }

    private mutating func responseEnded() -> Action {
        switch phase {
        case .interim:
            phase = .awaiting
            return .awaitHead
        case .responding:
            phase = .idle
            return .finish
        case .switching:
            phase = .idle
            return .becomeRelay
        case .holding:
            phase = .judging
            isWhole = true
            return .judge
        case .idle, .connecting, .awaiting, .judging: return .none
        }
    }

    private mutating func responseBroke(begun: Bool, _ resumption: Resumption) -> Action {
        switch phase {
        case .responding, .holding:
            if case .possible(let progressed) = resumption, request == .sent, !isWhole {
                if progressed { retry.moved() }
                if retry.allows(.brokenResponse, resendable: true) {
                    broken = phase == .holding ? .held : .forwarded
                    return askForRest(orEnd: .responseBroke)
                }
            }
            if phase == .holding { return refuse(.responseBroke) }
            return begun ? end(.responseBroke) : refuse(.malformedResponse)
        case .switching: return begun ? end(.responseBroke) : refuse(.malformedResponse)
        case .interim: return end(.responseBroke)
        case .idle, .connecting, .awaiting, .judging: return .none
        }
    }

    private mutating func askForRest(orEnd fault: Fault) -> Action {
        guard retry.begin(.brokenResponse, resendable: true) else { return end(fault) }
        phase = .connecting
        return .reopen
    }

    private mutating func judged(_ isAccepted: Bool) -> Action {
        guard phase == .holding || phase == .judging else { return .none }
        guard isAccepted else { return refuse(.unacceptable) }
        phase = .responding
        isBlocked = false
        return isSuspended ? .none : .release
    }

    // MARK: End

    private mutating func timedOut() -> Action {
        guard !isSuspended else { return .none }
        switch phase {
        case .awaiting where asksForRest: return askForRest(orEnd: .noResponse)
        case .awaiting where request == .moving: return refuse(.requestStalled)
        case .awaiting: return refuse(.noResponse)
        case .interim, .responding, .switching: return cut(.nothingMoved)
        case .holding: return refuse(.nothingMoved)
        case .idle, .connecting, .judging: return .none
        }
    }

    /// Refuses the client if nothing of a response was passed on.
    private mutating func end(_ fault: Fault) -> Action {
        switch phase {
        case .interim, .responding, .switching: cut(fault)
        case .idle, .connecting, .awaiting, .holding, .judging:
            broken == .forwarded ? cut(fault) : refuse(fault)
        }
    }

    private mutating func refuse(_ fault: Fault) -> Action {
        phase = .idle
        return .refuse(fault)
    }

    /// Delivers what was passed on, unless the client doesn't read or is the cause.
    private mutating func cut(_ fault: Fault) -> Action {
        let hasPassedAll = asksForRest || phase == .responding && !isBlocked
        phase = .idle
        return .cut(fault != .downstreamGone && hasPassedAll ? .delivered : .reset)
    }
}
