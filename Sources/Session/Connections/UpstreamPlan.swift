import EventLoop
import Reachability
import Security
import TLS
import Transport

/// The plan of an attempt to reach an origin: a value that takes an event and returns the next step.
///
/// It knows no socket, no buffer and no clock. ``UpstreamAttempt`` carries out its steps.
///
/// ```
/// idle → (askingOwnOrigin) → surveying → lookingUp → dialling → (destinationUnknown) → (askingParent) → (securing) → ended
///                                ↑           ↓           ↓
///                                └───────── makingRoom ──┘
/// ```
/// Whatever the order of events, the plan ends once: with ``Step/finish(_:scope:)``, with ``Step/fail(_:)``, or by
/// ``Event/cancelled``. Every event after that is ignored.
struct UpstreamPlan: Sendable, Hashable {
    private enum State: Sendable, Hashable {
        case idle
        case askingOwnOrigin
        case reaching(Reaching)
        /// The parent proxy is connected. The look-up of its destination still runs.
        case destinationUnknown
        case askingParent(AddressScope?)
        case securing(AddressScope?)
        case ended
    }

    private enum Stage: Sendable, Hashable {
        case surveying, lookingUp, dialling, makingRoom
    }

    /// The host that the parent proxy connects to, where its address rules matter.
    private enum Destination: Sendable, Hashable {
        /// No rule concerns its addresses.
        case undisputed
        case beingLookedUp
        /// It may be asked for.
        case allowed(AddressScope?)
    }

    private struct Reaching: Sendable, Hashable {
        var stage = Stage.surveying
        var destination = Destination.undisputed
        /// Why nothing but this machine's own addresses can be dialled; nil: others can.
        var isolation: UnreachableReason?
        var obstacle: Obstacle?
        var hasMadeRoom = false
    }

    enum Obstacle: Sendable, Hashable {
        case noNetwork(UnreachableReason)
        case itself(SocketAddress, asParent: Bool)
        case blocked(IPAddress, AddressGuard.Objection)

        var failure: UpstreamFailure {
            switch self {
            case .noNetwork(let reason): .noNetwork(reason)
            case .itself(let address, let asParent): .itself(address, asParent: asParent)
            case .blocked(let address, let objection): .blocked(address, objection)
            }
        }
    }

    /// An address that was found, and why it may not be connected to; nil: it may.
    struct Candidate: Sendable, Hashable {
        let address: SocketAddress
        let obstacle: Obstacle?
    }

    enum Event {
        case begun
        case notOwn
        /// - Parameters:
        ///   - isolation: why only this machine's own addresses can be dialled.
        ///   - looksUpDestination: some addresses must not be asked of the parent proxy.
        case surveyed(isolation: UnreachableReason?, looksUpDestination: Bool)
        case found([Candidate], moreToCome: Bool)
        case unresolved(ResolutionError)
        case connected(AddressScope)
        case unreachable(DialError)
        case roomMade(Bool)
        /// The addresses of the parent proxy's destination; none: they aren't known here.
        case destinationFound([Candidate])
        /// The tunnel is there. `isGreeted`: the origin has spoken.
        case parentAgreed(isGreeted: Bool)
        case parentRefused(status: Int)
        case parentFailed(String)
        /// The handshake ended well. `isOverdue`: the timer didn't get to say that the time was over.
        case secured(Verdict?, isOverdue: Bool)
        case unsecured(StreamError, Verdict?, ClientCertificateRefusal?)
        /// Something of this machine failed.
        case failed(String)
        case deadline
        case cancelled
    }

    enum Patience: Sendable, Hashable {
        case connect
        /// As little as a name server needs that is on this machine: there is no network.
        case isolated
    }

    enum Step {
        case none
        /// Connect within this process, if the host is the process's own.
        case askOwnOrigin
        case survey
        /// Look up the host that is dialled, and the parent proxy's destination if `destinationToo`.
        case lookUp(Patience, destinationToo: Bool)
        /// - Parameter anew: the deadline for connecting starts here.
        case dial([SocketAddress], moreToCome: Bool, anew: Bool)
        /// Dial these beside the others, if the others don't answer.
        case dialToo([SocketAddress], moreToCome: Bool)
        /// Give up idle connections: the process has no descriptor left.
        case makeRoom
        case askParent
        case secure
        /// Hand the connection over. A verdict is there where the target asks for one, and it accepts.
        case finish(Verdict?, scope: AddressScope?)
        case fail(UpstreamFailure)
    }

