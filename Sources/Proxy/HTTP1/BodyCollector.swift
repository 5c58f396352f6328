import HTTPWire
import Transport

/// Gathers the body of a request that is to be written anew, from the bytes that follow its head.
struct BodyCollector {
    enum Progress {
        /// More must come.
        /// - Parameter taken: bytes that must not be shown again.
        case incomplete(taken: Int)
        /// The body, without its chunks, and what it holds of the budget.
        /// - Parameter taken: bytes that it took.
        case complete([UInt8], BodyReservation, taken: Int)
        case malformed(WireError)
        case tooLong
        /// The budget for bodies is spent.
        case noBudget
    }

    private enum Framing {
        /// Bytes that are missing.
        case length(Int)
        case chunks(ChunkedDecoder)
    }

    private var framing: Framing
    /// Bytes of the body that are gathered at most.
    let limit: Int
    private var body: [UInt8] = []
    /// Bytes that came since it was made, its chunks' lines too.
    var received: UInt64 = 0
    private let reservation: BodyReservation
    /// A part of the body has arrived.
    private(set) var hasBegun = false

    /// - Returns: nil for a request without a body.
    init?(_ framing: BodyFraming, limit: Int, from budget: BodyBudget) {
        switch framing {
        case .length(let length) where length > 0: self.framing = .length(Int(clamping: length))
        case .chunked: self.framing = .chunks(ChunkedDecoder())
        default: return nil
        }
        self.limit = limit
        reservation = BodyReservation(of: budget, for: .request)
    }

    /// - Parameter received: what follows the head, without what was taken.
    mutating func look(at received: UnsafeRawBufferPointer) -> Progress {
        if !received.isEmpty { hasBegun = true }
        switch framing {
        case .length(let missing):
            if missing > limit - body.count { return .tooLong }
            let count = min(missing, received.count)
            guard take(received[..<count]) else { return .noBudget }
            framing = .length(missing - count)
            return count == missing ? .complete(body, reservation, taken: count) : .incomplete(taken: count)
        case .chunks(var decoder):
            var fresh = Array(received)
            var span = fresh.mutableSpan
            let progress = decoder.decode(inPlace: &span)
            framing = .chunks(decoder)
            switch progress {
            case .malformed(let error, _, _): return .malformed(error)
            case .passed(let kept, let consumed, let ended):
                if kept > limit - body.count { return .tooLong }
                guard fresh.withUnsafeBytes({ take($0[..<kept]) }) else { return .noBudget }
                return ended ? .complete(body, reservation, taken: consumed) : .incomplete(taken: consumed)
            }
        }
    }

    /// Needs room even before the first byte, so that no client is asked for a body that would be refused.
    private mutating func take(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        guard reservation.grow(to: max(body.count + bytes.count, 1)) else { return false }
        body.append(contentsOf: bytes)
        return true
    }
}
