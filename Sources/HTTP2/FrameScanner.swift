/// The header of a frame (RFC 9113 section 4.1).
package struct FrameHeader: Sendable, Equatable {
    /// The frame type; `other` if unknown.
    package enum Kind: UInt8, Sendable {
        case data = 0
        case headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
        case priorityUpdate = 16
        case other = 255
    }

    package let kind: Kind
    package let flags: UInt8
    /// Bytes of the payload.
    package let length: Int
    package let stream: Int32

    package init(_ kind: Kind, flags: UInt8 = 0, length: Int, stream: Int32) {
        self.kind = kind
        self.flags = flags
        self.length = length
        self.stream = stream
    }

    /// END_STREAM of DATA and HEADERS, ACK of SETTINGS and PING.
    package var hasFirstFlag: Bool { flags & 1 != 0 }
    /// END_HEADERS.
    package var endsHead: Bool { flags & 4 != 0 }

    static let length = 9

    /// - Parameter byte: of the nine bytes at a place.
    fileprivate init(_ byte: (Int) -> UInt8) {
        length = Int(byte(0)) << 16 | Int(byte(1)) << 8 | Int(byte(2))
        kind = Kind(rawValue: byte(3)) ?? .other
        flags = byte(4)
        stream = Int32(
            truncatingIfNeeded: UInt32(byte(5) & 0x7F) << 24 | UInt32(byte(6)) << 16 | UInt32(byte(7)) << 8
                | UInt32(byte(8)))
    }
}

/// Finds frame boundaries in received bytes, however they are split. Each frame is counted before nghttp2 decodes it,
/// since nghttp2 reports no frame that it ignores.
package struct FrameScanner: Sendable {
    package enum Step: Sendable, Equatable {
        /// Bytes of the connection preface, or of a frame's payload; `ends`: its last ones.
        case payload(Int, ends: Bool)
        /// Bytes of an incomplete header, kept in `partialHeader`.
        case partialHeader(Int)
        /// Bytes that complete a header, without those of an earlier `partialHeader`.
        case header(FrameHeader, Int)
    }

    /// The length of the client connection preface (RFC 9113 section 3.4).
    static let prefaceLength = 24

    /// The frame that the last step belongs to; nil in the preface.
    package private(set) var frame: FrameHeader?
    private var remaining: Int
    private var held: [9 of UInt8] = .init(repeating: 0)
    private var heldCount = 0

    /// - Parameter awaitsPreface: the bytes come from a client.
    package init(awaitsPreface: Bool) { remaining = awaitsPreface ? Self.prefaceLength : 0 }

    /// A header that arrived in parts; valid until the next step.
    package var partialHeader: [9 of UInt8] { held }

    /// The next step in `bytes`, which are not empty from `start` on.
    package mutating func next(in bytes: Span<UInt8>, from start: Int) -> Step {
        let available = bytes.count - start
        if remaining > 0 {
            let count = min(remaining, available)
            remaining -= count
            return .payload(count, ends: remaining == 0)
        }
        if heldCount == 0, available >= FrameHeader.length {
            return .header(begin(FrameHeader { bytes[start + $0] }), FrameHeader.length)
        }
        let count = min(FrameHeader.length - heldCount, available)
        for offset in 0..<count { held[heldCount + offset] = bytes[start + offset] }
        heldCount += count
        guard heldCount == FrameHeader.length else { return .partialHeader(count) }
        heldCount = 0
        return .header(begin(FrameHeader { held[$0] }), count)
    }

    private mutating func begin(_ header: FrameHeader) -> FrameHeader {
        frame = header
        remaining = header.length
        return header
    }
}
