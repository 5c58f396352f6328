import HTTPWire

/// Gathers the body of a request that is to be written anew, from the bytes that follow its head.
struct BodyCollector {
    enum Progress {
        /// More must come.
        case incomplete
        /// The body, without its chunks, and how many of the bytes it took.
        case complete([UInt8], taken: Int)
        case malformed(WireError)
        case tooLong
    }

    private enum Framing {
        case length(Int)
        case chunks(ChunkedDecoder)
    }

    private var framing: Framing
    private let limit: Int
    private var body: [UInt8] = []
    private var taken = 0

    /// - Parameter limit: bytes of the body that are gathered at most.
    /// - Returns: nil for a request without a body.
    init?(_ framing: BodyFraming, limit: Int) {
        switch framing {
        case .length(let length) where length > 0: self.framing = .length(Int(clamping: length))
        case .chunked: self.framing = .chunks(ChunkedDecoder())
        default: return nil
        }
        self.limit = limit
    }

    /// - Parameter received: all that follows the head so far.
    mutating func look(at received: UnsafeRawBufferPointer) -> Progress {
        switch framing {
        case .length(let length):
            if length > limit { return .tooLong }
            guard received.count >= length else { return .incomplete }
            return .complete(Array(received[..<length]), taken: length)
        case .chunks(var decoder):
            var fresh = Array(received[taken...])
            var span = fresh.mutableSpan
            let progress = decoder.decode(inPlace: &span)
            framing = .chunks(decoder)
            switch progress {
            case .malformed(let error, _, _): return .malformed(error)
            case .passed(let kept, let consumed, let ended):
                body += fresh[..<kept]
                taken += consumed
                if body.count > limit { return .tooLong }
                return ended ? .complete(body, taken: taken) : .incomplete
            }
        }
    }
}
