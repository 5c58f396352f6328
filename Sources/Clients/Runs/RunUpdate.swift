/// One line of what the proxy tells `pinproxy exec` of its run: an object with one of these.
package struct RunUpdate: Codable, Sendable, Equatable {
    package var begun: RunBegun?
    /// Something was refused for the first time in this run.
    package var refusal: RunRefusal?
    /// The proxy asks something, which a ``RunAnswer`` is due for.
    package var question: RunQuestion?
    /// The last line, once the run is over or the proxy ends.
    package var summary: RunSummary?

    package init(begun: RunBegun) { self.begun = begun }
    package init(refusal: RunRefusal) { self.refusal = refusal }
    package init(question: RunQuestion) { self.question = question }
    package init(summary: RunSummary) { self.summary = summary }
}

package struct RunBegun: Codable, Sendable, Equatable {
    package let listen: [String]
    /// Whether its requests are let in: false where `proxy.users` asks for a name and a password, and none that are right came.
    package let isLetIn: Bool
    /// Whether the proxy can be asked for addresses of names (``RunNames``); nil: it is older.
    package var resolvesNames: Bool?

    package init(listen: [String], isLetIn: Bool, resolvesNames: Bool?) {
        self.listen = listen
        self.isLetIn = isLetIn
        self.resolvesNames = resolvesNames
    }
}

/// Whether a process of the run holds a connection to the proxy that shows no token.
package struct RunQuestion: Codable, Sendable, Equatable {
    package let number: UInt64
    /// The client's end: the number that `/proc/PID/fd` shows (`socket:[…]`).
    package let socket: UInt64
}

/// One line of what `pinproxy exec` tells the proxy.
package struct RunAnswer: Codable, Sendable, Equatable {
    /// The question's.
    package let number: UInt64
    package let isHeld: Bool

    package init(number: UInt64, isHeld: Bool) {
        self.number = number
        self.isHeld = isHeld
    }
}

/// What the proxy's resolver says of a name that a run asks for.
package struct ResolvedName: Codable, Sendable, Equatable {
    /// False: there is no such name.
    package let exists: Bool
    package let addresses: [String]
    /// True: nobody was asked for them, since the proxy refuses the host.
    package var refused: Bool?

    package init(exists: Bool, addresses: [String], refused: Bool? = nil) {
        self.exists = exists
        self.addresses = addresses
        self.refused = refused
    }
}

/// Why something that a run asked for was not done.
package struct RunRefusal: Codable, Sendable, Equatable, Hashable {
    /// What was asked for, `bad.test` or `bad.test:8443`; nil if that couldn't be read.
    package let host: String?
    /// One line: what happened, and where that is known, why.
    package let cause: String

    package init(host: String?, cause: String) {
        self.host = host
        self.cause = cause
    }
}

package struct RunSummary: Codable, Sendable, Equatable {
    /// What was asked of the proxy itself: each CONNECT and each request with a whole URL.
    package let requests: Int
    /// What was asked within TLS that the client speaks with the proxy: it trusts the proxy's authority.
    package let inside: Int
    /// How often each refusal that was told came, in the order in which they were told.
    package let counts: [Int]
    /// Refusals that were not told, because there were too many different ones.
    package let unlisted: Int

    package init(requests: Int, inside: Int = 0, counts: [Int], unlisted: Int) {
        self.requests = requests
        self.inside = inside
        self.counts = counts
        self.unlisted = unlisted
    }
}
