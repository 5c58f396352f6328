import Glibc
import PinproxyEventLoop
import PinproxyReachability
import PinproxySecurity
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySession
@testable import PinproxyTransport

/// Invariants of an attempt, whatever the order of events: the walk visits every reachable state and tries every event
/// there. No socket, no clock.
@Suite struct UpstreamPlanTests {
    typealias Event = UpstreamPlan.Event
    typealias Step = UpstreamPlan.Step
    typealias Candidate = UpstreamPlan.Candidate

    private static let good = SocketAddress(ip: address("192.0.2.1"), port: 443)
    private static let other = SocketAddress(ip: address("2001:db8::1"), port: 443)
    private static let bad = SocketAddress(ip: address("169.254.169.254"), port: 443)
    private static let own = SocketAddress(ip: address("127.0.0.1"), port: 443)
    private static let allowed = Candidate(address: good, obstacle: nil)
    private static let allowedToo = Candidate(address: other, obstacle: nil)
    private static let blocked = Candidate(address: bad, obstacle: .blocked(bad.ip, .blocked(.kind(.linkLocal))))
    private static let itself = Candidate(address: own, obstacle: .itself(own, asParent: false))

    private static func address(_ text: String) -> IPAddress { IPAddress(text)! }

    private static func dialError(_ code: CInt) -> DialError {
        DialError(attempts: [.init(address: good, error: SystemError(code: code, call: "connect"))])
    }

    private let accepted: Verdict
    private let refused: Verdict
    private let anchors: TrustAnchors

    init() throws {
        let authority = try OriginAuthority.shared.get()
        anchors = authority.anchors
        let presented = PresentedChain(leaf: authority.identity.leaf, rest: Array(authority.identity.chain.dropFirst()))
        let policy = SecurityPolicy()
        accepted = policy.evaluate(presented, host: .dns("api.test"), anchors: anchors, at: CertificateTemplate.now)
        refused = policy.evaluate(presented, host: .dns("other.test"), anchors: anchors, at: CertificateTemplate.now)
        try #require(accepted.isAccepted && !refused.isAccepted)
    }

    /// Everything that can happen, each value in all ways that matter.
    private var alphabet: [Event] {
        let lists = [
            [], [Self.allowed], [Self.blocked], [Self.itself], [Self.blocked, Self.allowed],
            [Self.allowed, Self.allowedToo],
        ]
        let verdicts = [nil, accepted, refused]
        var events: [Event] = [
            .begun, .notOwn, .connected(.inside), .connected(.outside), .roomMade(true), .roomMade(false),
            .unreachable(Self.dialError(ECONNREFUSED)), .unreachable(Self.dialError(EMFILE)),
            .unreachable(Self.dialError(ENETUNREACH)), .unresolved(.notFound("x")), .unresolved(.timedOut("x")),
            .unresolved(.noDescriptors("x")), .parentAgreed(isGreeted: true), .parentAgreed(isGreeted: false),
            .parentRefused(status: 407), .parentFailed("it closed"), .failed("no memory"), .deadline, .cancelled,
        ]
        for isolation in [nil, UnreachableReason.noLink] {
            for looksUp in [false, true] { events.append(.surveyed(isolation: isolation, looksUpDestination: looksUp)) }
        }
        for list in lists {
            events += [.found(list, moreToCome: true), .found(list, moreToCome: false), .destinationFound(list)]
        }
        for verdict in verdicts {
            events += [.secured(verdict, isOverdue: false), .secured(verdict, isOverdue: true)]
            events.append(.unsecured(.socket(ECONNRESET), verdict, nil))
        }
        return events
    }

    private func target(
        _ layer: UpstreamTarget.Layer, parent: Bool, reach: UpstreamTarget.Reach = .anywhere
    ) -> UpstreamTarget {
        let parent = parent ? ParentProxy(host: "parent.test", port: 3128) : nil
        return UpstreamTarget(
            host: "api.test", port: 443, layer: layer, upstream: UpstreamSettings(anchors: anchors, parent: parent)
        ).limited(to: reach)
    }

    private var tls: UpstreamTarget.Layer { .tls(SecurityPolicy(), anchors, .dns("api.test")) }

    private var layers: [UpstreamTarget.Layer] {
        [.plain, .tunnel, .verifiedTunnel(SecurityPolicy(), anchors, .dns("api.test")), tls]
    }

    /// Follows an attempt as a strict observer, who knows only the target, events and steps.
    private struct Observer: Hashable {
        private(set) var plan: UpstreamPlan
        let hasParent: Bool
        let wantsVerdict: Bool
        let asksParent: Bool
        let reach: UpstreamTarget.Reach

