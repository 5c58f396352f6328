import Testing

@testable import PinproxyDiskStore

@Suite struct PieceTagsTests {
    private static let pieces = (0..<3).map { number in (0..<5000).map { UInt8(truncatingIfNeeded: $0 * $0 + number) } }

    private static func written(id: Int64) -> [UInt8] {
        var tags = PieceTags(id: id)
        for piece in pieces { tags.append(piece) }
        return tags.bytes
    }

    /// Whether each piece matches its tag.
    private static func verified(id: Int64, _ bytes: [UInt8], _ pieces: [[UInt8]] = pieces) -> [Bool] {
        var tags = PieceTags(id: id, bytes: bytes)
        return pieces.indices.map { tags.verify(pieces[$0], at: $0) }
    }

    @Test func whatWasWrittenIsVerified() {
        let bytes = Self.written(id: 7)
        #expect(bytes.count == PieceTags.byteCount(3))
        #expect(Self.verified(id: 7, bytes) == [true, true, true])
    }

    /// Each byte of the key affects all pieces, each byte of a tag affects its piece.
    @Test func everyByteOfKeyAndTagsCounts() {
        let bytes = Self.written(id: 7)
        for place in bytes.indices {
            var changed = bytes
            changed[place] ^= 1 << UInt8(place % 8)
            #expect(Self.verified(id: 7, changed) == (0..<3).map { place >= 16 && place / 16 - 1 != $0 }, "\(place)")
        }
    }

    @Test func everyByteOfAPieceCounts() {
        let piece = Self.pieces[1]
        var tags = PieceTags(id: 7, bytes: Self.written(id: 7))
        var accepted: [Int] = []
        for place in piece.indices {
            var changed = piece
            changed[place] ^= 1 << UInt8(place % 8)
            if tags.verify(changed, at: 1) { accepted.append(place) }
        }
        #expect(accepted == [])
        let lengths = [Array(piece.dropLast()), piece + [0], [], piece].map { tags.verify($0, at: 1) }
        #expect(lengths == [false, false, false, true])
    }

    @Test func aPieceInAnotherPlaceIsRefused() {
        let bytes = Self.written(id: 7)
        let swapped = [Self.pieces[0], Self.pieces[2], Self.pieces[1]]
        #expect(Self.verified(id: 7, bytes, swapped) == [true, false, false])
        #expect(Self.verified(id: 8, bytes) == [false, false, false])
        // Nor is it valid with its tag moved along.
        let moved = Array(bytes[..<32] + bytes[48...] + bytes[32..<48])
        #expect(Self.verified(id: 7, moved, swapped) == [true, false, false])
    }

    /// After a restart a removed or abandoned body's number is reused, but its key isn't.
    @Test func eachBodyHasAKeyOfItsOwn() {
        let written = (0..<100).map { _ in Self.written(id: 7) }
        #expect(Set(written.map { $0[..<16] }).count == 100)
        #expect(Set(written.map { $0[16..<32] }).count == 100)
    }
}
