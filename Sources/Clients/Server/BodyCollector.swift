import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// Gathers the body of a request that a rule rewrites.
final class BodyCollector: BodySink {
    enum Outcome {
        case complete([UInt8], BodyReservation)
        case malformed(WireError)
        case tooLong
        case noBudget
    }

    private let limit: Int
    private let reservation: BodyReservation
    private var body: [UInt8] = []
    /// Why it stopped taking bytes.
    private(set) var refusal: Outcome?
    var carried: UInt64 { UInt64(body.count) }
    var whole: Outcome { .complete(body, reservation) }

    /// Reserves room first: no client sends a body that would be refused.
    /// - Parameter limit: bytes that are gathered at most.
    init(_ length: BodyLength, limit: Int, from budget: BodyBudget) {
        self.limit = limit
        reservation = BodyReservation(of: budget, for: .request)
        if let length = length.bytes, length > UInt64(limit) {
            refusal = .tooLong
        } else if !length.isEmpty, !reservation.grow(to: 1) {
            refusal = .noBudget
        }
    }

    func write(_ piece: RawSpan) -> Int {
        guard refusal == nil else { return 0 }
        guard piece.byteCount <= limit - body.count else {
            refusal = .tooLong
            return 0
        }
        guard reservation.grow(to: body.count + piece.byteCount) else {
            refusal = .noBudget
            return 0
        }
        body.append(copying: piece)
        return piece.byteCount
    }
}
