/// What a scanner made of the bytes that it was given.
package enum BodyProgress: Sendable, Equatable {
    /// All of them, so many, belong to the message, and more must come.
    case passed(Int)
    /// The message ends after so many bytes; those behind belong to the next one.
    case ended(Int)
    case malformed(WireError)
}

/// Finds the end of a body that is passed on as it came: chunk lines, extensions and trailers are
/// checked and left alone. Bytes of a body of known length or of a chunk are counted, not read.
package struct BodyScanner: Sendable {
    private enum State {
        case counting(UInt64)
        case chunked(ChunkedGrammar)
        case untilClose
        case ended
        case broken(WireError)
    }

    private var state: State

    package init(_ framing: BodyFraming) {
        state =
            switch framing {
            case .none, .length(0): .ended
            case .length(let count): .counting(count)
            case .chunked: .chunked(ChunkedGrammar())
            case .untilClose: .untilClose
            }
    }

    /// Whether the last byte of the message has been seen. A message without a body is ended
    /// before its first byte.
    package var isEnded: Bool {
        if case .ended = state { true } else { false }
    }

    /// Takes the bytes that follow those of the last call. After `ended` or `malformed` no more
    /// may be given; if they are, `ended(0)` (the defect again) is the answer.
    package mutating func scan(_ bytes: Span<UInt8>) -> BodyProgress {
        switch state {
        case .ended:
            return .ended(0)
        case .broken(let error):
            return .malformed(error)
        case .untilClose:
            return .passed(bytes.count)
        case .counting(let missing):
            let available = UInt64(bytes.count)
            if available < missing {
                state = .counting(missing - available)
                return .passed(bytes.count)
            }
            state = .ended
            return .ended(Int(missing))
        case .chunked(var grammar):
            var position = 0
            while position < bytes.count {
                switch grammar.next(in: bytes, from: position) {
                case .framing(let count), .data(let count):
                    position += count
                case .end(let count):
                    state = .ended
                    return .ended(position + count)
                case .malformed(let code):
                    let error = WireError(code, at: position)
                    state = .broken(error)
                    return .malformed(error)
                }
            }
            state = .chunked(grammar)
            return .passed(bytes.count)
        }
    }

    /// The sender closed its side. Returns whether the message is whole; if not, it was cut short
    /// and must not be passed off as a complete one.
    package mutating func peerClosed() -> Bool {
        switch state {
        case .ended, .untilClose:
            state = .ended
            return true
        case .counting, .chunked, .broken:
            return false
        }
    }
}
