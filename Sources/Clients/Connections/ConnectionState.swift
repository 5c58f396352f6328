/// What a client's connection has become: requests to the proxy, a CONNECT on its way, the inside of an intercepted
/// connection, or bytes that are relayed.
///
/// A value without sockets: ``ClientConnection`` tells it what happened, and does what it says.
package struct ConnectionState: Hashable {
    package enum Phase: Hashable {
        /// Requests are for the proxy itself.
        case open
        /// A CONNECT waits for its upstream connection.
        case connecting(Attempt)
        /// `200` is being written.
        case answering(Passage)
        /// The client was answered, and has yet to speak.
        case awaitingHandshake
        /// The client's TLS handshake with a minted leaf.
        case securing
        /// Requests are for the authority of CONNECT.
        case inside
        /// A tunnel's TLS handshake passes by and is judged.
        case verifying
        /// Bytes pass unread: a tunnel, or another protocol after an upgrade.
        case relaying
        case closed
    }

    /// Which upstream connection a CONNECT waits for.
    package enum Attempt: Hashable {
        case asAsked
        /// The same port in the clear, since its server doesn't seem to speak TLS.
        case plain
        /// One with TLS, for a client that was answered over a plain one and speaks TLS all the same.
        case secure
    }

    /// What a CONNECT is answered for.
    package enum Passage: Hashable {
        /// The client's requests are read.
        case inspected
        /// The same with nothing behind it but a refusal, which answers each of them.
        case refusal
        case tunnel
        case verifiedTunnel
    }

    /// What a client says first inside its CONNECT.
    package enum FirstWords: Hashable {
        case request
        /// A TLS handshake, or what TLS says best what is wrong with.
        /// - Parameter isServed: what the client gets inside TLS is at hand.
        case handshake(isServed: Bool)
        /// A handshake for a host that the configuration in force refuses.
        case refusedHandshake
        /// Neither, or the end.
        case other
    }

    package enum ConnectFailure: Hashable {
        /// The server seems to speak plain HTTP, and the policy lets that through.
        case mayBePlain
        /// The client sees the refusal inside its CONNECT.
        case shown
        case told
    }

    package enum TunnelRuling: Hashable { case verified, refused, failed }

    /// What happened. What comes while the task is suspended is kept until it is resumed.
    package enum Event: Hashable {
        /// A CONNECT may be made.
        case connect
        case connected(Passage)
        /// A reload retired what the attempt was made by.
        case overtaken
        case connectFailed(ConnectFailure)
        /// `200` was written.
        /// - Parameter isRetired: a reload retired the connection of a tunnel meanwhile.
        case answered(isRetired: Bool)
        case spoke(FirstWords)
        /// The client's TLS handshake ended.
        case secured(isWhole: Bool)
        case judged(TunnelRuling)
        /// An exchange switched protocols.
        case upgraded
        case deadline
        /// By the user, or by the end of the proxy, outside an exchange.
        case cancel
        case suspend, resume, closed
    }

    /// What the connection does now.
    package enum Action: Hashable {
        case none
        case open(Attempt)
        /// Decide about the CONNECT again.
        case decideAnew
        /// Write `200`.
        case answer(Passage)
        /// Refuse the request.
        case refuse
        /// Await the client's first bytes.
        case awaitHandshake
        case secure
        /// Read requests off the connection.
        case serve
        case verify
        case relay
        /// Send a TLS alert.
        case alert
        /// Close without an answer.
        case fail
        /// Close, since nothing came in time.
        case giveUp
        /// End both sides at once.
        case cut
        case pause, goOn
    }

    package private(set) var phase = Phase.open
    package private(set) var isSuspended = false
    /// A connection with TLS was asked for after the answer. It isn't asked for twice.
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
            // A request's own suspension is the request's.
            guard !isSuspended, !takesRequests else { return .none }
            isSuspended = true
            return .pause
        case .resume:
            guard isSuspended else { return .none }
            isSuspended = false
            return .goOn
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

    /// - Parameter end: for a client that was answered already.
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

    /// A CONNECT has begun, and its connections take more memory from step to step.
    package var isConnecting: Bool {
        switch phase {
        case .connecting, .answering, .awaitingHandshake, .securing, .verifying: true
        case .open, .inside, .relaying, .closed: false
        }
    }

    /// Requests are read off the connection.
    package var takesRequests: Bool { phase == .open || phase == .inside }

    /// What a CONNECT is doing, for people; nil: it is for the request to say.
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