        private(set) var hasEnded = false
        private var hasBegun = false
        private var lookUps = 0
        private var dials = 0
        private var rooms = 0
        private var isAskingOwn = false
        private var isDialling = false
        private var isConnected = false
        /// The parent may not be asked before the destination was found to be allowed.
        private var destinationIsOpen = false
        private var hasAsked = false
        private var hasTunnel = false
        private var isSecuring = false

        init(_ target: UpstreamTarget, mayBeOwn: Bool) {
            plan = UpstreamPlan(for: target, mayBeOwn: mayBeOwn)
            hasParent = target.key.parent != nil
            reach = target.reach
            if case .tls = target.layer { wantsVerdict = true } else { wantsVerdict = false }
            asksParent = hasParent && target.key.layer != .plain
        }

        /// - Returns: the violated invariant, if any.
        mutating func take(_ event: Event) -> String? {
            let had = hasEnded
            let step = plan.received(event)
            if had {
                guard case .none = step else { return "\(step) after the end, by \(event)" }
                return plan.hasEnded ? nil : "begun again by \(event)"
            }
            let problem = problem(with: step, after: event)
            if case .cancelled = event { hasEnded = true }
            if case .begun = event { hasBegun = true }
            if plan.hasEnded != hasEnded { return "ended, and not ended, by \(event), which gave \(step)" }
            if case .deadline = event, hasBegun, !hasEnded { return "it waits for longer than it may" }
            return problem.map { "\($0): \(event) gave \(step)" }
        }

        private mutating func problem(with step: Step, after event: Event) -> String? {
            if case .destinationFound(let list) = event, destinationIsOpen, !hasEnded {
                if !list.isEmpty, list.allSatisfy({ $0.obstacle != nil }), !plan.hasEnded {
                    return "a blocked destination"
                }
                if reach != .anywhere, list.contains(where: { $0.obstacle != nil }), !plan.hasEnded {
                    return "a way inside"
                }
                if reach == .outside(orUnknown: false), list.isEmpty, !plan.hasEnded {
                    return "a way to who knows where"
                }
                destinationIsOpen = false
            }
            if case .parentAgreed(let isGreeted) = event, hasAsked, !isGreeted || !wantsVerdict { hasTunnel = true }
            if case .connected = event, isDialling || isAskingOwn { isConnected = true }
            if case .unreachable = event { isDialling = false }
            if case .none = step {} else { isAskingOwn = false }
            switch step {
            case .none: break
            case .askOwnOrigin:
                if hasParent || !wantsVerdict { return "not for the process itself" }
                isAskingOwn = true
            case .survey: if isConnected { return "anew though connected" }
            case .lookUp(let patience, let destinationToo):
                lookUps += 1
                if lookUps > 2 || lookUps > rooms + 1 { return "looked up for ever" }
                if destinationToo, !hasParent || lookUps > 1 { return "a destination that nobody asked for" }
                if destinationToo { destinationIsOpen = true }
                if patience == .isolated, plan.isolation == nil { return "no patience" }
            case .dial(let addresses, _, _):
                dials += 1
                if dials > lookUps { return "dialled more often than looked up" }
                if isDialling || isConnected { return "dialled twice at a time" }
                if addresses.isEmpty { return "nothing to dial" }
                isDialling = true
                return problem(with: addresses)
            case .dialToo(let addresses, _):
                if !isDialling { return "beside nothing" }
                return problem(with: addresses)
            case .makeRoom:
                rooms += 1
                isDialling = false
                if rooms > 1 { return "room made for ever" }
                if isConnected { return "room for what is there" }
            case .askParent:
                if !asksParent || !isConnected || hasAsked { return "asked out of turn" }
                if destinationIsOpen { return "asked for what may be blocked" }
                hasAsked = true
            case .secure:
                if !wantsVerdict || !isConnected || isSecuring { return "secured out of turn" }
                if asksParent, !hasTunnel { return "TLS with the parent" }
                isSecuring = true
            case .finish(let verdict, let scope):
                hasEnded = true
                if !isConnected { return "finished without a connection" }
                if destinationIsOpen { return "a destination that may be blocked" }
                if asksParent, !hasAsked { return "the parent passed by" }
                if wantsVerdict != (verdict != nil) { return "a verdict too few or too many" }
                if wantsVerdict, !isSecuring || verdict?.isAccepted != true { return "accepted without a reason" }
                if wantsVerdict {
                    guard case .secured(_?, isOverdue: false) = event else { return "not by its handshake" }
                }
                if hasParent, !reach.allows(scope) { return "a redirect to who knows where" }
            case .fail: hasEnded = true
            }
            return nil
        }

        private func problem(with addresses: [SocketAddress]) -> String? {
            addresses.allSatisfy { $0 == good || $0 == other } ? nil : "a blocked address dialled"
        }
    }

