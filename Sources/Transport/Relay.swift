import Glibc
package import PinproxyEventLoop

/// Carries bytes both ways between two streams until both have ended: a tunnel, or an upgraded connection (101). Each
/// direction (``RelayDirection``) reads again when all was written. An end becomes a half-close; a failure resets the
/// other side, after the origin's bytes.
package final class Relay: ByteStreamOwner {
    package enum Ending: Sendable, Equatable {
        case completed
        case downstreamFailed(StreamError)
        case upstreamFailed(StreamError)
        /// One side had ended, and the other was silent for too long.
        case timedOut
        case cancelled(because: String)
    }

    private let loop: EventLoop
    private let downstream: ByteStream
    private let upstream: ByteStream
    private var up: RelayDirection
    private var down: RelayDirection
    private let halfClosedNanoseconds: UInt64
    private var deadline: Deadline?
    /// Set during a drain.
    private var quiet: Quiet?
    /// The silence that ends it, if limited.
    private var silence: Silence?
    private var completion: ((Ending) -> Void)?
    /// The origin no longer reads; bytes that it sent are still carried.
    private var upstreamFailure: StreamError?
    /// The origin failed, and its last bytes are being delivered.
    private var delivery: DeliveryWatch?
    package private(set) var isSuspended = false

    package var bytesUp: UInt64 { up.carried }
    package var bytesDown: UInt64 { down.carried }

    /// - Parameters:
    ///   - received: bytes already read from the client.
    ///   - answered: bytes already read from the origin.
    ///   - idle: the silence allowed once half-closed; open ones live while keep-alive probes are answered.
    ///   - completion: called once, on the loop, when both streams are stopped.
    package init(
        loop: EventLoop, downstream: ByteStream, upstream: ByteStream,
        received: consuming ByteBuffer, answered: consuming ByteBuffer,
        idleNanoseconds idle: UInt64, completion: @escaping (Ending) -> Void
    ) {
        self.downstream = downstream
        self.upstream = upstream
        up = RelayDirection(received: received)
        down = RelayDirection(received: answered)
        halfClosedNanoseconds = idle
        self.completion = completion
        self.loop = loop
        deadline = Deadline(loop: loop, owner: self) { $0.timedOut() }
    }

    package func start() {
        downstream.owner = self
        upstream.owner = self
        let seconds = Int(clamping: halfClosedNanoseconds / 1_000_000_000)
        downstream.probeWhenSilent(for: seconds)
        upstream.probeWhenSilent(for: seconds)
        carryUp(readable: false)
        if completion != nil { carryDown(readable: false) }
    }

    /// Ends it after a silence, while the proxy stops.
    package func drain(quietNanoseconds: UInt64, because cause: String) {
        guard completion != nil, quiet == nil else { return }
        let deadline = Deadline(loop: loop, owner: self) { $0.endIfQuiet(because: cause) }
        quiet = Quiet(deadline: deadline, nanoseconds: quietNanoseconds, carried: carried)
        deadline.set(afterNanoseconds: quietNanoseconds)
    }

    private func endIfQuiet(because cause: String) {
        guard let quiet else { return }
        if quiet.carried == carried, up.held == 0, down.held == 0 { return cancel(because: cause) }
        self.quiet?.carried = carried
        quiet.deadline.set(afterNanoseconds: quiet.nanoseconds)
    }

    private struct Quiet {
        let deadline: Deadline
        let nanoseconds: UInt64
        /// ``Relay/carried`` when the deadline was last set.
        var carried: UInt64
    }

    /// Ends it after a silence in both directions. Call it before ``start()``.
    package func endWhenSilent(forNanoseconds nanoseconds: UInt64, because cause: String) {
        let deadline = Deadline(loop: loop, owner: self) { $0.cancel(because: cause) }
        silence = Silence(deadline: deadline, nanoseconds: nanoseconds)
        deadline.set(afterNanoseconds: nanoseconds)
    }

    private struct Silence {
        let deadline: Deadline
        let nanoseconds: UInt64
        var moved: UInt64 = 0
    }

    /// Bytes written on either side.
    private var carried: UInt64 { up.carried &+ down.carried }

    /// Bytes read or written on either side.
    private var moved: UInt64 { 2 &* carried &+ UInt64(up.held) &+ UInt64(down.held) }

    private func noteMovement() {
        guard let silence, silence.moved != moved else { return }
        self.silence?.moved = moved
        silence.deadline.set(afterNanoseconds: silence.nanoseconds)
    }

    package func cancel(because cause: String) { finish(.cancelled(because: cause)) }

    /// Stops reading and writing: the peers feel back-pressure only.
    package func suspend() {
        isSuspended = true
        downstream.wantsRead = false
        upstream.wantsRead = false
        deadline?.clear()
        silence?.deadline.clear()
    }

    package func resume() {
        guard isSuspended else { return }
        isSuspended = false
        if let silence { silence.deadline.set(afterNanoseconds: silence.nanoseconds) }
        if delivery != nil { return resetWhenDelivered() }
        carryUp(readable: true)
        if completion != nil { carryDown(readable: true) }
    }

    package func streamIsReadable(_ stream: ByteStream) {
        if isSuspended {
            stream.wantsRead = false
            return
        }
        if stream === downstream { carryUp(readable: true) } else { carryDown(readable: true) }
    }

    package func streamIsWritable(_ stream: ByteStream) {
        if isSuspended { return }
        if stream === downstream { carryDown(readable: false) } else { carryUp(readable: false) }
    }

    private func carryUp(readable: Bool) {
        guard upstreamFailure == nil else {
            downstream.wantsRead = false
            return
        }
        switch up.carry(from: downstream, to: upstream, readable: readable) {
        case .waiting: progressed()
        case .sourceFailed(let error): finish(.downstreamFailed(error))
        case .sinkFailed(let error):
            upstreamFailure = error
            downstream.wantsRead = false
            carryDown(readable: true)
        }
    }

    private func carryDown(readable: Bool) {
        guard delivery == nil else { return }
        switch down.carry(from: upstream, to: downstream, readable: readable) {
        case .waiting: progressed()
        case .sourceFailed(let error): upstreamFailed(error)
        case .sinkFailed(let error): finish(.downstreamFailed(error))
        }
    }

    private func timedOut() {
        if delivery != nil { resetWhenDelivered() } else { finish(.timedOut) }
    }

    private func progressed() {
        if silence != nil { noteMovement() }
        if let upstreamFailure {
            if down.isDone { return upstreamFailed(upstreamFailure) }
            deadline?.set(afterNanoseconds: halfClosedNanoseconds)
        } else if up.isDone && down.isDone {
            finish(.completed)
        } else if up.sourceEnded || down.sourceEnded {
            deadline?.set(afterNanoseconds: halfClosedNanoseconds)
        }
    }

    private func upstreamFailed(_ error: StreamError) {
        upstreamFailure = error
        upstream.abort()
        downstream.wantsRead = false
        delivery = DeliveryWatch(at: loop.now)
        resetWhenDelivered()
    }

    private func resetWhenDelivered() {
        let isOver = delivery?.isOver(on: downstream, at: loop.now, patience: halfClosedNanoseconds) ?? true
        guard isOver, let upstreamFailure else {
            deadline?.set(afterNanoseconds: DeliveryWatch.interval)
            return
        }
        finish(.upstreamFailed(upstreamFailure))
    }

    private func finish(_ ending: Ending) {
        guard let completion else { return }
        self.completion = nil
        deadline = nil
        quiet = nil
        silence = nil
        switch ending {
        case .completed:
            downstream.stop()
            upstream.stop()
        case .downstreamFailed, .upstreamFailed, .timedOut, .cancelled:
            downstream.abort()
            upstream.abort()
        }
        completion(ending)
    }
}
