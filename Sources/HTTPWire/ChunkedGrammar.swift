/// The chunked coding (RFC 9112 section 7.1) as a strict state machine: no signs, prefixes, padding or bare LF.
struct ChunkedGrammar: Sendable {
    enum Piece {
        /// This many bytes of a line without its end: all bytes received.
        case part(Int)
        /// This many bytes complete a chunk line.
        case chunkLine(Int)
        /// This many bytes of the body itself.
        case data(Int)
        /// This many bytes complete the line end after a chunk's data.
        case dataEnd(Int)
        /// This many bytes complete a trailer field's line.
        case trailerLine(Int)
        /// This many bytes of the empty line that ends the message.
        case end(Int)
        case malformed(WireError.Code)
    }

    /// The longest chunk line, and the longest trailer section, in bytes.
    static let lineLimit = 4096
    static let trailerLimit = 16384

    private enum State {
        /// Chunk line: size, then perhaps white space and extensions, then the end.
        case size, beforeExtension, extensionName, extensionText, quoted, quotedPair, sizeLineFeed
        case data, dataReturn, dataLineFeed
        /// Trailer section, or the empty line that ends the body.
        case trailerStart, trailerName, trailerValue, trailerLineFeed, finalLineFeed
        case ended
    }

    private var state = State.size
    /// The current chunk's size while its line is read, then the bytes that are missing.
    private var remaining: UInt64 = 0
    private var sizeDigits = 0
    /// Bytes of the chunk line, or of all trailers.
    private var lineLength = 0

    var isEnded: Bool { state == .ended }
    var isInTrailers: Bool { state == .trailerName || state == .trailerValue || state == .trailerLineFeed }

    /// The next piece of `bytes`, which begin at `start`; `start` must not be their end.
    mutating func next(in bytes: Span<UInt8>, from start: Int) -> Piece {
        if state == .data {
            let count = Int(min(remaining, UInt64(bytes.count - start)))
            remaining -= UInt64(count)
            if remaining == 0 { state = .dataReturn }
            return .data(count)
        }
        var position = start
        while position < bytes.count {
            let isLineFeed = bytes[position] == .lineFeed
            let line = state
            if let defect = advance(bytes[position]) { return .malformed(defect) }
            position += 1
            guard isLineFeed else { continue }
            switch line {
            case .dataLineFeed: return .dataEnd(position - start)
            case .trailerLineFeed: return .trailerLine(position - start)
            case .finalLineFeed: return .end(position - start)
            // No other state takes a line feed.
            default: return .chunkLine(position - start)
            }
        }
        return .part(position - start)
    }

    private mutating func advance(_ byte: UInt8) -> WireError.Code? {
        lineLength += 1
        switch state {
        case .size, .beforeExtension, .extensionName, .extensionText, .quoted, .quotedPair, .sizeLineFeed:
            if lineLength > Self.lineLimit { return .chunkLineTooLong }
            return advanceChunkLine(byte)
        case .dataReturn:
            guard byte == .carriageReturn else { return .chunkEnd }
            state = .dataLineFeed
        case .dataLineFeed:
            guard byte == .lineFeed else { return .chunkEnd }
            beginChunkLine()
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .finalLineFeed:
            if lineLength > Self.trailerLimit { return .trailersTooLong }
            return advanceTrailer(byte)
        case .data, .ended:
            break
        }
        return nil
    }

    private mutating func beginChunkLine() {
        state = .size
        remaining = 0
        sizeDigits = 0
        lineLength = 0
    }

    private mutating func advanceChunkLine(_ byte: UInt8) -> WireError.Code? {
        switch state {
        case .size:
            if let digit = byte.hexValue {
                sizeDigits += 1
                remaining = remaining << 4 | UInt64(digit)
                // Fifteen digits fit into 63 bits, everybody's limit.
                return sizeDigits > 15 ? .chunkSizeOverflow : nil
            }
            guard sizeDigits > 0 else { return .chunkSize }
            switch byte {
            case .carriageReturn: state = .sizeLineFeed
            case UInt8(ascii: ";"): state = .extensionName
            case 0x20, 0x09: state = .beforeExtension
            default: return .chunkSize
            }
        case .beforeExtension:
            if byte.isBlank { return nil }
            guard byte == UInt8(ascii: ";") else { return .chunkSize }
            state = .extensionName
        case .extensionName:
            if byte.isBlank { return nil }
            guard ASCIISet.token.contains(byte) else { return .chunkExtension }
            state = .extensionText
        case .extensionText:
            switch byte {
            case .carriageReturn: state = .sizeLineFeed
            case UInt8(ascii: ";"): state = .extensionName
            case UInt8(ascii: "\""): state = .quoted
            case UInt8(ascii: "="), 0x20, 0x09: break
            default: return ASCIISet.token.contains(byte) ? nil : .chunkExtension
            }
        case .quoted:
            switch byte {
            case UInt8(ascii: "\""): state = .extensionText
            case UInt8(ascii: "\\"): state = .quotedPair
            default: return byte.isFieldText ? nil : .chunkExtension
            }
        case .quotedPair:
            guard byte.isFieldText else { return .chunkExtension }
            state = .quoted
        default:
            guard byte == .lineFeed else { return .chunkSize }
            lineLength = 0
            state = remaining == 0 ? .trailerStart : .data
        }
        return nil
    }

    private mutating func advanceTrailer(_ byte: UInt8) -> WireError.Code? {
        switch state {
        case .trailerStart:
            if byte == .carriageReturn {
                state = .finalLineFeed
            } else {
                guard ASCIISet.token.contains(byte) else { return .trailerField }
                state = .trailerName
            }
        case .trailerName:
            if byte == UInt8(ascii: ":") {
                state = .trailerValue
            } else {
                guard ASCIISet.token.contains(byte) else { return .trailerField }
            }
        case .trailerValue:
            if byte == .carriageReturn {
                state = .trailerLineFeed
            } else {
                guard byte.isFieldText else { return .trailerField }
            }
        case .trailerLineFeed:
            guard byte == .lineFeed else { return .trailerField }
            state = .trailerStart
        default:
            guard byte == .lineFeed else { return .trailerField }
            state = .ended
        }
        return nil
    }
}
