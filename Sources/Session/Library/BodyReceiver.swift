import EventLoop
import Glibc
import Transport

/// Where the body of a task's response goes. Lives on the loop.
protocol BodyReceiver: ByteSink {
    /// Told of bytes that were taken.
    var received: ((Int) -> Void)? { get set }
    /// Told when it takes more after it took none, or when ``failure`` is there.
    var isReady: (() -> Void)? { get set }
    var failure: SessionError? { get }
    /// The body is whole.
    /// - Parameter completion: called once on the loop, unless it is abandoned before.
    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void)
    /// The body is not wanted any more.
    func abandon()
}

/// What became of a body.
struct StoredBody: Sendable {
    var bytes: [UInt8] = []
    var path: String?
}

/// Collects a body in memory, up to a limit, and as far as the session's budget has room.
final class CollectedBody: BodyReceiver {
    var received: ((Int) -> Void)?
    var isReady: (() -> Void)?
    private(set) var failure: SessionError?
    private var bytes: [UInt8] = []
    private let limit: Int
    private let budget: BodyBudget
    private var reservation: BodyReservation?

    init(limit: Int, from budget: BodyBudget) {
        self.limit = limit
        self.budget = budget
        reservation = BodyReservation(of: budget, for: .response)
    }

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        guard bytes.count + count <= limit else { return fail(.bodyTooLong(limit: limit)) }
        guard reservation?.grow(to: bytes.count + count) == true else {
            return fail(.bodiesTooLong(limit: budget.limit))
        }
        bytes += buffer.unread[..<count]
        buffer.consume(count)
        received?(count)
        return .done
    }

    private func fail(_ error: SessionError) -> WriteOutcome {
        failure = error
        return .failed(.socket(ECANCELED))
    }

    /// From here on the body is the program's.
    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        reservation = nil
        completion(.success(StoredBody(bytes: bytes)))
    }

    func abandon() {
        bytes = []
        reservation = nil
    }
}

/// Takes no more than a few bytes, of a body that nobody wants.
final class DroppedBody: BodyReceiver {
    var received: ((Int) -> Void)?
    var isReady: (() -> Void)?
    var failure: SessionError? { nil }
    private var left: Int

    init(mostBytes: Int) { left = mostBytes }

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
        guard count <= left else { return .failed(.socket(ECANCELED)) }
        left -= count
        buffer.consume(count)
        return .done
    }

    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        completion(.success(StoredBody()))
    }

    func abandon() {}
}
