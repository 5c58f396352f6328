/// Where one request with its response stands: a value that is told what happened and says what is to be done.
/// It knows no socket, no buffer, no clock and no version of HTTP; ``Exchange`` does what it says.
///
/// ```
/// idle → connecting → awaiting → responding → idle
///            ↑ retry     ↑ ↓ ↘ switching ────→ idle
///            └───────── interim   ↑
///                         ↘ holding → judging
/// ```
/// The request goes on being sent while the response arrives: ``phase`` tells of the response, ``request`` of the
/// request. Whatever the order of events, an exchange ends once: with one of ``Action/finish``,
/// ``Action/becomeRelay``, ``Action/refuse(_:)`` and ``Action/cut(_:)``, after which every event is ignored until
/// the next ``Event/requestArrived(expectsContinue:leased:)``.
package struct ExchangeState: Sendable, Hashable {
    package enum Phase: Sendable, Equatable {
        /// No exchange is under way.
        case idle
        /// An upstream connection is being obtained.
        case connecting
        /// The head of a response is awaited.
        case awaiting
        /// An interim response (1xx) is on its way downstream.
        case interim
        /// The final response is on its way downstream.
        case responding
        /// `101 Switching Protocols` is on its way downstream.
        case switching
        /// The final response arrives and is held back: nothing of it goes downstream before it has been judged.
        case holding
        /// It is whole, and is being judged.
        case judging
    }

    /// How far the request has got.
    package enum Request: Sendable, Equatable {
        /// The client's turn: all that it sent has been passed on.
        case moving
        /// The origin's turn: it takes no more for now, or is yet to say that it wants the body.
        case stalled
        /// To its last byte.
        case sent
        /// The origin stopped taking it; its answer may have come all the same.
        case abandoned
    }

    /// What the request's body waits for before its first byte (RFC 9110 section 10.1.1).
    private enum Expectation: Hashable { case none, continuation }

    /// Whether somebody has stopped the exchange for a while.
    private enum Suspension: Hashable {
        case none, suspended
        /// The upstream became ready meanwhile.
        case suspendedBeforeSending
    }

    /// What happened. The reasons of failures stay with who knows their words.
    package enum Event: Sendable, Equatable {
        /// - Parameter leased: an upstream is at hand.
        case requestArrived(expectsContinue: Bool, leased: Bool)
        /// - Parameter reused: the connection served before, so that the origin may be closing it.
        case upstreamReady(reused: Bool)
        /// None can be had.
        case upstreamFailed
        /// All that the client sent was passed on; more of its request is to come.
        case requestPaused
        /// The upstream takes no more for now.
        case requestStalled
        /// The client sends again.
        case requestResumed
        case requestSent
        /// The upstream will take no more.
        case requestRejected
        case requestMalformed
        /// The first byte of a response has arrived.
        case responseBegan
        case head(Head)
        /// More of a response was passed on, or waits for the client.
        case responseMoved
        case responseEnded
        /// The response breaks off, or breaks its framing.
        /// - Parameter begun: a byte of it was passed on.
        case responseBroke(begun: Bool)
        /// What the rules say of a response that is held back.
        case judged(isAccepted: Bool)
        /// The upstream ended, or failed, before a whole head.
        /// - Parameter resendable: the message can be sent once more.
        case upstreamEnded(resendable: Bool)
        /// The client ended within its request, failed, or takes no more.
        case downstreamGone
        /// What ``patience`` allows has passed.
        case deadline
        case suspend, resume
        /// By the user, or by the end of the proxy.
        /// - Parameter isTold: a client to which nothing of a response was passed on gets to know why.
        case cancel(isTold: Bool)
    }

    package enum Head: Sendable, Equatable {
        /// - Parameter isContinue: it is `100 Continue`.
        case interim(isContinue: Bool)
        case final
        /// A final one that is to be held back until its body has been judged.
        case held
        /// A final one that the rules refuse.
        case unacceptable
        /// 101.
        /// - Parameter isWanted: the request asked for it.
        case upgrade(isWanted: Bool)
        case malformed, tooLarge
    }

    /// What is to be done now.
    package enum Action: Sendable, Equatable {
        case none
        /// Some of the message moved: ``patience`` begins anew.
        case wait
        /// An upstream is to be obtained.
        /// - Parameter fresh: not one that served before.
        case open(fresh: Bool)
        /// The request's head is to be written, and its body passed on.
        case send
        /// The same for the bytes that were kept.
        case resend
        /// No more of the request is to be read.
        case stopReadingRequest
        case forwardInterim, forwardFinal, forwardUpgrade
        /// The final response is to be kept instead of forwarded.
        case hold
        /// All of it is here.
        case judge
        /// What was kept is to be forwarded, and what follows.
        case release
        /// The next head is to be looked for.
        case awaitHead
        /// Both sides are to be left alone until ``resume``.
        case pause
        /// Both sides go on.
        case goOn
        /// All was passed on.
        case finish
        /// The connections carry another protocol from here.
        case becomeRelay
        /// Nothing of a response was passed on: the client is to be told why there is none.
        case refuse(Fault)
        /// The client must see that what it has is not the whole.
        case cut(Fault)
    }

    /// Why an exchange ended without its response.
    package enum Fault: Sendable, Equatable {
        case unreachable, upstreamClosed, malformedRequest, malformedResponse, responseHeadTooLarge
        case unacceptable, unaskedUpgrade, noResponse, requestStalled, responseBroke, nothingMoved, downstreamGone, cancelled
    }

    /// How long may pass until something moves.
    package enum Patience: Sendable, Equatable {
        /// Others keep the time, or nobody does.
        case unlimited
        /// Until the origin answers.
        case firstByte
        case idle
    }

    package private(set) var phase = Phase.idle
    package private(set) var request = Request.moving
    private var expectation = Expectation.none
    private var suspension = Suspension.none
    private var retry = RetryRule.Progress()

    package init() {}

    package var isUnderWay: Bool { phase != .idle }
    package var isSuspended: Bool { suspension != .none }
    /// Whether the request's bytes are to be looked after.
    package var passesRequest: Bool {
        guard request == .moving || request == .stalled else { return false }
        return phase != .idle && phase != .connecting && !isSuspended
    }

    package var patience: Patience {
        if isSuspended { return .unlimited }
        return switch phase {
        // A judgement takes as long as it takes: it is bounded by what it works on.
        case .idle, .connecting, .judging: .unlimited
        case .awaiting: request == .moving ? .idle : .firstByte
        case .interim, .responding, .switching, .holding: .idle
        }
    }

    /// What is being waited for, for people.
    package var words: String {
        switch phase {
        case .idle: "over"
        case .connecting: "connecting"
        case .awaiting: request == .moving ? "sending the request" : "waiting for the response"
        case .interim, .responding, .holding: "receiving the response"
        case .judging: "judging the response"
        case .switching: "changing the protocol"
        }
    }

    package mutating func received(_ event: Event) -> Action {
        if case .requestArrived(let expectsContinue, let leased) = event {
            guard phase == .idle else { return .none }
            self = ExchangeState()
            phase = .connecting
            expectation = expectsContinue ? .continuation : .none
            return leased ? .none : .open(fresh: false)
        }
        guard isUnderWay else { return .none }
        switch event {
        case .requestArrived: return .none
        case .upstreamReady(let reused): return upstreamReady(reused: reused)
        case .upstreamFailed: return phase == .connecting ? end(.unreachable) : .none
        case .requestPaused, .requestStalled, .requestResumed, .requestSent, .requestRejected, .requestMalformed:
            return requestMoved(event)
        case .responseBegan:
            retry.answered()
            return .none
        case .head(let head): return phase == .awaiting ? received(head) : .none
        case .responseMoved: return .wait
        case .responseEnded: return responseEnded()
        case .responseBroke where phase == .holding: return refuse(.responseBroke)
        case .judged(let isAccepted): return judged(isAccepted)
        case .responseBroke(let begun):
            guard phase == .interim || phase == .responding || phase == .switching else { return .none }
            if !begun, phase != .interim { return refuse(.malformedResponse) }
            return end(.responseBroke)
        case .upstreamEnded(let resendable):
            guard phase == .awaiting else { return .none }
            guard retry.begin(.staleConnection, resendable: resendable) else { return end(.upstreamClosed) }
            phase = .connecting
            return .open(fresh: true)
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
            case .suspended: .goOn
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
        switch head {
        case .interim(let isContinue):
            if isContinue { bodyIsWanted() }
            phase = .interim
            return .forwardInterim
        case .final:
            phase = .responding
            return .forwardFinal
        case .held:
            phase = .holding
            return .hold
        case .unacceptable: return refuse(.unacceptable)
        case .upgrade(let isWanted):
            guard isWanted, request == .sent else { return end(.unaskedUpgrade) }
            phase = .switching
            return .forwardUpgrade
        case .malformed: return end(.malformedResponse)
        case .tooLarge: return end(.responseHeadTooLarge)
        }
    }

    /// The origin has said that it wants the body: the client's turn.
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
            return .judge
        case .idle, .connecting, .awaiting, .judging: return .none
        }
    }

    private mutating func judged(_ isAccepted: Bool) -> Action {
        guard phase == .holding || phase == .judging else { return .none }
        guard isAccepted else { return refuse(.unacceptable) }
        phase = .responding
        return isSuspended ? .none : .release
    }

    // MARK: The end

    private mutating func timedOut() -> Action {
        guard !isSuspended else { return .none }
        return switch phase {
        case .awaiting where request == .moving: refuse(.requestStalled)
        case .awaiting: refuse(.noResponse)
        case .interim, .responding, .switching: cut(.nothingMoved)
        case .holding: refuse(.nothingMoved)
        case .idle, .connecting, .judging: .none
        }
    }

    /// Tells the client, if nothing of a response has been passed on.
    private mutating func end(_ fault: Fault) -> Action {
        switch phase {
        case .interim, .responding, .switching: cut(fault)
        case .idle, .connecting, .awaiting, .holding, .judging: refuse(fault)
        }
    }

    private mutating func refuse(_ fault: Fault) -> Action {
        phase = .idle
        return .refuse(fault)
    }

    private mutating func cut(_ fault: Fault) -> Action {
        phase = .idle
        return .cut(fault)
    }
}
