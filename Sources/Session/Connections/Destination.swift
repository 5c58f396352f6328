package import HTTPWire

/// How long things may take, and how large they may be, under one configuration: shared by all its destinations.
package final class ExchangeTerms: Sendable {
    package let timeouts: Timeouts
    // As the loop counts them: every exchange needs them.
    let silence: Silence
    let idleUpstreamNanoseconds: UInt64
    package let limits: Limits

    package init(timeouts: Timeouts, limits: Limits) {
        self.timeouts = timeouts
        silence = Silence(firstByte: timeouts.firstByte.nanoseconds, idle: timeouts.idleClient.nanoseconds)
        idleUpstreamNanoseconds = timeouts.idleUpstream.nanoseconds
        self.limits = limits
    }
}

/// How long an exchange goes on without a byte, in nanoseconds.
struct Silence {
    /// While the origin's answer is awaited.
    var firstByte: UInt64 = 0
    var idle: UInt64 = 0
}

/// Where requests for one authority go under one configuration, and its rules. Exchanges keep it over a reload.
package final class Destination {
    package let authority: Authority
    package let target: UpstreamTarget
    package let origin: Origin
    package let terms: ExchangeTerms
    /// The name under which the proxy records itself in Via; nil: it doesn't.
    package let via: ViaPseudonym?
    /// Where it is written what holds for the host; nil: in the defaults.
    package let source: PolicySource?

    package init(
        authority: Authority, target: UpstreamTarget, origin: Origin, terms: ExchangeTerms,
        via: ViaPseudonym?, source: PolicySource? = nil
    ) {
        self.authority = authority
        self.target = target
        self.origin = origin
        self.terms = terms
        self.via = via
        self.source = source
    }

    func limited(to reach: UpstreamTarget.Reach) -> Destination {
        guard reach != target.reach else { return self }
        return Destination(
            authority: authority, target: target.limited(to: reach), origin: origin, terms: terms, via: via, source: source)
    }

    package var isSecure: Bool {
        if case .plain = target.layer { false } else { true }
    }

    package var defaultPort: UInt16 { isSecure ? 443 : 80 }
}

/// Where a configuration says what holds for a host, for people.
package struct PolicySource: Sendable, Hashable {
    /// As it was written, e.g. `*.example.com`.
    package let pattern: String
    private let file: String
    private let line: Int

    /// - Parameter line: 0: it is written in no file.
    package init(pattern: String, file: String, line: Int) {
        self.pattern = pattern
        self.file = file
        self.line = line
    }

    /// `FILE:LINE`; made when it is asked for, which is when something went wrong.
    package var location: String { line > 0 ? "\(file):\(line)" : file }
}
