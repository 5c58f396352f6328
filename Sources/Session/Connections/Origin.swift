import EventLoop
package import HTTPWire
import Transport

// One idea with UpstreamConnection.swift: an origin keeps its idle connections, and a connection returns to its origin.

/// One destination of one worker, with its idle connections. Its users keep it alive, not the pool.
package final class Origin {
    package let key: OriginKey
    /// Places of idle connections in the pool's order. The most recently used is last.
    // Changed by code that calls nobody.
    @exclusivity(unchecked) fileprivate var idle: [Int] = []
    /// The configuration no longer makes its connections: they are not used again. A waiting client may get another
    /// connection, a limited number of times, since each costs the origin a handshake.
    package fileprivate(set) var isRetired = false
    /// The configuration, or the network, in force would not have made the connection.
    package func hasRetired(_ connection: UpstreamConnection) -> Bool {
        isRetired || connection.network != pool.network
    }

    /// Which network connections are made over: they are numbered.
    var network: UInt64 { pool.network }

    /// Held, so that an origin may outlive its worker's end; the pool doesn't hold its origins.
    private let pool: UpstreamPool

    fileprivate init(key: OriginKey, pool: UpstreamPool) {
        self.key = key
        self.pool = pool
    }

    deinit {
        pool.forget(key)
    }

    /// Takes a connection whose exchange is over, to be used again within `nanoseconds`.
    func giveBack(_ connection: UpstreamConnection, idleNanoseconds nanoseconds: UInt64) {
        pool.giveBack(connection, idleNanoseconds: nanoseconds)
    }

    /// The idle connection used last, if one is still fit at `unixTime`.
    package func takeIdle(at unixTime: Int64, within reach: UpstreamTarget.Reach = .anywhere) -> UpstreamConnection? {
        while let place = takePlace(within: reach) {
            let connection = pool.remove(at: place)
            if connection.validUntil > unixTime, !connection.isOver { return connection }
            connection.close()
        }
        return nil
    }

    private func takePlace(within reach: UpstreamTarget.Reach) -> Int? {
        if reach == .anywhere { return idle.popLast() }
        return idle.lastIndex { reach.allows(pool.scope(at: $0)) }.map { idle.remove(at: $0) }
    }

    /// An idle connection for a request of that method. One that can't be resent isn't sent to a stale connection.
    package func lease(
        for method: Method, at unixTime: Int64, within reach: UpstreamTarget.Reach = .anywhere
    ) -> UpstreamConnection? {
        while let idle = takeIdle(at: unixTime, within: reach) {
            if method.isIdempotent || !idle.stream.isStale { return idle }
            idle.close()
        }
        return nil
    }

    /// Closes an idle connection that has ended, spoken, or waited too long.
    func drop(_ connection: UpstreamConnection) {
        // Mostly it is the one that has waited longest.
        guard let place = connection.restingPlace, let index = idle.firstIndex(of: place) else { return }
        idle.remove(at: index)
        pool.remove(at: place).close()
    }
}

/// The idle upstream connections of one worker, by origin.
///
/// An origin keeps as many as were in use lately. The one used last goes first, so that after a peak the others expire.
/// A bound below the load would close and dial a connection a request, at forty times a request's price.
///
/// All origins share a bound, beyond which the longest idle connection is closed, as is one that ends or sends.
package final class UpstreamPool {
    /// Idle connections kept in all.
    private let capacity: Int
    /// All that are idle.
    // Changed by code that calls nobody.
    @exclusivity(unchecked) private var idle = RestingOrder<UpstreamConnection>()

    private struct Known {
        // unowned: an origin removes itself in its deinit. Weak would slow down every use of the origin.
        unowned let origin: Origin
    }

    private var origins: [OriginKey: Known] = [:]
    // Stored whole, or changed by code that calls nobody.
    @exclusivity(unchecked) fileprivate private(set) var network: UInt64 = 0
    @exclusivity(unchecked) private var isClosed = false

    package var idleCount: Int { idle.count }

    package init(capacity: Int = UpstreamPool.largestCapacity) {
        self.capacity = max(capacity, 1)
    }

    /// An idle connection holds some 30 KiB: with more of them than this, memory would be the dearer good.
    package static let largestCapacity = 16_384

    /// The capacity of each pool: a third of the descriptors for all of them, to leave room for active connections.
    /// 5,000 clients need that much under a limit of 20,000.
    package static func capacity(descriptors: Int, pools: Int) -> Int {
        min(max(descriptors / 3 / max(pools, 1), 1), largestCapacity)
    }

    package func origin(for key: OriginKey) -> Origin {
        if let known = origins[key]?.origin { return known }
        let origin = Origin(key: key, pool: self)
        origins[key] = Known(origin: origin)
        return origin
    }

    /// Keeps an idle connection for at most `nanoseconds`; closes one of no use to another exchange.
    package func giveBack(_ connection: UpstreamConnection, idleNanoseconds nanoseconds: UInt64) {
        let origin = connection.origin
        // What holds bytes, or the peer's end, after its response is not idle.
        guard !isClosed, origin.key.layer.isShared, !origin.hasRetired(connection), !connection.isPersonal,
            !connection.stream.holdsBytes, connection.responses.isEmpty
        else { return connection.close() }
        if idle.count >= capacity, let longest = idle.longest { longest.origin.drop(longest) }
        let place = idle.append(connection)
        origin.idle.append(place)
        connection.enterPool(at: place, idleNanoseconds: nanoseconds)
    }

    /// Takes a connection out of the order, of whose place its origin doesn't know any more.
    fileprivate func remove(at place: Int) -> UpstreamConnection {
        let connection = idle.remove(at: place)
        connection.leavePool()
        return connection
    }

    fileprivate func scope(at place: Int) -> AddressScope? { idle.connection(at: place)?.scope }

    /// Makes more room than the pool's own can give; nil: only that. Returns the number of closed connections.
    package var relief: (() -> Int)?
    private static let givenUp = 32

    /// Closes idle connections when no descriptor is left. True if another try may succeed.
    func makeRoom() -> Bool { (relief?() ?? giveUp()) > 0 }

    /// Closes a few of the longest idle connections, and returns their number.
    package func giveUp() -> Int {
        var count = 0
        while count < Self.givenUp, let longest = idle.longest {
            longest.origin.drop(longest)
            count += 1
        }
        return count
    }

    /// Closes the connections to origins that `isRetired` names, e.g. after a reload: idle ones now, others when given
    /// back. Origins that only an earlier call named are in use again.
    @discardableResult
    package func retire(where isRetired: (OriginKey) -> Bool) -> Int {
        var count = 0
        for origin in origins.values.map(\.origin) {
            origin.isRetired = isRetired(origin.key)
            if origin.isRetired { count += closeIdle(of: origin) }
        }
        return count
    }

    /// Another network is there: closes all idle connections, and those in use when they are given back.
    package func changeNetwork() {
        network += 1
        for origin in origins.values.map(\.origin) { _ = closeIdle(of: origin) }
    }

    /// Returns how many were closed.
    private func closeIdle(of origin: Origin) -> Int {
        var count = 0
        while let place = origin.idle.popLast() {
            remove(at: place).close()
            count += 1
        }
        return count
    }

    /// Closes all idle connections, and each that is given back later. No origin is retired: exchanges may finish.
    @discardableResult
    package func close() -> Int {
        isClosed = true
        return origins.values.map(\.origin).reduce(0) { $0 + closeIdle(of: $1) }
    }

    fileprivate func forget(_ key: OriginKey) {
        origins[key] = nil
    }
}
