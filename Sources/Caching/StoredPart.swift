package import PinproxyHTTPWire

/// One contiguous range of a representation's bytes under a strong entity tag: of a 206, or all of a 200 (RFC 9111
/// sections 3.3 and 3.4).
package struct StoredPart: Sendable, Equatable {
    package let bytes: Range<UInt64>
    /// Bytes of the whole representation.
    package let complete: UInt64
    package let tag: EntityTag

    /// Nil: the response isn't such a part, or the body has another length than its head says.
    package init?(_ response: CachedTraits, bodyLength: UInt64) {
        guard let tag = response.etag, !tag.isWeak else { return nil }
        switch (response.status, response.contentRange) {
        case (200, _): self.init(bytes: 0..<bodyLength, complete: bodyLength, tag: tag)
        case (206, .bytes(let range, let complete?)?):
            let bytes = range.lowerBound..<range.upperBound + 1
            guard bytes.upperBound - bytes.lowerBound == bodyLength else { return nil }
            self.init(bytes: bytes, complete: complete, tag: tag)
        default: return nil
        }
    }

    private init(bytes: Range<UInt64>, complete: UInt64, tag: EntityTag) {
        self.bytes = bytes
        self.complete = complete
        self.tag = tag
    }

    package var isWhole: Bool { bytes == 0..<complete }

    /// A response's head for these bytes: 200 if none is missing, else 206.
    package func head(of response: OwnedResponse) -> OwnedResponse? {
        isWhole ? response.whole(of: complete) : response.part(bytes, of: complete)
    }

    /// This part and a newer one as one. Nil: they are of different versions, or bytes between them are missing.
    package func combined(with new: StoredPart) -> CombinedPart? {
        guard tag == new.tag, complete == new.complete, bytes.lowerBound <= new.bytes.upperBound,
            new.bytes.lowerBound <= bytes.upperBound
        else { return nil }
        let lower = min(bytes.lowerBound, new.bytes.lowerBound)
        let upper = max(bytes.upperBound, new.bytes.upperBound)
        let known = bytes.lowerBound
        let pieces = [
            CombinedPart.Piece(isNew: false, bytes: 0..<(new.bytes.lowerBound - lower)),
            CombinedPart.Piece(isNew: true, bytes: 0..<(new.bytes.upperBound - new.bytes.lowerBound)),
            CombinedPart.Piece(
                isNew: false, bytes: max(new.bytes.upperBound, known) - known..<max(upper, known) - known),
        ]
        return CombinedPart(
            part: StoredPart(bytes: lower..<upper, complete: complete, tag: tag),
            pieces: pieces.filter { !$0.bytes.isEmpty })
    }
}

/// Two parts that became one (RFC 9110 section 15.3.7.3).
package struct CombinedPart: Sendable, Equatable {
    /// Bytes of one of the two bodies.
    package struct Piece: Sendable, Equatable {
        package let isNew: Bool
        /// Offsets in that body.
        package let bytes: Range<UInt64>
    }

    package let part: StoredPart
    /// The combined body, in order. Where both have a byte, the newer response's counts.
    package let pieces: [Piece]

    /// Its head: fields of the newer response replace those of the stored one; 200 if no byte is missing.
    /// - Parameter received: when the newer one came, in Unix seconds.
    package func head(of stored: OwnedResponse, with new: borrowing ResponseView, received: Int64) -> OwnedResponse? {
        let base =
            new.head.status == 200
            ? OwnedResponse(new).stored(length: Int(clamping: part.complete), received: received)
            : Confirmation.updated(stored, by: new, received: received)
        return base.flatMap(part.head)
    }
}
