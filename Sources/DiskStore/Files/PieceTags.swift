import PinproxyTLS

/// Verifies the pieces of one body by a key and a GMAC tag of each piece.
///
/// The tags detect change and keep no secret: the key is beside them, in an index that only its user can read.
///
/// No nonce is used twice with one key: the key is random and for this body alone, and the nonce numbers the piece. One
/// key for the whole index would repeat nonces: after a restart, the numbers of removed records and of abandoned bodies
/// are used again.
struct PieceTags: ~Copyable, Sendable {
    /// The key, then the tags in the order of their pieces.
    private(set) var bytes: [UInt8]
    /// The record's number.
    private let id: Int64
    private var gmac: GMAC

    /// For a body that is written now.
    init(id: Int64) {
        var random = SystemRandomNumberGenerator()
        let key: [UInt64] = [random.next(), random.next()]
        self.init(id: id, bytes: key.withUnsafeBytes { [UInt8]($0) })
    }

    /// For a stored body.
    /// - Parameter bytes: as many as ``byteCount(_:)`` says.
    init(id: Int64, bytes: [UInt8]) {
        self.id = id
        self.bytes = bytes
        gmac = GMAC(key: Array(bytes[..<GMAC.keyLength]))
    }

    /// Bytes for a body of so many pieces.
    static func byteCount(_ pieces: Int) -> Int { GMAC.keyLength + pieces * GMAC.tagLength }

    /// Adds the tag of the next piece.
    mutating func append(_ piece: [UInt8]) {
        bytes += tag(of: piece, (bytes.count - GMAC.keyLength) / GMAC.tagLength)
    }

    /// Whether the piece with this number was stored with these bytes.
    mutating func verify(_ piece: [UInt8], at number: Int) -> Bool {
        bytes[Self.byteCount(number)..<Self.byteCount(number + 1)].elementsEqual(tag(of: piece, number))
    }

    private mutating func tag(of piece: [UInt8], _ number: Int) -> [UInt8] {
        var nonce: [UInt8] = []
        withUnsafeBytes(of: id.bigEndian) { nonce += $0 }
        withUnsafeBytes(of: UInt32(number).bigEndian) { nonce += $0 }
        return gmac.tag(of: piece, nonce: nonce)
    }
}
