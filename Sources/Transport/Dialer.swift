package import PinproxyEventLoop

package final class DialedSocket {
    package let address: SocketAddress
    private var descriptor: Descriptor?

    fileprivate init(_ descriptor: consuming Descriptor, address: SocketAddress) {
        self.address = address
        self.descriptor = consume descriptor
    }

    /// Hands the socket over, once. Otherwise it closes with this object.
    package func take() -> Descriptor? {
        descriptor.take()
    }
}

package struct DialError: Error, CustomStringConvertible {
    package struct Attempt: Sendable, Hashable {
        package let address: SocketAddress
        package let error: SystemError
    }

    /// In order of failure; empty without addresses.
    package let attempts: [Attempt]

    /// Some address was not tried: the process has no file descriptor left.
    package var isLackOfDescriptors: Bool { attempts.contains { $0.error.isLackOfDescriptors } }

    package var isLackOfRoutes: Bool { !attempts.isEmpty && attempts.allSatisfy { $0.error.isLackOfRoute } }

    /// `192.0.2.1:443: Connection refused; [2001:db8::1]:443: Network is unreachable`
    package var description: String {
        attempts.isEmpty
            ? "no address to connect to"
            : attempts.map { "\($0.address): \($0.error.reason)" }.joined(separator: "; ")
    }
}

/// Connects to the first address that answers, by `HappyEyeballs`. The caller has the deadline.
package final class Dialer {
    private let loop: EventLoop
    private let attemptDelay: UInt64
    private let dscp: UInt8
    private var algorithm: HappyEyeballs
    private var attempts: [Int: Attempt] = [:]
    private var failures: [DialError.Attempt] = []
    private var delay: Deadline?
    private var completion: ((Result<DialedSocket, DialError>) -> Void)?

    /// `addresses` in the resolver's order, `attemptDelayNanoseconds` between attempts (RFC 8305: 250 ms), `moreToCome`
    /// until the last ``add(_:moreToCome:)``, `dscp` for the packets. `completion` is called once on the loop's thread,
    /// after `start` has returned, never after `cancel`.
    package init(
        loop: EventLoop, addresses: [SocketAddress], moreToCome: Bool = false,
        attemptDelayNanoseconds: UInt64 = 250_000_000, dscp: UInt8 = 0,
        completion: @escaping (Result<DialedSocket, DialError>) -> Void
    ) {
        self.loop = loop
        self.attemptDelay = attemptDelayNanoseconds
        self.dscp = dscp
        self.completion = completion
        algorithm = HappyEyeballs(addresses: addresses, moreToCome: moreToCome)
    }

    /// Starts dialing; call it once. The dialer must be held until it completes.
    package func start() {
        delay = Deadline(loop: loop, owner: self) { $0.perform($0.algorithm.attemptDelayPassed()) }
        let action = algorithm.start()
        if case .failed = action {
            // There is no address.
            loop.afterThisTurn { [weak self] in self?.perform(action) }
        } else {
            perform(action)
        }
    }

    /// Adds addresses to try. Call it after `start`.
    package func add(_ addresses: [SocketAddress], moreToCome: Bool) {
        guard completion != nil else { return }
        perform(algorithm.add(addresses, moreToCome: moreToCome))
    }

    /// Closes the sockets in progress, and drops the completion.
    package func cancel() {
        completion = nil
        end()
    }

    private func perform(_ action: HappyEyeballs.Action) {
        switch action {
        case .attempt(let index, let startDelay):
            if startDelay {
                delay?.set(afterNanoseconds: attemptDelay)
            } else {
                delay?.clear()
            }
            begin(index)
        case .wait:
            break
        case .connected(let index, let losers):
            for loser in losers { attempts.removeValue(forKey: loser)?.abandon() }
            guard let winner = attempts.removeValue(forKey: index), let socket = winner.finish() else { return }
            complete(.success(DialedSocket(socket, address: algorithm.order[index])))
        case .failed:
            complete(.failure(DialError(attempts: failures)))
        }
    }

    private func begin(_ index: Int) {
        let address = algorithm.order[index]
        do {
            let socket = try Socket.beginConnect(to: address, dscp: dscp)
            attempts[index] = Attempt(index, socket, dialer: self, loop: loop)
        } catch {
            // Deferred, so that addresses that fail at once don't grow the stack within start().
            loop.afterThisTurn { [weak self] in self?.failed(index, error) }
        }
    }

    private func failed(_ index: Int, _ error: SystemError) {
        guard completion != nil else { return }
        attempts.removeValue(forKey: index)?.abandon()
        failures.append(DialError.Attempt(address: algorithm.order[index], error: error))
        perform(algorithm.failed(index))
    }

    fileprivate func ready(_ index: Int, error: CInt) {
        if error == 0 {
            perform(algorithm.connected(index))
        } else {
            failed(index, SystemError(code: error, call: "connect"))
        }
    }

    private func end() {
        delay = nil
        for attempt in attempts.values { attempt.abandon() }
        attempts = [:]
    }

    private func complete(_ result: Result<DialedSocket, DialError>) {
        let completion = self.completion
        self.completion = nil
        end()
        completion?(result)
    }
}

/// One connect in progress.
private final class Attempt: SocketHandler {
    private let index: Int
    private var socket: Descriptor?
    private var source: SocketSource?
    private weak var dialer: Dialer?

    init(_ index: Int, _ socket: consuming Descriptor, dialer: Dialer, loop: EventLoop) {
        self.index = index
        self.dialer = dialer
        let source = SocketSource(loop: loop, descriptor: socket.raw, handler: self)
        self.source = source
        self.socket = consume socket
        source.wantsWrite = true
    }

    deinit {
        // In this order: a watched descriptor must not be closed.
        source?.invalidate()
    }

    func socketReady(_ readiness: Readiness) {
        guard let descriptor = socket?.raw else { return }
        source?.invalidate()
        dialer?.ready(index, error: Socket.pendingError(descriptor))
    }

    /// Stops watching and gives the socket away.
    func finish() -> Descriptor? {
        source?.invalidate()
        return socket.take()
    }

    func abandon() {
        source?.invalidate()
        socket = nil
    }
}
