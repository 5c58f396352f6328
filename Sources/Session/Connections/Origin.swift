import PinproxyEventLoop
package import PinproxyHTTPWire
import PinproxyTransport

// One idea with UpstreamConnection.swift: an origin keeps its idle connections, and a connection returns to its origin.

/// An exchange's requirement for its connection.
package enum ConnectionNeed: Sendable {
    case any
    /// An open send window for a body. A window filled by others' bodies may stay full as long as the origin doesn't
    /// read.
    case window
    /// A protocol other than HTTP: an unshared connection, or one that takes extended CONNECTs (RFC 8441).
    case upgrade
    /// An unshared connection.
    case own
    /// A new connection and its first stream: existing ones have refused it repeatedly.
    case fresh

    /// Whether it has no shared connection.
    var isOfItsOwn: Bool {
        switch self {
        case .any, .window, .fresh: false
        case .upgrade, .own: true
        }
    }
}

/// One destination of one worker, with its idle connections. Its users hold it, the pool doesn't.
package final class Origin {
    package let key: OriginKey
    /// Its idle connections' places in the pool's order, most recently used last.
    // Changed by code that calls no other code.
    @exclusivity(unchecked) fileprivate var idle: [Int] = []
    /// The connections that exchanges share, in use or idle. Each leaves when it closes, which its deadlines bound.
    @exclusivity(unchecked) package private(set) var shared: [HTTP2Upstream] = []
    /// The protocol of its last connection; nil: unknown.
    package internal(set) var chosenProtocol: HTTPProtocol?
    /// The connection attempt that several exchanges wait for.
    var attempt: SharedAttempt?
    /// Whether the configuration has replaced it: its connections are not used again. A waiting client may get another
    /// connection, a limited number of times, since each costs the origin a handshake.
    package fileprivate(set) var isRetired = false
    /// Whether the current configuration or network would not have made the connection.
    package func hasRetired(_ connection: UpstreamConnection) -> Bool {
        isRetired || connection.network != pool.network
    }

    /// The number of the network that connections are made over.
    var network: UInt64 { pool.network }

    /// Strong: an origin may outlive its worker. The pool doesn't hold its origins.
    private let pool: UpstreamPool

    fileprivate init(key: OriginKey, pool: UpstreamPool) {
        self.key = key
        self.pool = pool
    }

    deinit {
        pool.forget(key)
    }

    /// Keeps a connection after its exchange, for reuse within `nanoseconds`.
    func giveBack(_ connection: UpstreamConnection, idleNanoseconds nanoseconds: UInt64) {
        pool.giveBack(connection, idleNanoseconds: nanoseconds)
    }

    /// The most recently used idle connection of one exchange at a time, still fit at `unixTime`.
    package func takeIdle(at unixTime: Int64, within reach: UpstreamTarget.Reach = .anywhere) -> HTTP1Upstream? {
        while let place = takePlace(within: reach) {
            let connection = pool.remove(at: place)
            if connection.validUntil > unixTime, !connection.isOver, let idle = connection as? HTTP1Upstream {
                return idle
            }
            connection.close()
        }
        return nil
    }

    private func takePlace(within reach: UpstreamTarget.Reach) -> Int? {
        if reach == .anywhere { return idle.popLast() }
        return idle.lastIndex { reach.allows(pool.scope(at: $0)) }.map { idle.remove(at: $0) }
    }

    /// Leases an upstream for a request: a stream of a shared connection, or an idle connection. A request that can't
    /// be resent gets no stale connection.
    /// - Parameter need: the requirements for the connection.
    package func lease(
        for method: Method, at unixTime: Int64, within reach: UpstreamTarget.Reach = .anywhere,
        _ need: ConnectionNeed = .any
    ) -> (any Upstream)? {
        if need == .fresh { return nil }
        if need != .own, let stream = connectionAtHand(at: unixTime, within: reach, need)?.lease() { return stream }
        while let idle = takeIdle(at: unixTime, within: reach) {
            if method.isIdempotent || !idle.stream.isStale { return idle }
            idle.close()
        }
        return nil
    }

    // MARK: Shared connections

    /// The shared connection that takes another exchange: the most recent, and one that refused a stream last.
    package func connectionAtHand(
        at unixTime: Int64, within reach: UpstreamTarget.Reach = .anywhere, _ need: ConnectionNeed = .any
    ) -> HTTP2Upstream? {
        shared.last {
            $0.takesExchanges && $0.meets(need) && $0.validUntil > unixTime && !hasRetired($0) && reach.allows($0.scope)
        }
    }

    /// Shares a new connection, until ``leave(_:)``. False: only its requester may use it.
    func share(_ connection: HTTP2Upstream) -> Bool {
        guard !pool.isClosed, !hasRetired(connection) else { return false }
        shared.append(connection)
        return true
    }

    func tell(_ notice: HTTP2Notice, of connection: HTTP2Upstream) { pool.noticed?(notice, connection) }

    /// A connection refused a stream: others are tried before it.
    func putBack(_ connection: HTTP2Upstream) {
        guard let index = shared.firstIndex(where: { $0 === connection }), index > 0 else { return }
        shared.insert(shared.remove(at: index), at: 0)
    }

    /// Prevents further exchanges on the connection.
    func leave(_ connection: HTTP2Upstream) {
        shared.removeAll { $0 === connection }
    }

    /// An idle shared connection is in use again, or has ended.
    func wake(_ connection: HTTP2Upstream) {
        guard let place = connection.idlePlace else { return }
        _ = pool.remove(at: place)
    }

    /// Closes an idle connection that ended, sent something, or expired.
    func drop(_ connection: UpstreamConnection) {
        guard let place = connection.idlePlace else { return }
        // It is mostly the first.
        if let index = idle.firstIndex(of: place) { idle.remove(at: index) }
        pool.remove(at: place).close()
    }
}

