/// Finds the end of a body in its framing. Data is counted, not read; a `ChunkedFilter` reads chunk lines.
package struct BodyScanner: Sendable {
    private enum State {
        case counting(UInt64)
        case chunked(ChunkedFilter)
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
            case .chunked: .chunked(ChunkedFilter())
            case .untilClose: .untilClose
            }
    }

    /// Whether the last byte of the message was seen; at once for a message without a body.
    package var isEnded: Bool {
        if case .ended = state { true } else { false }
    }

    /// Takes the bytes after those consumed so far. After the end or a defect none is taken.
    package mutating func scan(inPlace bytes: inout MutableSpan<UInt8>) -> BodyProgress {
        switch state {
        case .ended:
            return .passed(kept: 0, consumed: 0, ended: true)
        case .broken(let error):
            return .malformed(error, kept: 0, consumed: 0)
        case .untilClose:
            return .passed(kept: bytes.count, consumed: bytes.count, ended: false)
        case .counting(let missing):
            let available = UInt64(bytes.count)
            if available < missing {
                state = .counting(missing - available)
                return .passed(kept: bytes.count, consumed: bytes.count, ended: false)
            }
            state = .ended
            return .passed(kept: Int(missing), consumed: Int(missing), ended: true)
        case .chunked(var filter):
            let progress = filter.filter(inPlace: &bytes)
            state =
                switch progress {
                case .passed(_, _, true): .ended
                case .passed: .chunked(filter)
                case .malformed(let error, _, _): .broken(error)
                }
            return progress
        }
    }

    /// The sender closed its side. False: the message was truncated, and must not be taken for a complete one.
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
