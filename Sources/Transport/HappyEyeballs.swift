package import EventLoop

/// Happy Eyeballs (RFC 8305): in which order, and when, the addresses of a host are tried. Attempts overlap, a short
/// delay apart, since one family often doesn't work.
///
/// A value without I/O, driven by `Dialer`. Attempts are named by their index in `order`.
package struct HappyEyeballs: Sendable {
    package enum Action: Equatable, Sendable {
        /// Start to connect to `order[index]`, and tell `attemptDelayPassed` after the delay if that is asked for;
        /// it replaces a delay that is still running.
        case attempt(Int, startDelay: Bool)
        case wait
        /// `order[index]` is the connection: give up the attempts in `losers`, forget the delay.
        case connected(Int, losers: [Int])
        case failed
    }

    private enum State: Sendable {
        case idle
        case dialing
        case ended
    }

    /// The addresses in the order in which they are tried. What was tried keeps its index.
    package private(set) var order: [SocketAddress]
    private var state = State.idle
    private var next = 0
    private var pending: Set<Int> = []
    /// The name server still owes some.
    private var moreToCome: Bool
    /// The next attempt needn't wait for anything but an address.
    private var isDue = false

    /// `addresses` as sorted by RFC 6724. The families alternate, beginning with the first (RFC 8305 section 4);
    /// repeated ones are tried once. With `moreToCome` it can't fail before ``add(_:moreToCome:)``.
    package init(addresses: [SocketAddress], moreToCome: Bool = false) {
        order = Self.interleaved(addresses, after: nil)
        self.moreToCome = moreToCome
    }

    /// More addresses have been found; those that are there already don't count.
    package mutating func add(_ addresses: [SocketAddress], moreToCome: Bool) -> Action {
        let waiting = Array(order[next...])
        order.removeSubrange(next...)
        let fresh = addresses.filter { !order.contains($0) }
        order += Self.interleaved(waiting + fresh, after: order.last)
        self.moreToCome = moreToCome
        guard case .dialing = state else { return .wait }
        return isDue || pending.isEmpty ? attemptNext() : .wait
    }

    /// To be told once, first of all.
    package mutating func start() -> Action {
        guard case .idle = state else { return .wait }
        state = .dialing
        return attemptNext()
    }

    /// The delay after the latest attempt is over and nothing has connected (RFC 8305 section 5).
    package mutating func attemptDelayPassed() -> Action {
        guard case .dialing = state else { return .wait }
        isDue = true
        return next < order.count ? attemptNext() : .wait
    }

    /// That attempt has failed: the next one starts at once, without waiting for the delay.
    package mutating func failed(_ attempt: Int) -> Action {
        guard case .dialing = state, pending.remove(attempt) != nil else { return .wait }
        return attemptNext()
    }

    /// That attempt has connected. Later ones of the same moment lose.
    package mutating func connected(_ attempt: Int) -> Action {
        guard case .dialing = state, pending.remove(attempt) != nil else { return .wait }
        state = .ended
        let losers = pending.sorted()
        pending = []
        return .connected(attempt, losers: losers)
    }

    private mutating func attemptNext() -> Action {
        guard next < order.count else {
            isDue = true
            guard pending.isEmpty, !moreToCome else { return .wait }
            state = .ended
            return .failed
        }
        let attempt = next
        next += 1
        isDue = false
        pending.insert(attempt)
        return .attempt(attempt, startDelay: next < order.count || moreToCome)
    }

    /// - Parameter last: what was tried last: the other family has the first turn.
    private static func interleaved(_ addresses: [SocketAddress], after last: SocketAddress?) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        var seen: Set<SocketAddress> = []
        let unique = addresses.filter { seen.insert($0).inserted }
        let isIPv6First = last.map { !$0.ip.isIPv6 } ?? first.ip.isIPv6
        let preferred = unique.filter { $0.ip.isIPv6 == isIPv6First }
        let other = unique.filter { $0.ip.isIPv6 != isIPv6First }
        var order: [SocketAddress] = []
        order.reserveCapacity(unique.count)
        for turn in 0..<max(preferred.count, other.count) {
            if turn < preferred.count { order.append(preferred[turn]) }
            if turn < other.count { order.append(other[turn]) }
        }
        return order
    }
}