/// The idle upstream connections of one worker, by origin.
///
/// An origin keeps as many as were in use lately, and reuses the latest first, so that after a peak the others expire.
/// A bound below the load would dial a connection per request, at forty times a request's price. Beyond the bound of
/// all origins the longest idle connection is closed, as is one that ends or sends.
package final class UpstreamPool {
    private let capacity: Int
    // Changed by code that calls no other code.
    @exclusivity(unchecked) private var idle = IdleOrder<UpstreamConnection>()

    private struct Known {
        // unowned: an origin removes itself in its deinit; weak would slow down every use.
        unowned let origin: Origin
    }

    private var origins: [OriginKey: Known] = [:]
    // Stored whole, or changed by code that calls no other code.
    @exclusivity(unchecked) fileprivate private(set) var network: UInt64 = 0
    @exclusivity(unchecked) fileprivate private(set) var isClosed = false

    package var idleCount: Int { idle.count }
    /// The part of ``idleCount`` that exchanges share.
    package var idleSharedCount: Int {
        origins.values.reduce(0) { $0 + $1.origin.shared.count { $0.idlePlace != nil } }
    }

    /// Receives notices about peers of shared connections.
    package var noticed: ((HTTP2Notice, HTTP2Upstream) -> Void)?

    package init(capacity: Int = UpstreamPool.largestCapacity) {
        self.capacity = max(capacity, 1)
    }

    /// An idle connection holds some 30 KiB; beyond this number memory is scarcer than descriptors.
    package static let largestCapacity = 16_384

    /// The capacity of each pool: together a third of the descriptors, which leaves room for 5,000 clients under a
    /// limit of 20,000.
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
        guard !isClosed, origin.key.layer.isShared, !origin.hasRetired(connection), connection.isFitForPool
        else { return connection.close() }
        if idle.count >= capacity, let longest = idle.longest { longest.origin.drop(longest) }
        let place = idle.append(connection)
        if connection is HTTP1Upstream { origin.idle.append(place) }
        connection.enterPool(at: place, idleNanoseconds: nanoseconds)
    }

    /// Takes a connection out of the order; its origin has forgotten the place already.
    fileprivate func remove(at place: Int) -> UpstreamConnection {
        let connection = idle.remove(at: place)
        connection.leavePool()
        return connection
    }

    fileprivate func scope(at place: Int) -> AddressScope? { idle.connection(at: place)?.scope }

    /// Frees descriptors beyond the pool's own, and returns how many; nil: the pool's alone.
    package var relief: (() -> Int)?
    private static let givenUp = 32

    /// Closes idle connections when descriptors run out. True if another try may succeed.
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

    /// Retires the origins that `isRetired` names, e.g. after a reload, and brings back the others. Closes their
    /// connections: idle ones now, others when given back.
    @discardableResult
    package func retire(where isRetired: (OriginKey) -> Bool) -> Int {
        var count = 0
        for origin in origins.values.map(\.origin) {
            origin.isRetired = isRetired(origin.key)
            if origin.isRetired { count += closeIdle(of: origin) }
        }
        return count
    }

    /// After a change of network: closes idle connections now, and those in use when given back.
    package func changeNetwork() {
        network += 1
        for origin in origins.values.map(\.origin) { _ = closeIdle(of: origin) }
    }

    private func closeIdle(of origin: Origin) -> Int {
        var count = 0
        while let place = origin.idle.popLast() {
            remove(at: place).close()
            count += 1
        }
        // Connections in use close after their last exchange.
        for connection in origin.shared {
            guard connection.idlePlace != nil else {
                connection.close()
                continue
            }
            origin.drop(connection)
            count += 1
        }
        return count
    }

    /// Closes idle connections now, others when given back. No origin is retired: exchanges may finish.
    @discardableResult
    package func close() -> Int {
        isClosed = true
        return origins.values.map(\.origin).reduce(0) { $0 + closeIdle(of: $1) }
    }

    fileprivate func forget(_ key: OriginKey) {
        origins[key] = nil
    }
}
