import Testing

@testable import PinproxySession

/// An event, and the action that must follow it.
typealias ExchangeStep = (ExchangeState.Event, ExchangeState.Action)

/// Checks a new exchange against the steps, in order.
func expectSteps(_ steps: [ExchangeStep], sourceLocation: SourceLocation = #_sourceLocation) {
    var state = ExchangeState()
    for (index, step) in steps.enumerated() {
        let action = state.received(step.0)
        #expect(action == step.1, "step \(index), \(step.0)", sourceLocation: sourceLocation)
    }
}

/// The course of exchanges without redirects, challenges or resumption.
@Suite struct ExchangeWaysTests {
    private typealias Event = ExchangeState.Event
    private typealias Action = ExchangeState.Action

    @Test func anExchangeOverAnIdleConnection() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send), (.requestSent, .wait), (.responseBegan, .none),
            (.head(.final), .forwardFinal), (.responseMoved(isBlocked: false), .wait), (.responseEnded, .finish),
            (.responseEnded, .none), (.deadline, .none),
        ])
    }

    @Test func aStaleConnectionIsTriedAgainOnce() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send), (.requestSent, .wait),
            (.upstreamEnded(.staleConnection, resendable: true), .open(fresh: true)),
            (.upstreamReady(reused: false), .resend),
            (.requestSent, .wait), (.upstreamEnded(.staleConnection, resendable: true), .refuse(.upstreamClosed)),
        ])
    }

    /// A connection that is new each time, and always closes, must not be tried for ever, whatever it claims to be.
    @Test func noMoreThanOneRetry() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send),
            (.upstreamEnded(.staleConnection, resendable: true), .open(fresh: true)),
            (.upstreamReady(reused: true), .resend),
            (.upstreamEnded(.staleConnection, resendable: true), .refuse(.upstreamClosed)),
        ])
    }

    @Test func whatCannotBeResentIsRefused() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send),
            (.upstreamEnded(.staleConnection, resendable: false), .refuse(.upstreamClosed)),
        ])
    }

    @Test func nothingIsSentAgainOnceAnAnswerHasBegun() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)),
            (.upstreamReady(reused: true), .send), (.responseBegan, .none),
            (.upstreamEnded(.staleConnection, resendable: true), .refuse(.upstreamClosed)),
        ])
    }

    @Test func aHeldResponseIsForwardedOnlyOnceItIsAccepted() {
        let asked: [(Event, Action)] = [
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.held), .hold), (.responseMoved(isBlocked: false), .wait),
        ]
        expectSteps(
            asked + [(.responseEnded, .judge), (.judged(isAccepted: true), .release), (.responseEnded, .finish)])
        expectSteps(asked + [(.responseEnded, .judge), (.judged(isAccepted: false), .refuse(.unacceptable))])
        // The beginning may be enough for a verdict.
        expectSteps(asked + [(.judged(isAccepted: false), .refuse(.unacceptable))])
        expectSteps(asked + [(.judged(isAccepted: true), .release), (.responseBroke(begun: true), .cut(.delivered))])
        // Nothing was forwarded, so the client gets an error.
        expectSteps(asked + [(.responseBroke(begun: true), .refuse(.responseBroke))])
        expectSteps(asked + [(.deadline, .refuse(.nothingMoved))])
        expectSteps(
            asked + [
                (.responseEnded, .judge), (.suspend, .pause), (.judged(isAccepted: true), .none), (.resume, .proceed),
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
        #expect(!state.movesBody)
        #expect(state.received(.head(.interim(isContinue: true))) == .forwardInterim)
        #expect(state.received(.responseEnded) == .awaitHead)
        #expect(state.patience == .idle, "the client's turn")
        #expect(state.movesBody)
        _ = state.received(.requestResumed)
        _ = state.received(.requestStalled)
        #expect(state.movesBody, "the origin takes it")
        _ = state.received(.requestSent)
        #expect(state.patience == .firstByte)
        #expect(!state.movesBody)
        #expect(state.received(.deadline) == .refuse(.noResponse))
    }

    /// The first byte's deadline ends with the attempt: it doesn't run while a retry connects.
    @Test func aRetryStopsTheClock() {
        var state = ExchangeState()
        _ = state.received(.requestArrived(expectsContinue: false, leased: false))
        _ = state.received(.upstreamReady(reused: true))
        _ = state.received(.requestSent)
        #expect(state.patience == .firstByte)
        _ = state.received(.upstreamEnded(.staleConnection, resendable: true))
        #expect(state.patience == .unlimited)
    }

    @Test func suspendedBeforeItsConnectionItSendsWhenResumed() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: false), .open(fresh: false)), (.suspend, .pause),
            (.suspend, .none), (.upstreamReady(reused: false), .none), (.deadline, .none), (.resume, .send),
            (.resume, .none), (.requestSent, .wait), (.suspend, .pause), (.resume, .proceed),
        ])
    }

    /// A cancellation is reported only to a client that has nothing of the response.
    @Test func aCancellationIsToldWhileThereIsNothingOfAResponse() {
        let begin: [(Event, Action)] = [
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
        ]
        expectSteps([begin[0], (.cancel(isTold: true), .refuse(.cancelled))])
        expectSteps(begin + [(.suspend, .pause), (.cancel(isTold: true), .refuse(.cancelled)), (.resume, .none)])
        expectSteps(begin + [(.cancel(isTold: false), .cut(.reset))])
        expectSteps(
            begin + [
                (.head(.final), .forwardFinal), (.cancel(isTold: true), .cut(.delivered)),
                (.cancel(isTold: true), .none),
            ])
        expectSteps(
            begin + [(.head(.interim(isContinue: false)), .forwardInterim), (.cancel(isTold: true), .cut(.reset))])
    }

    /// Bytes that were passed on arrive, unless the client didn't take them or closed.
    @Test func aCutDeliversWhatTheClientTook() {
        let begun = AskingAgainTests.asked + [(.head(.final), .forwardFinal)]
        for end in [Event.deadline, .cancel(isTold: false), .responseBroke(begun: true)] {
            expectSteps(begun + [(end, .cut(.delivered))])
            expectSteps(begun + [(.responseMoved(isBlocked: true), .wait), (end, .cut(.reset))])
            expectSteps(
                begun + [
                    (.responseMoved(isBlocked: true), .wait), (.responseMoved(isBlocked: false), .wait),
                    (end, .cut(.delivered)),
                ])
        }
        expectSteps(begun + [(.downstreamGone, .cut(.reset))])
    }

    @Test func anUpgradeNobodyAskedForIsRefused() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.upgrade(isWanted: false)), .refuse(.unaskedUpgrade)),
        ])
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.head(.upgrade(isWanted: true)), .refuse(.unaskedUpgrade)),
        ])
    }

    @Test func aResponseThatBreaksIsCutNotRefused() {
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.final), .forwardFinal), (.responseBroke(begun: true), .cut(.delivered)),
        ])
        expectSteps([
            (.requestArrived(expectsContinue: false, leased: true), .none), (.upstreamReady(reused: false), .send),
            (.requestSent, .wait), (.head(.final), .forwardFinal),
            (.responseBroke(begun: false), .refuse(.malformedResponse)),
        ])
    }
}
