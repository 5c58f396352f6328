import EventLoop
import Serialization
import Transport

/// Lets a request through no faster than a rule allows (`throttle`): so many bytes, then a pause. After
/// AFMultipartFormData's `throttleBandwidthWithPacketSize:delay:`.
final class RequestThrottle: ByteSink {
    private let sink: any ByteSink
    private let rule: Throttle
    private let pause: Deadline
    /// Bytes that may be written until the next pause.
    private var allowance: Int

    /// - Parameters:
    ///   - headLength: bytes of the head, which passes at once.
    ///   - owner: keeps the throttle.
    ///   - goOn: called after a pause.
    init<Owner: AnyObject>(
        _ rule: Throttle, sink: any ByteSink, headLength: Int, loop: EventLoop, owner: Owner,
        goOn: @escaping @Sendable (Owner) -> Void
    ) {
        self.sink = sink
        self.rule = rule
        allowance = headLength + rule.packet
        pause = Deadline(loop: loop, owner: owner, expired: goOn)
    }

    /// The next bytes have to wait.
    var isPausing: Bool { pause.isSet }

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        guard !pause.isSet else { return .blocked }
        let before = buffer.count
        let outcome = sink.write(min(count, allowance), from: &buffer)
        let written = before - buffer.count
        allowance -= written
        if allowance == 0 {
            allowance = rule.packet
            pause.set(afterNanoseconds: rule.delay.nanoseconds)
        }
        if case .done = outcome, written < count { return .blocked }
        return outcome
    }
}
