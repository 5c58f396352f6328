package import PinproxyHTTPWire

/// Time and size limits of one configuration, shared by all its destinations.
package final class ExchangeTerms: Sendable {
    package let timeouts: Timeouts
    // In nanoseconds, since every exchange needs them.
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

/// Nanoseconds that may pass without a byte.
struct Silence {
    var firstByte: UInt64 = 0
    var idle: UInt64 = 0
}

/// The destination of one authority's requests under one configuration, and its rules. Exchanges keep it over a reload.
package final class Destination {
    package let authority: Authority
    package let target: UpstreamTarget
    package let origin: Origin
    package let terms: ExchangeTerms
    /// The proxy's pseudonym in Via; nil: it adds no Via.
    package let via: ViaPseudonym?
    /// The place of the host's policy; nil: the defaults.
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
            authority: authority, target: target.limited(to: reach), origin: origin, terms: terms, via: via,
            source: source)
    }

    package var isSecure: Bool {
        if case .plain = target.layer { false } else { true }
    }

    package var defaultPort: UInt16 { isSecure ? 443 : 80 }
}

/// The place in the configuration of a host's policy, in human-readable form.
package struct PolicySource: Sendable, Hashable {
    /// As written, e.g. `*.example.com`.
    package let pattern: String
    private let file: String
    private let line: Int

    /// - Parameter line: 0: not from a file.
    package init(pattern: String, file: String, line: Int) {
        self.pattern = pattern
        self.file = file
        self.line = line
    }

    package var location: String { line > 0 ? "\(file):\(line)" : file }
}
