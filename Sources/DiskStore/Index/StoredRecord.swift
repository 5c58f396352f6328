package import PinproxyTLS

/// A stored response, without its body. Its fields are those that were stored: their digest was verified.
package struct StoredRecord: Sendable {
    package let identity: Identity
    package let head: [UInt8]
    /// The caller's data, stored unchanged.
    package let metadata: [UInt8]
    /// Bytes.
    package let length: UInt64
    /// Milliseconds since 1970.
    package let stored: Int64
    /// Milliseconds since 1970. Touches of the last minutes may be missing.
    package let lastUsed: Int64

    let id: Int64
    /// The digest over the key and the tags of the body's pieces.
    let body: SHA256Digest

    /// The identity of a record, for finding it.
    package struct Identity: Sendable, Hashable {
        /// What `records(of:)` looks for.
        package let key: SHA256Digest
        /// Tells apart the records of one key, e.g. the values of the fields that Vary names.
        package let variant: [UInt8]
        /// The user or run that may see it.
        package let owner: [UInt8]
        package let host: String
        package let url: String

        package init(key: SHA256Digest, variant: [UInt8], owner: [UInt8], host: String, url: String) {
            self.key = key
            self.variant = variant
            self.owner = owner
            self.host = host
            self.url = url
        }

        var byteCount: Int { 32 + variant.count + owner.count + host.utf8.count + url.utf8.count }
    }

    /// Bytes that count toward the limit: whole blocks of the body's file, and the row with what the
    /// index adds to it.
    var size: UInt64 { Self.size(identity, head: head.count, metadata: metadata.count, length: length) }

    static func size(_ identity: Identity, head: Int, metadata: Int, length: UInt64) -> UInt64 {
        let row = identity.byteCount + head + metadata + PieceTags.byteCount(pieceCount(length))
        let body = length > Piece.inlineLimit ? (length + 4095) / 4096 * 4096 : length
        return body + UInt64(row * 3 / 2 + 512)
    }

    /// Small bodies are in their row, where they cost less than in a file.
    var hasFile: Bool { length > Piece.inlineLimit }

    var pieceCount: Int { Self.pieceCount(length) }

    private static func pieceCount(_ length: UInt64) -> Int {
        Int((length + Piece.sizeInFile - 1) / Piece.sizeInFile)
    }

    /// Covers all that is believed of a row: a changed one, and one that belongs to another file, don't match.
    var digest: SHA256Digest {
        var text = Array("pinproxy cache record 1".utf8)
        text.reserveCapacity(head.count + metadata.count + identity.byteCount + 256)
        func add(_ bytes: some Collection<UInt8>) {
            add(UInt64(bytes.count))
            text.append(contentsOf: bytes)
        }
        func add(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { text.append(contentsOf: $0) } }
        add(UInt64(bitPattern: id))
        add(UInt64(bitPattern: stored))
        add(length)
        add(identity.key.bytes)
        add(identity.variant)
        add(identity.owner)
        add(identity.host.utf8)
        add(identity.url.utf8)
        add(head)
        add(metadata)
        add(body.bytes)
        return SHA256Digest.of(text)
    }
}

/// Bodies are verified piece by piece.
enum Piece {
    /// Bytes of each but the last.
    static let size = 64 << 10
    static let sizeInFile = UInt64(size)
    /// Bytes that a body without a file has at most. A part of the index's format.
    static let inlineLimit = 8 << 10
}
