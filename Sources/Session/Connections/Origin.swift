import EventLoop
package import HTTPWire
import Transport

// One idea with UpstreamConnection.swift: an origin keeps its idle connections, and a connection returns to its origin.

/// One destination of one worker: the idle connections to it. Kept alive by whoever uses it; the
/// pool only knows where to find it.
package final class Origin {
    package let key: OriginKey
    /// Places of idle connections in the pool's order. The most recently used is last.
    // Changed by code that calls nobody.
    @exclusivity(unchecked) fileprivate var idle: [Int] = []
    /// The configuration in force would not have made the connections to it: they are not used again. A client that waits
    /// for one may get another by that configuration, but only so often: each is a handshake with the origin.
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

    /// An idle connection for a request of that method; nil: one has to be made. What can't be sent twice had
    /// better not be sent to a connection that is gone already.
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
/// An origin keeps as many as were in use at one time lately, however many that is: whoever takes one gets the one
/// used last, so that under a load that has shrunk the others rest until their time is over. A bound below what a load
/// uses would close a connection a request and dial the next, at forty times the price of a request.
///
/// All origins together have a bound. Beyond it the connection goes that has rested longest, whosever it is. A
/// connection that ends or speaks while it is idle is closed.
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

    /// The capacity of each of so many pools of a process that may have so many descriptors open: a third of them
    /// for all pools together, so that what rests leaves room for what works. With less than its clients use at one time
    /// a pool would close connections and dial others as fast as it is asked: 5,000 clients need it under a limit of 20,000.
    package static func capacity(descriptors: Int, pools: Int) -> Int {
        min(max(descriptors / 3 / max(pools, 1), 1), largestCapacity)
    }

    package func origin(for key: OriginKey) -> Origin {
        if let known = origins[key]?.origin { return known }
        let origin = Origin(key: key, pool: self)
        origins[key] = Known(origin: origin)
        return origin
    }

    /// Takes a connection whose exchange is over, or was never begun, to be used again within `nanoseconds`; closes one
    /// that is of no use to another exchange.
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

    /// Makes room by more than what the pool can give up; nil: by that alone.
    /// - Returns: how many connections were closed.
    package var relief: (() -> Int)?
    private static let givenUp = 32

    /// No descriptor is left: gives up what rests.
    /// - Returns: whether something was, so that it is worth another try.
    func makeRoom() -> Bool { (relief?() ?? giveUp()) > 0 }

    /// Closes the connections that have rested longest, a few of them.
    /// - Returns: how many those were.
    package func giveUp() -> Int {
        var count = 0
        while count < Self.givenUp, let longest = idle.longest {
            longest.origin.drop(longest)
            count += 1
        }
        return count
    }

    /// Closes the idle connections to origins that `isRetired` names, e.g. after a reload, and those in use when they are
    /// given back. The others are as good as new, also where an earlier call named them.
    /// - Returns: how many were closed.
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

    /// Closes all idle connections, and each that is given back later. It retires no origin: the configuration is the
    /// same, and exchanges in flight may finish.
    /// - Returns: how many were idle.
    @discardableResult
    package func close() -> Int {
        isClosed = true
        return origins.values.map(\.origin).reduce(0) { $0 + closeIdle(of: $1) }
    }

    fileprivate func forget(_ key: OriginKey) {
        origins[key] = nil
    }
}
