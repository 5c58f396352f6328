import HTTPWire

/// Gathers the body of a request that is to be written anew, from the bytes that follow its head.
struct BodyCollector {
    enum Progress {
        /// More must come.
        /// - Parameter spent: so many of the bytes aren't needed any more, and are not to be shown again. Chunks have
        ///   lines of their own, which no limit of the body bounds.
        case incomplete(spent: Int)
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
    /// Bytes of the body that are gathered at most.
    let limit: Int
    private var body: [UInt8] = []
    /// Bytes that came since it was made, its chunks' lines too.
    var received: UInt64 = 0

    /// - Returns: nil for a request without a body.
    init?(_ framing: BodyFraming, limit: Int) {
        switch framing {
        case .length(let length) where length > 0: self.framing = .length(Int(clamping: length))
        case .chunked: self.framing = .chunks(ChunkedDecoder())
        default: return nil
        }
        self.limit = limit
    }

    /// - Parameter received: all that follows the head so far, without what was spent.
    mutating func look(at received: UnsafeRawBufferPointer) -> Progress {
        switch framing {
        case .length(let length):
            if length > limit { return .tooLong }
            guard received.count >= length else { return .incomplete(spent: 0) }
            return .complete(Array(received[..<length]), taken: length)
        case .chunks(var decoder):
            var fresh = Array(received)
            var span = fresh.mutableSpan
            let progress = decoder.decode(inPlace: &span)
            framing = .chunks(decoder)
            switch progress {
            case .malformed(let error, _, _): return .malformed(error)
            case .passed(let kept, let consumed, let ended):
                if body.count + kept > limit { return .tooLong }
                body += fresh[..<kept]
                return ended ? .complete(body, taken: consumed) : .incomplete(spent: consumed)
            }
        }
    }
}
