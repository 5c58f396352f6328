package import PinproxyEventLoop

/// Happy Eyeballs (RFC 8305): the order and times of attempts to connect. Attempts overlap, a short delay apart, since
/// one family often doesn't work. A value without I/O, driven by `Dialer`; an attempt's name is its index in `order`.
package struct HappyEyeballs: Sendable {
    package enum Action: Equatable, Sendable {
        /// Connect to `order[index]`; with `startDelay`, call `attemptDelayPassed` after the delay, which replaces a
        /// running one.
        case attempt(Int, startDelay: Bool)
        case wait
        /// `order[index]` is connected: abandon the attempts in `losers`, and the delay.
        case connected(Int, losers: [Int])
        case failed
    }

    private enum State: Sendable {
        case idle
        case dialing
        case ended
    }

    /// The addresses in order of attempts. Indices of tried ones are stable.
    package private(set) var order: [SocketAddress]
    private var state = State.idle
    private var next = 0
    private var pending: Set<Int> = []
    /// The name server may find more.
    private var moreToCome: Bool
    /// The next attempt waits only for an address.
    private var isDue = false

    /// `addresses` as sorted by RFC 6724. The families alternate, beginning with the first (RFC 8305 section 4);
    /// repeated ones are tried once. With `moreToCome` it can't fail before ``add(_:moreToCome:)``.
    package init(addresses: [SocketAddress], moreToCome: Bool = false) {
        order = Self.interleaved(addresses, after: nil)
        self.moreToCome = moreToCome
    }

    /// Adds the addresses that aren't known yet.
    package mutating func add(_ addresses: [SocketAddress], moreToCome: Bool) -> Action {
        let waiting = Array(order[next...])
        order.removeSubrange(next...)
        let fresh = addresses.filter { !order.contains($0) }
        order += Self.interleaved(waiting + fresh, after: order.last)
        self.moreToCome = moreToCome
        guard case .dialing = state else { return .wait }
        return isDue || pending.isEmpty ? attemptNext() : .wait
    }

    /// Call it once, first.
    package mutating func start() -> Action {
        guard case .idle = state else { return .wait }
        state = .dialing
        return attemptNext()
    }

    /// The delay after the latest attempt passed without a connection (RFC 8305 section 5).
    package mutating func attemptDelayPassed() -> Action {
        guard case .dialing = state else { return .wait }
        isDue = true
        return next < order.count ? attemptNext() : .wait
    }

    /// The attempt failed: the next one starts at once.
    package mutating func failed(_ attempt: Int) -> Action {
        guard case .dialing = state, pending.remove(attempt) != nil else { return .wait }
        return attemptNext()
    }

    /// The attempt connected. Later ones lose.
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

    /// - Parameter last: the address tried last: the other family begins.
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
