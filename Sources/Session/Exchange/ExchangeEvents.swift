/// The states, events and actions of ``ExchangeState``.
extension ExchangeState {
    package enum Phase: Sendable, Equatable {
        case idle
        case connecting
        case awaiting
        case interim
        case responding
        /// `101 Switching Protocols` is being sent downstream.
        case switching
        /// The final response arrives, and is held back until it has been judged.
        case holding
        case judging
    }

    package enum Request: Sendable, Equatable {
        /// Waiting for the client: everything that it sent was passed on.
        case moving
        /// Waiting for the origin: it is full, or hasn't yet asked for the body.
        case stalled
        case sent
        /// The origin stopped reading; it may still answer.
        case abandoned
    }

    /// The response that the body waits for (RFC 9110 section 10.1.1).
    enum Expectation: Hashable { case none, continuation }

    enum Suspension: Hashable {
        case none, suspended
        /// The upstream became ready during the suspension.
        case suspendedBeforeSending
    }

    /// The client's part of an interrupted response that is being resumed.
    enum Broken: Hashable {
        case no
        case forwarded
        /// No bytes: the received part is held back.
        case held
    }

    package enum Resumption: Sendable, Equatable {
        case impossible
        /// - Parameter progressed: the last connection carried enough to be worth another.
        case possible(progressed: Bool)
    }

    /// What happened. The exchange keeps the reasons of failures.
    package enum Event: Sendable, Equatable {
        /// - Parameter leased: an upstream was leased.
        case requestArrived(expectsContinue: Bool, leased: Bool, limits: RetryRule.Limits = RetryRule.Limits())
        /// - Parameter reused: the connection served before: the origin may be closing it.
        case upstreamReady(reused: Bool)
        /// `isFinal`: another try is useless, or wrong after a policy's refusal.
        case upstreamFailed(isFinal: Bool)
        /// Everything that the client has sent was passed on.
        case requestPaused
        case requestStalled
        case requestResumed
        case requestSent
        /// The upstream stopped reading.
        case requestRejected
        case requestMalformed
        case responseBegan
        case head(Head)
        /// More of a response was passed on. `isBlocked`: the client's side is full.
        case responseMoved(isBlocked: Bool)
        case responseEnded
        /// The response was interrupted, or broke its framing.
        /// - Parameter begun: some of it was passed on, or is being passed on.
        case responseBroke(begun: Bool, isBlocked: Bool = false, resumption: Resumption = .impossible)
        case judged(isAccepted: Bool)
        /// The upstream ended or failed before a whole head.
        /// - Parameters:
        ///   - rule: allows sending the request again.
        ///   - resendable: the message can be sent again.
        case upstreamEnded(_ rule: RetryRule, resendable: Bool)
        /// The shared response can't serve this exchange. `resendable`: the message can be sent alone.
        case notShared(resendable: Bool)
        /// The client closed during its request, failed, or stopped reading.
        case downstreamGone
        /// ``patience`` has run out.
        case deadline
        case suspend, resume
        /// By the user, or at shutdown. `isTold`: a client without a response learns why.
        case cancel(isTold: Bool)
    }

    package enum Head: Sendable, Equatable {
        /// `isContinue`: `100 Continue`.
        case interim(isContinue: Bool)
        case final
        /// A final one, held back until its body has been judged.
        case held
        case unacceptable
        /// A final one followed by another request: a redirect, or an answered challenge.
        case askAgain(RetryRule)
        /// The remainder of an interrupted response.
        case rest
        case notNow
        /// Not the remainder: the entity changed, or the origin serves no ranges.
        case another
        /// 101. `isWanted`: the request asked for it.
        case upgrade(isWanted: Bool)
        case malformed, tooLarge
    }

    package enum Action: Sendable, Equatable {
        case none
        /// Some of the message moved: restart ``patience``.
        case wait
        /// Obtain an upstream. `fresh`: one that hasn't served before.
        case open(fresh: Bool)
        case send
        /// Send the kept bytes, or a changed request.
        case resend
        /// Discard the response and obtain an upstream for a changed request; the connection may be reused.
        case askAgain
        /// Obtain an upstream after a pause, to request the remainder.
        case reopen
        /// Drop the head, and append the body to the part already passed on.
        case takeUp
        case stopReadingRequest
        case forwardInterim, forwardFinal, forwardUpgrade
        case hold
        /// The body is complete.
        case judge
        /// Forward the kept part and everything after it.
        case release
        case awaitHead
        /// Leave both sides alone until ``resume``.
        case pause
        case proceed
        /// Everything was passed on.
        case finish
        /// The connections carry another protocol now.
        case becomeRelay
        /// Nothing of a response was passed on: answer the client with the reason.
        case refuse(Fault)
        /// Show the client that the response is incomplete.
        case cut(Cut)
    }

    package enum Fault: Sendable, Equatable {
        case unreachable, upstreamClosed, malformedRequest, malformedResponse, responseHeadTooLarge
        case unacceptable, unaskedUpgrade, noResponse, requestStalled, responseBroke, nothingMoved, downstreamGone,
            cancelled
        case notAskedAgain, entityChanged
    }

    package enum Patience: Sendable, Equatable {
        /// Timed elsewhere, or not at all.
        case unlimited
        case firstByte
        case idle
    }
}
