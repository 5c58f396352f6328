import Glibc
import PinproxyEventLoop
import PinproxySession
import PinproxyTransport

/// Takes the body of a task's response. On the loop.
protocol BodyReceiver: BodySink {
    /// Called when it can take more again, or has a ``failure``.
    var isReady: (() -> Void)? { get set }
    var failure: SessionError? { get }
    /// - Parameter completion: called once on the loop, unless the body is abandoned.
    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void)
    func abandon()
}

struct StoredBody: Sendable {
    var bytes: [UInt8] = []
    var path: String?
}

/// Collects a body in memory, within a limit and the session's budget.
final class CollectedBody: BodyReceiver {
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

    var carried: UInt64 { UInt64(bytes.count) }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        let length = bytes.count + piece.byteCount
        guard length <= limit else { throw fail(.bodyTooLong(limit: limit)) }
        guard reservation?.grow(to: length) == true else { throw fail(.bodiesTooLong(limit: budget.limit)) }
        bytes.append(copying: piece)
        return piece.byteCount
    }

    private func fail(_ error: SessionError) -> StreamError {
        failure = error
        return .socket(ECANCELED)
    }

    /// The body is now the program's.
    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        reservation = nil
        completion(.success(StoredBody(bytes: bytes)))
    }

    func abandon() {
        bytes = []
        reservation = nil
    }
}

/// Drops a body, and fails after a few bytes.
final class DroppedBody: BodyReceiver {
    var isReady: (() -> Void)?
    var failure: SessionError? { nil }
    private(set) var carried: UInt64 = 0
    private let mostBytes: UInt64

    init(mostBytes: UInt64) { self.mostBytes = mostBytes }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        carried += UInt64(piece.byteCount)
        guard carried <= mostBytes else { throw .socket(ECANCELED) }
        return piece.byteCount
    }

    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        completion(.success(StoredBody()))
    }

    func abandon() {}
}
