/// The words of ``ExchangeState``: where an exchange can be, what can happen to it, and what can be done.
extension ExchangeState {
    package enum Phase: Sendable, Equatable {
        case idle
        case connecting
        case awaiting
        case interim
        case responding
        /// `101 Switching Protocols` is on its way downstream.
        case switching
        /// The final response arrives and is held back: nothing of it goes downstream before it has been judged.
        case holding
        /// It is whole, and is being judged.
        case judging
    }

    package enum Request: Sendable, Equatable {
        /// The client's turn: all that it sent has been passed on.
        case moving
        /// The origin's turn: it takes no more for now, or is yet to say that it wants the body.
        case stalled
        case sent
        /// The origin stopped taking it; its answer may have come all the same.
        case abandoned
    }

    /// What the request's body waits for before its first byte (RFC 9110 section 10.1.1).
    enum Expectation: Hashable { case none, continuation }

    /// Whether somebody has stopped the exchange for a while.
    enum Suspension: Hashable {
        case none, suspended
        /// The upstream became ready meanwhile.
        case suspendedBeforeSending
    }

    /// What the one who asked had of a response when it broke off, while the rest of it is asked for.
    enum Broken: Hashable {
        case no
        case forwarded
        /// Nothing: a part of it is held back.
        case held
    }

    package enum Resumption: Sendable, Equatable {
        case impossible
        /// - Parameter progressed: the last connection carried enough of it to be worth another.
        case possible(progressed: Bool)
    }

    /// What happened. The reasons of failures stay with who knows their words.
    package enum Event: Sendable, Equatable {
        /// - Parameter leased: an upstream is at hand.
        case requestArrived(expectsContinue: Bool, leased: Bool, limits: RetryRule.Limits = RetryRule.Limits())
        /// - Parameter reused: the connection served before, so that the origin may be closing it.
        case upstreamReady(reused: Bool)
        /// None can be had. `isFinal`: trying again is no use, or wrong after a policy's refusal.
        case upstreamFailed(isFinal: Bool)
        /// All that the client sent was passed on; more of its request is to come.
        case requestPaused
        case requestStalled
        case requestResumed
        case requestSent
        /// The upstream will take no more.
        case requestRejected
        case requestMalformed
        case responseBegan
        case head(Head)
        /// More of a response was passed on. `isBlocked`: the client has to take it before more is received.
        case responseMoved(isBlocked: Bool)
        case responseEnded
        /// The response breaks off, or breaks its framing.
        /// - Parameter begun: a byte of it was passed on, or is being passed on.
        case responseBroke(begun: Bool, isBlocked: Bool = false, resumption: Resumption = .impossible)
        case judged(isAccepted: Bool)
        /// The upstream ended, or failed, before a whole head. `resendable`: the message can be sent once more.
        case upstreamEnded(resendable: Bool)
        /// It was coalesced onto a response that can't be shared. `resendable`: the message can be sent by itself.
        case notShared(resendable: Bool)
        /// The client ended within its request, failed, or takes no more.
        case downstreamGone
        /// What ``patience`` allows has passed.
        case deadline
        case suspend, resume
        /// By the user, or by the end of the proxy. `isTold`: a client without a response learns why.
        case cancel(isTold: Bool)
    }

    package enum Head: Sendable, Equatable {
        /// - Parameter isContinue: it is `100 Continue`.
        case interim(isContinue: Bool)
        case final
        /// A final one that is to be held back until its body has been judged.
        case held
        case unacceptable
        /// A final one that asks for another request: a redirect that is followed, or a challenge that is answered.
        case askAgain(RetryRule)
        /// What was missing of a response that had broken off.
        case rest
        case notNow
        /// It isn't what was missing: the entity has changed, or the origin gives no part of it.
        case another
        /// 101. `isWanted`: the request asked for it.
        case upgrade(isWanted: Bool)
        case malformed, tooLarge
    }

    package enum Action: Sendable, Equatable {
        case none
        /// Some of the message moved: ``patience`` begins anew.
        case wait
        /// Obtain an upstream. `fresh`: not one that served before.
        case open(fresh: Bool)
        case send
        /// The same for the bytes that were kept, or in other words.
        case resend
        /// Discard the response and obtain an upstream for a changed request; the connection may be reused at its end.
        case askAgain
        /// After a pause an upstream is to be obtained, to ask for the rest.
        case reopen
        /// The head is to be dropped, and what follows goes after what was passed on before.
        case takeUp
        /// No more of the request is to be read.
        case stopReadingRequest
        case forwardInterim, forwardFinal, forwardUpgrade
        case hold
        /// All of it is here.
        case judge
        /// What was kept is to be forwarded, and what follows.
        case release
        case awaitHead
        /// Both sides are to be left alone until ``resume``.
        case pause
        case goOn
        /// All was passed on.
        case finish
        /// The connections carry another protocol from here.
        case becomeRelay
        /// Nothing of a response was passed on: the client is to be told why there is none.
        case refuse(Fault)
        /// The client must see that what it has is not the whole.
        case cut(Cut)
    }

    package enum Fault: Sendable, Equatable {
        case unreachable, upstreamClosed, malformedRequest, malformedResponse, responseHeadTooLarge
        case unacceptable, unaskedUpgrade, noResponse, requestStalled, responseBroke, nothingMoved, downstreamGone, cancelled
        case notAskedAgain, entityChanged
    }

    package enum Patience: Sendable, Equatable {
        /// Others keep the time, or nobody does.
        case unlimited
        /// Until the origin answers.
        case firstByte
        case idle
    }
}
