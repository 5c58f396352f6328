import PinproxyHTTPWire

/// When a response was requested and received, in Unix seconds.
package struct ResponseTimes: Sendable, Equatable {
    package let requested: Int64
    package let received: Int64

    package init(requested: Int64, received: Int64) {
        self.requested = requested
        self.received = received
    }
}

/// The age and freshness lifetime of a stored response (RFC 9111 section 4.2).
package struct Freshness: Sendable, Equatable {
    /// The part of the time since the last change for which a response without expiry is fresh (section 4.2.2), a day
    /// at most.
    static let heuristicPart: Int64 = 10
    static let mostHeuristic: Int64 = 86_400

    /// Seconds; 0: stale from the start.
    package let lifetime: Int64
    package let isHeuristic: Bool
    /// Its age when it arrived (section 4.2.3).
    let initialAge: Int64
    let received: Int64

    package init(_ traits: CachedTraits, _ times: ResponseTimes, isShared: Bool) {
        let date = traits.date ?? times.received
        // A clock that is behind the origin's makes it younger, never less than new.
        let apparentAge = Self.seconds(from: date, to: times.received)
        initialAge = max(apparentAge, traits.age + Self.seconds(from: times.requested, to: times.received))
        received = times.received
        (lifetime, isHeuristic) = Self.lifetime(traits, date, times, isShared: isShared)
    }

    private static func lifetime(
        _ traits: CachedTraits, _ date: Int64, _ times: ResponseTimes, isShared: Bool
    ) -> (Int64, Bool) {
        if isShared, let seconds = traits.directives.sharedMaxAge { return (seconds, false) }
        if let seconds = traits.directives.maxAge { return (seconds, false) }
        switch traits.expires {
        case .invalid: return (0, false)
        case .at(let expires): return (min(seconds(from: date, to: expires), CacheDirectives.mostSeconds), false)
        case .unsaid: break
        }
        // A Date in the future would make it seem unchanged for longer.
        guard let modified = traits.lastModified, traits.allowsHeuristic else { return (0, false) }
        return (min(seconds(from: modified, to: min(date, times.received)) / heuristicPart, mostHeuristic), true)
    }

    /// 0 if `end` is earlier; never more than ``longest``, or sums could overflow.
    private static func seconds(from start: Int64, to end: Int64) -> Int64 {
        let (seconds, overflow) = end.subtractingReportingOverflow(start)
        return end <= start ? 0 : overflow ? longest : min(seconds, longest)
    }

    /// More than there are between any two dates.
    private static let longest: Int64 = 1 << 40

    /// The seconds since the origin made or confirmed it.
    package func age(at now: Int64) -> Int64 { initialAge + Self.seconds(from: received, to: now) }

    /// Seconds for which it will still be fresh; 0 or less: for how long it has been stale.
    package func rest(at now: Int64) -> Int64 {
        // The clock was set back: the resident time is unknown.
        now < received ? min(-1, lifetime - initialAge) : lifetime - age(at: now)
    }
}

extension CachedTraits {
    /// Statuses that are heuristically cacheable (RFC 9110 section 15.1).
    private static let cacheable: Set = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]

    var allowsHeuristic: Bool { directives.flags.contains(.isPublic) || Self.cacheable.contains(status) }
    var isCacheableByDefault: Bool { Self.cacheable.contains(status) }
    /// It says how long it may be used.
    func expiresExplicitly(isShared: Bool) -> Bool {
        directives.maxAge != nil || expires != .unsaid || isShared && directives.sharedMaxAge != nil
    }
}
