/// A line from the proxy to `pinproxy exec`: an object with one of these.
package struct RunUpdate: Codable, Sendable, Equatable {
    package var begun: RunBegun?
    /// The first of its kind in this run.
    package var refusal: RunRefusal?
    /// Needs a ``RunAnswer``.
    package var question: RunQuestion?
    package var summary: RunSummary?

    package init(begun: RunBegun) { self.begun = begun }
    package init(refusal: RunRefusal) { self.refusal = refusal }
    package init(question: RunQuestion) { self.question = question }
    package init(summary: RunSummary) { self.summary = summary }
}

package struct RunBegun: Codable, Sendable, Equatable {
    package let listen: [String]
    /// False: `proxy.users` wants credentials, and none that are right came.
    package let isLetIn: Bool
    /// Whether the proxy resolves names (``RunNames``); nil: it is older.
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
    /// The inode of the client's socket, as in `/proc/PID/fd` (`socket:[…]`).
    package let socket: UInt64
}

/// A line from `pinproxy exec` to the proxy.
package struct RunAnswer: Codable, Sendable, Equatable {
    package let number: UInt64
    package let isHeld: Bool

    package init(number: UInt64, isHeld: Bool) {
        self.number = number
        self.isHeld = isHeld
    }
}

/// The proxy's answer about a name.
package struct ResolvedName: Codable, Sendable, Equatable {
    /// False: there is no such name.
    package let exists: Bool
    package let addresses: [String]
    /// True: not looked up, since the proxy refuses the host.
    package var refused: Bool?

    package init(exists: Bool, addresses: [String], refused: Bool? = nil) {
        self.exists = exists
        self.addresses = addresses
        self.refused = refused
    }
}

package struct RunRefusal: Codable, Sendable, Equatable, Hashable {
    /// `bad.test` or `bad.test:8443`; nil: unreadable.
    package let host: String?
    /// One line.
    package let cause: String
    /// Words for `pinproxy explain` besides the host, where rules decided about a request: `--path`, `/v1/x`.
    package private(set) var options: [String]?

    package init(host: String?, cause: String, options: [String]? = nil) {
        self.host = host
        self.cause = cause
        self.options = options
    }

    /// The part that repeated refusals have in common.
    package var kind: RunRefusal { RunRefusal(host: host, cause: cause) }
}

package struct RunSummary: Codable, Sendable, Equatable {
    /// Each CONNECT, and each request with a whole URL.
    package let requests: Int
    /// Requests inside the client's TLS: it trusts the proxy's authority.
    package let inside: Int
    /// The count of each reported refusal, in order.
    package let counts: [Int]
    /// Refusals beyond the limit of distinct ones.
    package let unlisted: Int

    package init(requests: Int, inside: Int = 0, counts: [Int], unlisted: Int) {
        self.requests = requests
        self.inside = inside
        self.counts = counts
        self.unlisted = unlisted
    }
}