    private let layer: OriginKey.Layer
    private let host: String
    private let hasParent: Bool
    private let reach: UpstreamTarget.Reach
    private let mayBeOwn: Bool
    private var state = State.idle

    /// - Parameter mayBeOwn: an origin within this process could be what is asked for.
    init(for target: UpstreamTarget, mayBeOwn: Bool) {
        layer = target.key.layer
        host = target.host
        hasParent = target.key.parent != nil
        reach = target.reach
        self.mayBeOwn = mayBeOwn && target.key.parent == nil
    }

    var hasEnded: Bool { state == .ended }

    /// Why nothing but this machine's own addresses can be dialled; nil: others can.
    var isolation: UnreachableReason? {
        if case .reaching(let reaching) = state { reaching.isolation } else { nil }
    }

    mutating func received(_ event: Event) -> Step {
        switch (state, event) {
        case (.ended, _): return .none
        case (_, .cancelled):
            state = .ended
            return .none
        case (_, .deadline): return timedOut()
        case (_, .failed(let cause)): return fail(.local(cause))
        case (.idle, .begun):
            guard mayBeOwn, isTLS else { return survey(Reaching()) }
            state = .askingOwnOrigin
            return .askOwnOrigin
        case (.askingOwnOrigin, .notOwn): return survey(Reaching())
        case (.askingOwnOrigin, .connected(let scope)): return begin(scope)
        case (.reaching(let reaching), _): return received(event, while: reaching)
        case (.destinationUnknown, .destinationFound(let candidates)):
            if let failure = objection(to: candidates) { return fail(failure) }
            return begin(candidates.map(\.address.ip).scope)
        case (.askingParent(let scope), .parentAgreed(let isGreeted)):
            // Under TLS the client speaks first, and that is us.
            guard !isGreeted || layer == .tunnel else {
                return fail(.parentFailed("it sent bytes that no one asked for"))
            }
            return secure(scope)
        case (.askingParent, .parentRefused(let status)): return fail(.parentRefused(status: status))
        case (.askingParent, .parentFailed(let problem)): return fail(.parentFailed(problem))
        case (.securing(let scope), .secured(let verdict, let isOverdue)):
            if isOverdue { return fail(.timedOut(.tls)) }
            guard let verdict, verdict.isAccepted else {
                return fail(.local("the handshake ended without a verdict"))
            }
            state = .ended
            return .finish(verdict, scope: scope)
        case (.securing, .unsecured(let error, let verdict, let refusal)):
            if let verdict, !verdict.isAccepted { return fail(.refused(verdict)) }
            return fail(refusal.map { .clientCertificate($0) } ?? .tls(error))
        default: return .none
        }
    }

    // MARK: Name and address

    private mutating func survey(_ reaching: Reaching) -> Step {
        var reaching = reaching
        reaching.stage = .surveying
        state = .reaching(reaching)
        return .survey
    }

    private mutating func received(_ event: Event, while reaching: Reaching) -> Step {
        var reaching = reaching
        switch (reaching.stage, event) {
        case (.surveying, .surveyed(let isolation, let looksUpDestination)):
            // Once, though the address may be looked up again.
            let destinationToo = hasParent && (looksUpDestination || reach != .anywhere) && !reaching.hasMadeRoom
            if destinationToo { reaching.destination = .beingLookedUp }
            reaching.isolation = isolation
            reaching.stage = .lookingUp
            state = .reaching(reaching)
            return .lookUp(isolation == nil ? .connect : .isolated, destinationToo: destinationToo)
        case (.lookingUp, .found(let candidates, let moreToCome)), (.dialling, .found(let candidates, let moreToCome)):
            return found(candidates, moreToCome, reaching)
        case (.lookingUp, .unresolved(.noDescriptors)): return makeRoom(reaching)
        case (.lookingUp, .unresolved(let error)): return fail(.unresolved(error))
        // One that answers is good enough, though the name server didn't name them all.
        case (.dialling, .unresolved): return .dialToo([], moreToCome: false)
        case (.dialling, .connected(let scope)):
            switch reaching.destination {
            case .undisputed: return begin(hasParent ? nil : scope)
            case .allowed(let scope): return begin(scope)
            case .beingLookedUp:
                state = .destinationUnknown
                return .none
            }
        case (.dialling, .unreachable(let error)):
            if error.isLackOfDescriptors { return makeRoom(reaching) }
            // The address that would have answered is the proxy's own: that it was left out is the reason.
            if case .itself? = reaching.obstacle, let obstacle = reaching.obstacle { return fail(obstacle.failure) }
            return fail(.unreachable(error))
        case (.makingRoom, .roomMade(let isMade)): return isMade ? survey(reaching) : fail(.noDescriptors)
        case (_, .destinationFound(let candidates)) where reaching.destination == .beingLookedUp:
            if let failure = objection(to: candidates) { return fail(failure) }
            reaching.destination = .allowed(candidates.map(\.address.ip).scope)
            state = .reaching(reaching)
            return .none
        default: return .none
        }
    }

