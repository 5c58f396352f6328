import Testing

@testable import PinproxySession

/// Requests that are sent more than once: redirects, challenges and interrupted downloads.
@Suite struct AskingAgainTests {
    private typealias Event = ExchangeState.Event
    private typealias Action = ExchangeState.Action
    private static let limits = ExchangeStateTests.limits

    static let asked: [ExchangeStep] = [
        (.requestArrived(expectsContinue: false, leased: false, limits: limits), .open(fresh: false)),
        (.upstreamReady(reused: false), .send), (.requestSent, .wait),
    ]

    @Test func aRedirectIsFollowedWithoutItsBody() {
        expectSteps(
            Self.asked + [
                (.head(.askAgain(.redirect)), .askAgain), (.upstreamReady(reused: true), .resend),
                (.requestSent, .wait),
                // A pooled connection may be stale at each hop.
                (.upstreamEnded(.staleConnection, resendable: true), .open(fresh: true)),
                (.upstreamReady(reused: false), .resend),
                (.requestSent, .wait), (.head(.final), .forwardFinal), (.responseEnded, .finish),
            ])
    }

    @Test func aRedirectMayComeBeforeTheWholeRequest() {
        expectSteps(
            Self.asked.dropLast() + [
                (.head(.askAgain(.redirect)), .askAgain), (.upstreamReady(reused: false), .resend),
            ])
    }

    @Test func redirectsAndChallengesEnd() {
        let again: [(Event, Action)] = [
            (.upstreamReady(reused: false), .resend), (.requestSent, .wait),
        ]
        let redirect = [(Event.head(.askAgain(.redirect)), Action.askAgain)] + again
        expectSteps(Self.asked + redirect + [(.head(.askAgain(.redirect)), .refuse(.notAskedAgain))])
        let challenge = [(Event.head(.askAgain(.challenge)), Action.askAgain)] + again
        expectSteps(Self.asked + challenge + [(.head(.askAgain(.challenge)), .refuse(.notAskedAgain))])
        // Each hop may send a challenge.
        expectSteps(Self.asked + challenge + redirect + challenge + [(.head(.final), .forwardFinal)])
    }

    /// The end of an unused response is not awaited.
    @Test func aResponseThatIsOfNoUseIsNotWaitedFor() {
        for event in [Event.responseBroke(begun: true), .deadline, .responseEnded, .responseMoved(isBlocked: true)] {
            let action = event == .responseMoved(isBlocked: true) ? Action.wait : .none
            expectSteps(
                Self.asked + [
                    (.head(.askAgain(.challenge)), .askAgain), (event, action),
                    (.upstreamReady(reused: false), .resend),
                ])
        }
        expectSteps(Self.asked + [(.head(.askAgain(.challenge)), .askAgain), (.downstreamGone, .cut(.reset))])
    }

    private static let broke: [(Event, Action)] =
        asked + [
            (.head(.final), .forwardFinal), (.responseMoved(isBlocked: false), .wait),
            (.responseBroke(begun: true, resumption: .possible(progressed: true)), .reopen),
        ]

    @Test func anInterruptedDownloadIsContinued() {
        expectSteps(
            Self.broke + [
                (.upstreamReady(reused: false), .resend), (.requestSent, .wait), (.head(.rest), .takeUp),
                (.responseMoved(isBlocked: false), .wait), (.responseEnded, .finish),
            ])
    }

    @Test func aDownloadIsNotContinuedForEver() {
        expectSteps(
            Self.broke + [
                (.upstreamFailed(isFinal: false), .reopen), (.upstreamFailed(isFinal: false), .cut(.delivered)),
            ])
        expectSteps(Self.broke + [(.upstreamFailed(isFinal: true), .cut(.delivered))])
        expectSteps(
            Self.broke + [
                (.upstreamReady(reused: false), .resend), (.requestSent, .wait), (.head(.notNow), .reopen),
                (.upstreamReady(reused: false), .resend), (.deadline, .cut(.delivered)),
            ])
        // It is resumed as long as it makes progress.
        var further = Self.broke
        for _ in 0..<10 {
            further += [
                (.upstreamReady(reused: false), .resend), (.requestSent, .wait), (.head(.rest), .takeUp),
                (.responseBroke(begun: true, resumption: .possible(progressed: true)), .reopen),
            ]
        }
        expectSteps(further)
    }

    /// The client already has a part: another entity's bytes must not follow it, nor another head.
    @Test(arguments: [
        ExchangeState.Head.another, .final, .held, .malformed, .interim(isContinue: false), .askAgain(.redirect),
    ])
    func nothingButTheRestFollows(head: ExchangeState.Head) {
        expectSteps(
            Self.broke + [
                (.upstreamReady(reused: false), .resend), (.requestSent, .wait), (.head(head), .cut(.delivered)),
            ])
    }

    @Test func whatIsHeldBackIsContinuedToo() {
        let broke: [(Event, Action)] =
            Self.asked + [
                (.head(.held), .hold), (.responseBroke(begun: true, resumption: .possible(progressed: false)), .reopen),
                (.upstreamReady(reused: false), .resend), (.requestSent, .wait),
            ]
        expectSteps(
            broke + [
                (.head(.rest), .takeUp), (.responseEnded, .judge), (.judged(isAccepted: true), .release),
                (.responseEnded, .finish),
            ])
        expectSteps(broke + [(.head(.another), .refuse(.entityChanged))])
    }
}
