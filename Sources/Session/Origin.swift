import EventLoop
package import HTTPWire
import Transport

/// One destination of one worker: the idle connections to it. Kept alive by whoever uses it; the
/// pool only knows where to find it.
package final class Origin {
    package let key: OriginKey
    /// The most recently used is last.
    fileprivate(set) var idle: [UpstreamConnection] = []
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
    package func takeIdle(at unixTime: Int64) -> UpstreamConnection? {
        while let connection = idle.popLast() {
            pool.idleCount -= 1
            connection.leavePool()
            if connection.validUntil > unixTime, !connection.isOver { return connection }
            connection.close()
        }
        return nil
    }

    /// An idle connection for a request of that method; nil: one has to be made. What can't be sent twice had
    /// better not be sent to a connection that is gone already.
    package func lease(for method: Method, at unixTime: Int64) -> UpstreamConnection? {
        while let idle = takeIdle(at: unixTime) {
            if method.isIdempotent || !idle.stream.isStale { return idle }
            idle.close()
        }
        return nil
    }

    /// Closes an idle connection that has ended, spoken, or waited too long.
    func drop(_ connection: UpstreamConnection) {
        guard let index = idle.lastIndex(where: { $0 === connection }) else { return }
        idle.remove(at: index)
        pool.idleCount -= 1
        connection.leavePool()
        connection.close()
    }
}

/// The idle upstream connections of one worker, by origin; last in, first out, bounded in number and
/// time. A connection that ends or speaks while it is idle is closed.
package final class UpstreamPool {
    /// Idle connections kept to one origin.
    private static let idlePerOrigin = 64
    /// Idle connections kept in all.
    private static let idleInAll = 1024

    /// An origin takes itself out when it goes. Not weak: that would slow down every use of the origin.
    private struct Known {
        unowned let origin: Origin
    }

    private var origins: [OriginKey: Known] = [:]
    fileprivate(set) package var idleCount = 0
    private var isClosed = false

    package init() {}

    package func origin(for key: OriginKey) -> Origin {
        if let known = origins[key]?.origin { return known }
        let origin = Origin(key: key, pool: self)
        origins[key] = Known(origin: origin)
        return origin
    }

    /// Takes a connection whose exchange is over, to be used again within `nanoseconds`.
    package func giveBack(_ connection: UpstreamConnection, idleNanoseconds nanoseconds: UInt64) {
        let origin = connection.origin
        // What holds bytes, or the peer's end, after its response is not idle.
        guard !isClosed, !connection.isPersonal, idleCount < Self.idleInAll, !connection.stream.holdsBytes else {
            return connection.close()
        }
        if origin.idle.count >= Self.idlePerOrigin {
            origin.drop(origin.idle[0])
        }
        origin.idle.append(connection)
        idleCount += 1
        connection.enterPool(idleNanoseconds: nanoseconds)
    }

    /// Closes the idle connections to origins that `isRetired` names, e.g. after a reload.
    package func retire(where isRetired: (OriginKey) -> Bool) {
        for origin in origins.values.map(\.origin) where isRetired(origin.key) {
            while let connection = origin.idle.last { origin.drop(connection) }
        }
    }

    /// Closes all that is idle, and whatever is given back from now on.
    package func close() {
        isClosed = true
        retire { _ in true }
    }

    fileprivate func forget(_ key: OriginKey) {
        origins[key] = nil
    }
}
