/// The state of a client's connection, without sockets: ``ClientConnection`` reports events and performs actions.
package struct ConnectionState: Hashable {
    package enum Phase: Hashable {
        /// Requests are for the proxy itself.
        case open
        case connecting(Attempt)
        case answering(Passage)
        /// The client was answered, and has yet to speak.
        case awaitingHandshake
        /// TLS handshake with the client, with a minted leaf.
        case securing
        /// Requests are for the authority of CONNECT.
        case inside
        /// A tunnel's TLS handshake is judged.
        case verifying
        /// Bytes pass unread: a tunnel, or an upgraded protocol.
        case relaying
        case closed
    }

    /// The upstream connection that a CONNECT waits for.
    package enum Attempt: Hashable {
        case asAsked
        /// Plain HTTP to the same port, where the server seems to speak no TLS.
        case plain
        /// With TLS, for a client that speaks it after CONNECT was answered over a plain one.
        case secure
    }

    package enum Passage: Hashable {
        /// The client's requests are read.
        case inspected
        /// Each request is answered with a refusal.
        case refusal
        case tunnel
        case verifiedTunnel
    }

    /// The client's first bytes inside CONNECT.
    package enum FirstWords: Hashable {
        case request
        /// A TLS handshake, or bytes that TLS rejects best.
        /// - Parameter isServed: the proxy can serve TLS to the client.
        case handshake(isServed: Bool)
        case refusedHandshake
        /// Other bytes, or the end of input.
        case other
    }

    package enum ConnectFailure: Hashable {
        /// The server seems to speak plain HTTP, which the policy allows.
        case mayBePlain
        /// The client sees the refusal inside its CONNECT.
        case shown
        case told
    }

    package enum TunnelRuling: Hashable { case verified, refused, failed }

    /// While the task is suspended, results are kept.
    package enum Event: Hashable {
        case connect
        case connected(Passage)
        /// A reload retired the attempt's route.
        case overtaken
        case connectFailed(ConnectFailure)
        /// - Parameter isRetired: a reload retired the tunnel's connection meanwhile.
        case answered(isRetired: Bool)
        case spoke(FirstWords)
        case secured(isWhole: Bool)
        case judged(TunnelRuling)
        case upgraded
        case deadline
        /// By the user, or by the end of the proxy, outside an exchange.
        case cancel
        case suspend, resume, closed
    }

    package enum Action: Hashable {
        case none
        case open(Attempt)
        case decideAnew
        case answer(Passage)
        case refuse
        case awaitHandshake
        case secure
        /// Read requests off the connection.
        case serve
        case verify
        case relay
        case alert
        /// Close without an answer.
        case fail
        case giveUp
        /// End both sides at once.
        case cut
        case pause, proceed
    }

    package private(set) var phase = Phase.open
    package private(set) var isSuspended = false
    /// A TLS connection was tried after the answer. There is no second try.
    private var triedSecurely = false

    package init() {}

    package mutating func received(_ event: Event) -> Action {
        guard phase != .closed else { return .none }
        switch event {
        case .closed:
            phase = .closed
            isSuspended = false
            return .none
        case .suspend:
            guard !isSuspended, !takesRequests else { return .none }
            isSuspended = true
            return .pause
        case .resume:
            guard isSuspended else { return .none }
            isSuspended = false
            return .proceed
        case .deadline: return interrupted(or: .giveUp)
        case .cancel: return interrupted(or: .cut)
        case .upgraded:
            guard takesRequests else { return .cut }
            phase = .relaying
            return .relay
        case .connect, .connected, .overtaken, .connectFailed, .answered, .spoke, .secured, .judged:
            return isSuspended ? .none : advanced(event)
        }
    }

    private mutating func advanced(_ event: Event) -> Action {
        switch (phase, event) {
        case (.open, .connect): return go(to: .connecting(.asAsked), .open(.asAsked))
        case (.connecting(.secure), .connected), (.connecting(.secure), .connectFailed(.shown)):
            return go(to: .awaitingHandshake, .awaitHandshake)
        case (.connecting(.secure), .overtaken): return .fail
        case (.connecting(.secure), .connectFailed): return go(to: .open, .alert)
        case (.connecting, .connected(let passage)): return go(to: .answering(passage), .answer(passage))
        case (.connecting, .overtaken): return go(to: .open, .decideAnew)
        case (.connecting(.asAsked), .connectFailed(.mayBePlain)): return go(to: .connecting(.plain), .open(.plain))
        case (.connecting, .connectFailed(.shown)): return go(to: .answering(.refusal), .answer(.refusal))
        case (.connecting, .connectFailed): return go(to: .open, .refuse)
        case (.answering(let passage), .answered(let isRetired)): return answered(passage, isRetired)
        case (.awaitingHandshake, .spoke(let words)): return spoke(words)
        case (.securing, .secured(isWhole: true)): return go(to: .inside, .serve)
        case (.securing, .secured(isWhole: false)): return .fail
        case (.verifying, .judged(.verified)): return go(to: .relaying, .relay)
        case (.verifying, .judged(.refused)): return go(to: .open, .alert)
        case (.verifying, .judged(.failed)): return .fail
        default: return .none
        }
    }

    private mutating func answered(_ passage: Passage, _ isRetired: Bool) -> Action {
        switch passage {
        case .inspected, .refusal: go(to: .awaitingHandshake, .awaitHandshake)
        case .tunnel: isRetired ? .fail : go(to: .relaying, .relay)
        case .verifiedTunnel: isRetired ? .fail : go(to: .verifying, .verify)
        }
    }

    private mutating func spoke(_ words: FirstWords) -> Action {
        switch words {
        case .request: return go(to: .inside, .serve)
        case .handshake(isServed: true): return go(to: .securing, .secure)
        case .handshake(isServed: false):
            guard !triedSecurely else { return .fail }
            triedSecurely = true
            return go(to: .connecting(.secure), .open(.secure))
        case .refusedHandshake: return go(to: .open, .alert)
        case .other: return .fail
        }
    }

    /// - Parameter end: if the client was answered already.
    private mutating func interrupted(or end: Action) -> Action {
        switch phase {
        case .connecting(.asAsked), .connecting(.plain):
            isSuspended = false
            return go(to: .open, .refuse)
        default: return end
        }
    }

    private mutating func go(to next: Phase, _ action: Action) -> Action {
        phase = next
        return action
    }

    /// A CONNECT is being made: its memory grows with each step.
    package var isConnecting: Bool {
        switch phase {
        case .connecting, .answering, .awaitingHandshake, .securing, .verifying: true
        case .open, .inside, .relaying, .closed: false
        }
    }

    package var takesRequests: Bool { phase == .open || phase == .inside }

    /// The state of a CONNECT, in human-readable form; nil: use the request's.
    package var words: String? {
        switch phase {
        case .open, .inside, .closed: nil
        case .connecting: "connecting"
        case .answering: "answering CONNECT"
        case .awaitingHandshake, .securing: "TLS handshake with the client"
        case .verifying: "verifying the tunnel"
        case .relaying: "relaying"
        }
    }
}
