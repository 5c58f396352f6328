import PinproxyEventLoop
import PinproxyReachability
import PinproxySecurity
import PinproxyTLS
import PinproxyTransport

/// The plan of an attempt to reach an origin: a value that takes an event and returns the next step, without sockets,
/// buffers or a clock. ``UpstreamAttempt`` carries out its steps.
///
/// ```
/// idle → (askingOwnOrigin) → surveying → lookingUp → dialling → (destinationUnknown) → (askingParent) → (securing) →
/// ended
///                                ↑           ↓           ↓
///                                └───────── makingRoom ──┘
/// ```
/// Whatever the order of events, the plan ends once: with ``Step/finish(_:scope:)``, ``Step/fail(_:)`` or
/// ``Event/cancelled``. Later events are ignored.
struct UpstreamPlan: Sendable, Hashable {
    private enum State: Sendable, Hashable {
        case idle
        case askingOwnOrigin
        case reaching(Reaching)
        /// The parent proxy is connected; its destination is still being looked up.
        case destinationUnknown
        case askingParent(AddressScope?)
        case securing(AddressScope?)
        case ended
    }

    private enum Stage: Sendable, Hashable {
        case surveying, lookingUp, dialling, makingRoom
    }

    /// The parent proxy's destination, where address rules matter.
    private enum Destination: Sendable, Hashable {
        /// No address rule applies.
        case undisputed
        case beingLookedUp
        case allowed(AddressScope?)
    }

    private struct Reaching: Sendable, Hashable {
        var stage = Stage.surveying
        var destination = Destination.undisputed
        /// Why only this machine's own addresses can be dialled, if so.
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

    /// An address found, and why it may not be dialled.
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
        /// The addresses of the parent proxy's destination; empty: unknown here.
        case destinationFound([Candidate])
        /// The tunnel is established. `isGreeted`: the origin has sent something.
        case parentAgreed(isGreeted: Bool)
        case parentRefused(status: Int)
        case parentFailed(String)
        /// The handshake succeeded. `isOverdue`: after the deadline, before its timer fired.
        case secured(Verdict?, isOverdue: Bool)
        case unsecured(StreamError, Verdict?, ClientCertificateRefusal?)
        /// A local failure.
        case failed(String)
        case deadline
        case cancelled
    }

    enum Patience: Sendable, Hashable {
        case connect
        /// A short limit: without a network only a local name server can answer.
        case isolated
    }

    enum Step {
        case none
        /// Connect within this process if the host is its own.
        case askOwnOrigin
        case survey
        /// Look up the dialled host, and the parent proxy's destination if `destinationToo`.
        case lookUp(Patience, destinationToo: Bool)
        /// - Parameter anew: restart the deadline for connecting.
        case dial([SocketAddress], moreToCome: Bool, anew: Bool)
        /// Dial these too if the others don't answer.
        case dialToo([SocketAddress], moreToCome: Bool)
        /// Close idle connections: no descriptor is left.
        case makeRoom
        case askParent
        case secure
        /// Hand over the connection, with an accepting verdict if the target asks for one.
        case finish(Verdict?, scope: AddressScope?)
        case fail(UpstreamFailure)
    }

    private let layer: OriginKey.Layer
    private let host: String
    private let hasParent: Bool
    private let reach: UpstreamTarget.Reach
    private let mayBeOwn: Bool
    private var state = State.idle

    /// - Parameter mayBeOwn: the host may be an origin within this process.
    init(for target: UpstreamTarget, mayBeOwn: Bool) {
        layer = target.key.layer
        host = target.host
        hasParent = target.key.parent != nil
        reach = target.reach
        self.mayBeOwn = mayBeOwn && target.key.parent == nil
    }

    var hasEnded: Bool { state == .ended }

    /// Why only this machine's own addresses can be dialled, if so.
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
            // Under TLS the client, this proxy, speaks first.
            guard !isGreeted || layer == .tunnel else {
                return fail(.parentFailed("it sent unrequested bytes"))
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
            if let verdict, !verdict.isAccepted { return fail(.refused(verdict, nil)) }
            return fail(refusal.map { .clientCertificate($0) } ?? .tls(error, nil))
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
        // A connected address is good enough, though the look-up of others failed.
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
            // Only the proxy's own address was left out: report that.
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

    /// Closes idle connections before a client is refused; once, since others may take what that frees.
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
    /// proxy's listener; unknown addresses are the parent's matter. Where a redirect must not lead inside, one blocked
    /// address is enough, since the parent may take any.
    private func objection(to candidates: [Candidate]) -> UpstreamFailure? {
        let obstacles = candidates.compactMap(\.obstacle)
        if let first = obstacles.first, reach != .anywhere || obstacles.count == candidates.count {
            return first.failure
        }
        return reach.allows(candidates.map(\.address.ip).scope) ? nil : .unknownAddress
    }

    // MARK: Over the connection

    private var isTLS: Bool {
        if case .tls = layer { true } else { false }
    }

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
    /// Without the internet, that is the reason reported rather than its consequence.
    func explained(by reason: UnreachableReason?) -> UpstreamFailure {
        guard let reason else { return self }
        switch self {
        case .unresolved(.timedOut), .unresolved(.serverFailure), .timedOut(.nameLookup): return .noNetwork(reason)
        case .unreachable(let error) where error.isLackOfRoutes: return .noNetwork(reason)
        default: return self
        }
    }
}
