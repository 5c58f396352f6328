import PinproxyEventLoop

/// One direction of a ``Relay``. It holds at most one slab, or in the clear what a ``SplicePipe`` does.
struct RelayDirection: ~Copyable {
    /// Successive reads of a slab's worth that show a bulk transfer.
    private static let fullReads = 4
    /// A shorter read by the pipe shows its end.
    private static let leastSpliced = 32 << 10

    private(set) var buffer: ByteBuffer
    private var pipe: SplicePipe?
    private var fullReads = 0
    private var isBulk: Bool { fullReads >= Self.fullReads }
    private(set) var carried: UInt64 = 0
    private(set) var sourceEnded = false

    init(received: consuming ByteBuffer) { buffer = received }

    var held: Int {
        switch pipe {
        case .none: buffer.count
        case .some(let pipe): buffer.count + pipe.held
        }
    }
    var isDone: Bool { sourceEnded && held == 0 }

    enum Step {
        case waiting
        case sourceFailed(StreamError)
        case sinkFailed(StreamError)
    }

    mutating func carry(from source: ByteStream, to sink: ByteStream, readable: Bool) -> Step {
        if isDone { return .waiting }
        var mayRead = readable || source.holdsBytes
        while true {
            switch write(to: sink) {
            case .done: break
            case .blocked:
                source.wantsRead = false
                return .waiting
            case .failed(let error): return .sinkFailed(error)
            }
            if sourceEnded {
                pipe = nil
                source.wantsRead = false
                sink.endWriting()
                return .waiting
            }
            guard mayRead else {
                source.wantsRead = true
                return .waiting
            }
            switch read(from: source, to: sink) {
            case .received: mayRead = source.holdsBytes
            case .blocked:
                buffer.releaseIfEmpty()
                mayRead = false
            case .ended: sourceEnded = true
            case .failed(let error):
                buffer.releaseIfEmpty()
                return .sourceFailed(error)
            }
        }
    }

    private mutating func write(to sink: ByteStream) -> WriteOutcome {
        let before = held
        defer { carried += UInt64(before - held) }
        if buffer.count > 0 {
            let outcome = sink.write(buffer.count, from: &buffer)
            guard case .done = outcome else { return outcome }
            buffer.releaseIfEmpty()
        }
        guard pipe != nil else { return .done }
        let outcome = sink.write(from: &pipe!)
        // A pipe takes two descriptors.
        if case .done = outcome, !isBulk { pipe = nil }
        return outcome
    }

    private mutating func read(from source: ByteStream, to sink: ByteStream) -> ReadOutcome {
        if isBulk, pipe == nil {
            pipe = SplicePipe()
            if pipe == nil { fullReads = 0 }
        }
        if pipe != nil {
            let outcome = source.read(into: &pipe!)
            if case .received(let count) = outcome, count < Self.leastSpliced { fullReads = 0 }
            return outcome
        }
        let outcome = source.read(into: &buffer)
        let isFull = buffer.free == 0 && !source.isSecure && !sink.isSecure
        fullReads = isFull ? fullReads + 1 : 0
        return outcome
    }
}