    /// Visits every state that any sequence of events reaches.
    @Test func everySequenceKeepsTheInvariants() {
        let alphabet = alphabet
        var visited = 0
        for layer in layers {
            for parent in [false, true] {
                for reach in [UpstreamTarget.Reach.anywhere, .outside(orUnknown: true), .outside(orUnknown: false)] {
                    for mayBeOwn in [false, true] {
                        let target = target(layer, parent: parent, reach: reach)
                        let first = Observer(target, mayBeOwn: mayBeOwn)
                        var known: Set<Observer> = [first]
                        var next = [first]
                        while let observer = next.popLast() {
                            for event in alphabet {
                                var follower = observer
                                if let problem = follower.take(event) {
                                    Issue.record(
                                        """
                                        \(problem)\nto \(target.key.layer), parent \(parent), \(reach)\nbefore it \
                                        \(observer.plan)
                                        """
                                    )
                                    return
                                }
                                if known.insert(follower).inserted { next.append(follower) }
                            }
                        }
                        visited += known.count
                    }
                }
            }
        }
        #expect(visited > 1_000, "only \(visited) states were reached")
    }

    // MARK: Ways that attempts go

    /// - Returns: the step after the last event.
    private func run(_ target: UpstreamTarget, mayBeOwn: Bool = false, _ events: [Event]) -> String {
        var plan = UpstreamPlan(for: target, mayBeOwn: mayBeOwn)
        var step = Step.none
        for event in events { step = plan.received(event) }
        return "\(step)"
    }

    private static let dialling: [Event] = [
        .begun, .surveyed(isolation: nil, looksUpDestination: false), .found([allowed], moreToCome: true),
    ]

    /// As after a reload of the name servers, when the new ones don't know the name.
    @Test(arguments: [ResolutionError.notFound("x"), .noDescriptors("x"), .cancelled])
    func aLookUpThatFailsLaterLeavesWhatIsDialled(error: ResolutionError) {
        let target = target(tls, parent: false)
        #expect(run(target, Self.dialling + [.unresolved(error)]) == "dialToo([], moreToCome: false)")
        #expect(run(target, Self.dialling + [.unresolved(error), .connected(.outside)]) == "secure")
    }

    @Test func aParentIsAskedOnceItsDestinationIsKnown() {
        let target = target(tls, parent: true)
        let connected: [Event] = [
            .begun, .surveyed(isolation: nil, looksUpDestination: true), .found([Self.allowed], moreToCome: false),
            .connected(.inside),
        ]
        #expect(run(target, connected) == "none")
        #expect(run(target, connected + [.destinationFound([])]) == "askParent")
        #expect(run(target, connected + [.destinationFound([Self.blocked, Self.allowed])]) == "askParent")
        #expect(
            run(target, connected + [.destinationFound([Self.blocked])]).hasPrefix(
                "fail(PinproxySession.UpstreamFailure.blocked"))
        #expect(
            run(target, connected + [.deadline]).hasSuffix("timedOut(PinproxySession.UpstreamFailure.Step.connect))"))
    }

    @Test func roomIsMadeOnce() {
        let target = target(tls, parent: false)
        let short = Self.dialling + [.unreachable(Self.dialError(EMFILE))]
        #expect(run(target, short) == "makeRoom")
        #expect(run(target, short + [.roomMade(false)]).hasSuffix("noDescriptors)"))
        #expect(run(target, short + [.roomMade(true)]) == "survey")
        let again = short + [.roomMade(true), .surveyed(isolation: nil, looksUpDestination: false)]
        #expect(run(target, again + [.unresolved(.noDescriptors("x"))]).hasSuffix("noDescriptors)"))
    }

    /// Without a network, the network is the reason given, not the failures that follow from it.
    @Test func isolationIsTheReasonOfWhatItMakesFail() {
        let target = target(tls, parent: false)
        let isolated: [Event] = [.begun, .surveyed(isolation: .noLink, looksUpDestination: false)]
        #expect(run(target, isolated).hasPrefix("lookUp(PinproxySession.UpstreamPlan.Patience.isolated"))
        for event in [Event.deadline, .unresolved(.timedOut("x"))] {
            #expect(run(target, isolated + [event]).contains("noNetwork"))
        }
        #expect(run(target, isolated + [.unresolved(.notFound("x"))]).contains("no such host"))
        let dialled = isolated + [.found([Self.allowed], moreToCome: false)]
        #expect(run(target, dialled).hasSuffix("anew: true)"))
        #expect(run(target, dialled + [.unreachable(Self.dialError(ENETUNREACH))]).contains("noNetwork"))
        #expect(run(target, dialled + [.unreachable(Self.dialError(ECONNREFUSED))]).contains("unreachable"))
    }
}