    private mutating func found(_ candidates: [Candidate], _ moreToCome: Bool, _ reaching: Reaching) -> Step {
        var reaching = reaching
        reaching.obstacle = reaching.obstacle ?? candidates.lazy.compactMap(\.obstacle).first
        let allowed = candidates.filter { $0.obstacle == nil }.map(\.address)
        let isFirst = reaching.stage == .lookingUp
        if isFirst, allowed.isEmpty, !moreToCome {
            return fail(reaching.obstacle?.failure ?? .unresolved(.noAddresses(host)))
        }
        if !allowed.isEmpty { reaching.stage = .dialling }
        state = .reaching(reaching)
        guard isFirst else { return .dialToo(allowed, moreToCome: moreToCome) }
        return allowed.isEmpty ? .none : .dial(allowed, moreToCome: moreToCome, anew: reaching.isolation != nil)
    }

    /// Idle connections are given up before a client is refused; once, since others may take what that frees.
    private mutating func makeRoom(_ reaching: Reaching) -> Step {
        guard !reaching.hasMadeRoom else { return fail(.noDescriptors) }
        var reaching = reaching
        reaching.hasMadeRoom = true
        reaching.stage = .makingRoom
        state = .reaching(reaching)
        return .makeRoom
    }

    // MARK: What the parent proxy is asked for

    /// The parent proxy looks the host up itself. A host is refused if all known addresses are blocked, or one is this
    /// proxy's listener; about an unknown one the parent decides. Where a redirect must not lead inside, one blocked
    /// address is enough, since the parent may take any.
    private func objection(to candidates: [Candidate]) -> UpstreamFailure? {
        let obstacles = candidates.compactMap(\.obstacle)
        if let first = obstacles.first, reach != .anywhere || obstacles.count == candidates.count { return first.failure }
        return reach.allows(candidates.map(\.address.ip).scope) ? nil : .unknownAddress
    }

    // MARK: Over the connection

    private var isTLS: Bool {
        if case .tls = layer { true } else { false }
    }

    /// The connection is there, and may be used.
    private mutating func begin(_ scope: AddressScope?) -> Step {
        guard hasParent, layer != .plain else { return secure(scope) }
        state = .askingParent(scope)
        return .askParent
    }

    private mutating func secure(_ scope: AddressScope?) -> Step {
        guard isTLS else {
            state = .ended
            return .finish(nil, scope: scope)
        }
        state = .securing(scope)
        return .secure
    }

    // MARK: The end

    private mutating func timedOut() -> Step {
        switch state {
        case .idle, .ended: return .none
        case .reaching(let reaching) where reaching.stage == .dialling: return fail(.timedOut(.connect))
        case .reaching(let reaching): return fail(reaching.isolation.map { .noNetwork($0) } ?? .timedOut(.nameLookup))
        case .askingOwnOrigin, .destinationUnknown: return fail(.timedOut(.connect))
        case .askingParent: return fail(.timedOut(.parent))
        case .securing: return fail(.timedOut(.tls))
        }
    }

    private mutating func fail(_ failure: UpstreamFailure) -> Step {
        let explained = failure.explained(by: isolation)
        state = .ended
        return .fail(explained)
    }
}

extension UpstreamFailure {
    /// While the internet can't be reached that is the reason, and not what it makes fail.
    func explained(by reason: UnreachableReason?) -> UpstreamFailure {
        guard let reason else { return self }
        switch self {
        case .unresolved(.timedOut), .unresolved(.serverFailure), .timedOut(.nameLookup): return .noNetwork(reason)
        case .unreachable(let error) where error.isLackOfRoutes: return .noNetwork(reason)
        default: return self
        }
    }
}
