/// The part of a resource that Range asks for (RFC 9110 section 14.2).
///
/// A 206 to a request that didn't ask for it is malformed: what claims to be a part would escape the rules for whole
/// bodies.
package enum WantedPart: Sendable, Hashable {
    case whole
    /// `bytes=first-last`; nil: to the end.
    case bytes(first: UInt64, last: UInt64?)
    /// `bytes=-length`.
    case end(length: UInt64)
    /// Several parts, parts in another unit, or what a server has to ignore.
    case other

    package init(_ value: String) {
        let bytes = Array(value.utf8)
        self.init(ByteRange(0, bytes.count), in: bytes.span)
    }

    init(_ value: ByteRange, in bytes: Span<UInt8>) {
        let unit = ByteRange(value.start, min(value.start + 6, value.end))
        guard bytes.equals(unit, ignoringCase: "bytes=") else {
            self = .other
            return
        }
        var reader = DecimalReader(ByteRange(unit.end, value.end), in: bytes)
        let (first, isRange, last) = (reader.number(), reader.take(UInt8(ascii: "-")), reader.number())
        self =
            switch (first, last) {
            case _ where !isRange || !reader.isAtEnd: .other
            case (let first?, let last?) where last < first: .other
            case (let first?, let last): .bytes(first: first, last: last)
            case (nil, let length?): .end(length: length)
            case (nil, nil): .other
            }
    }

    /// Takes into account what the edits of a request's head change.
    package mutating func apply(_ edits: HeadEdits) {
        for edit in edits.list where edit.name.lowercased() == "range" {
            switch edit.action {
            case .set(let value): self = WantedPart(value)
            case .addIfAbsent(let value): if self == .whole { self = WantedPart(value) }
            case .add: self = .other
            case .remove: self = .whole
            }
        }
    }

    /// Whether a server may send these bytes for it. It may send less than was asked for (RFC 9110 section 15.3.7).
    func includes(_ bytes: ClosedRange<UInt64>, of complete: UInt64?) -> Bool {
        switch self {
        case .whole: false
        case .bytes(let first, let last): bytes.lowerBound >= first && bytes.upperBound <= last ?? .max
        case .end(let length): complete.map { bytes.lowerBound >= $0 - min($0, length) } ?? (bytes.length <= length)
        case .other: true
        }
    }
}

extension ResponseHead {
    /// Why the response doesn't answer a request for that part; nil: it does.
    package func defect(answering part: WantedPart, in bytes: Span<UInt8>) -> WireError? {
        guard status == 206 else { return nil }
        guard part != .whole else { return WireError(.unaskedPart, at: 0) }
        return isPart(of: part, in: bytes) ? nil : WireError(.wrongPart, at: 0)
    }

    /// Whether it declares itself as the requested part (RFC 9110 section 15.3.7).
    private func isPart(of wanted: WantedPart, in bytes: Span<UInt8>) -> Bool {
        guard let field = first(.contentRange) else {
            // Several parts, which aren't allowed for a request of one.
            guard wanted == .other, let type = first(.contentType) else { return false }
            let essence = "multipart/byteranges"
            return type.count >= essence.utf8.count
                && bytes.equals(ByteRange(type.start, type.start + essence.utf8.count), ignoringCase: essence)
        }
        switch ContentRange.parse(bytes.extracting(field.offsets)) {
        case .bytes(let part, let complete)?:
            if let length = bodyLength.bytes, length != part.length { return false }
            return wanted.includes(part, of: complete)
        case .unsatisfied?: return false
        case nil: return wanted == .other
        }
    }
}

extension ClosedRange<UInt64> {
    /// Bounds are those of ``ContentRange``, of 63 bits: `count` would be one more than Int holds.
    fileprivate var length: UInt64 { upperBound - lowerBound + 1 }
}
