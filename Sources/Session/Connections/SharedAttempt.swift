import PinproxyTransport

/// A wait for a connection. Its completion isn't called after ``cancel()``.
package protocol ConnectionTicket: AnyObject {
    func cancel()
}

extension UpstreamAttempt: ConnectionTicket {}

/// Delivers a connection to a waiting exchange.
/// - Parameter isFirst: false if the result was delivered before, and must not be reported again.
package typealias ConnectionDelivery = (_ result: Result<UpstreamConnection, UpstreamFailure>, _ isFirst: Bool) -> Void

/// One connection attempt to an origin that chose HTTP/2 before, for all exchanges that wait for it.
final class SharedAttempt {
    /// One of those that wait. Holds the attempt.
    final class Waiter: ConnectionTicket {
        fileprivate let deliver: ConnectionDelivery
        fileprivate let dscp: UInt8
        fileprivate var attempt: SharedAttempt?
        /// For an origin that chose HTTP/1.1 this time.
        fileprivate var own: UpstreamAttempt?

        fileprivate init(dscp: UInt8, _ deliver: @escaping ConnectionDelivery) {
            self.dscp = dscp
            self.deliver = deliver
        }

        func cancel() {
            own.take()?.cancel()
            attempt.take()?.leave(self)
        }
    }

    private let connector: UpstreamConnector
    private let target: UpstreamTarget
    private let timeouts: Timeouts
    private let origin: Origin
    private var waiters: [Waiter] = []
    private var attempt: UpstreamAttempt?
    /// Made, while the peer's settings are awaited: they say how many exchanges it takes.
    private var unsettled: HTTP2Upstream?

    private init(_ connector: UpstreamConnector, to target: UpstreamTarget, _ origin: Origin, timeouts: Timeouts) {
        self.connector = connector
        self.target = target
        self.origin = origin
        self.timeouts = timeouts
    }

    private func join(_ waiter: Waiter) {
        waiter.attempt = self
        waiters.append(waiter)
        guard attempt == nil else { return }
        origin.attempt = self
        attempt = connector.connect(to: target, timeouts: timeouts, dscp: waiter.dscp) { [weak self] in self?.ended($0)
        }
    }

    private func leave(_ waiter: Waiter) {
        waiters.removeAll { $0 === waiter }
        guard waiters.isEmpty else { return }
        attempt.take()?.cancel()
        if origin.attempt === self { origin.attempt = nil }
    }

    private func ended(_ result: Result<UpstreamConnection, UpstreamFailure>) {
        if origin.attempt === self { origin.attempt = nil }
        attempt = nil
        guard case .success(let connection as HTTP2Upstream) = result, !connection.isSettled, waiters.count > 1 else {
            return deliver(result, isFirst: true)
        }
        // The first may begin before the peer's settings (RFC 9113 section 3.4): their limit of streams is at least
        // one.
        let first = waiters.removeFirst()
        first.attempt = nil
        first.deliver(result, true)
        guard !waiters.isEmpty else { return }
        unsettled = connection
        // Waiting exchanges hold this object.
        connection.whenSettled { [weak self] in self?.proceed() }
    }

    private func proceed() {
        guard let connection = unsettled.take() else { return }
        deliver(.success(connection), isFirst: false)
    }

    private func deliver(_ result: Result<UpstreamConnection, UpstreamFailure>, isFirst: Bool) {
        var isFirst = isFirst
        var next: SharedAttempt?
        // One may cancel others while it is served.
        while !waiters.isEmpty {
            let waiter = waiters.removeFirst()
            waiter.attempt = nil
            switch result {
            case .success(let connection as HTTP2Upstream) where !isFirst && !connection.takesExchanges:
                // Each attempt serves one at least.
                let attempt = next ?? SharedAttempt(connector, to: target, origin, timeouts: timeouts)
                next = attempt
                attempt.join(waiter)
                continue
            case .success(_ as HTTP1Upstream) where !isFirst:
                waiter.own = connector.connect(to: target, timeouts: timeouts, dscp: waiter.dscp) {
                    [weak waiter] result in
                    guard let waiter else { return }
                    waiter.own = nil
                    waiter.deliver(result, true)
                }
                continue
            default: waiter.deliver(result, isFirst)
            }
            isFirst = false
        }
    }

    /// Joins the attempt in flight to the target, or begins one.
    fileprivate static func join(
        _ connector: UpstreamConnector, to target: UpstreamTarget, timeouts: Timeouts, dscp: UInt8,
        deliver: @escaping ConnectionDelivery
    ) -> Waiter {
        let origin = connector.pool.origin(for: target.key)
        let waiter = Waiter(dscp: dscp, deliver)
        let inFlight = origin.attempt.flatMap {
            $0.target.reach == target.reach && $0.target.protocols == target.protocols ? $0 : nil
        }
        (inFlight ?? SharedAttempt(connector, to: target, origin, timeouts: timeouts)).join(waiter)
        return waiter
    }
}

extension UpstreamConnector {
    /// Obtains a connection: a shared one if exchanges can share it, else an exclusive one.
    /// - Parameters:
    ///   - need: the requirements for the connection.
    ///   - deliver: called once on the loop, after this returns, never after ``ConnectionTicket/cancel()``.
    package func obtain(
        to target: UpstreamTarget, timeouts: Timeouts, dscp: UInt8 = 0, _ need: ConnectionNeed = .any,
        deliver: @escaping ConnectionDelivery
    ) -> any ConnectionTicket {
        if need.isOfItsOwn, target.protocols.contains(.http1) {
            return connect(to: target.alone(), timeouts: timeouts, dscp: dscp) { deliver($0, true) }
        }
        guard need != .fresh, target.protocols.contains(.http2), pool.origin(for: target.key).chosenProtocol == .http2
        else {
            return connect(to: target, timeouts: timeouts, dscp: dscp) { deliver($0, true) }
        }
        return SharedAttempt.join(self, to: target, timeouts: timeouts, dscp: dscp, deliver: deliver)
    }
}
