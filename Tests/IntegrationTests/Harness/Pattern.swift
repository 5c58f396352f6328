import Foundation

/// The bytes 0 to 255, again and again: what the origins send as a large body.
enum Pattern {
    private static let block = (0..<65_536).map { UInt8(truncatingIfNeeded: $0) }

    static func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count { bytes += block.prefix(count - bytes.count) }
        return bytes
    }

    /// Whether a file has exactly this many bytes of the pattern.
    static func isWhole(_ path: String, _ count: Int) throws -> Bool {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let expected = Data(block)
        guard data.count == count else { return false }
        return stride(from: 0, to: count, by: 65_536).allSatisfy { start in
            let piece = data[start..<min(count, start + 65_536)]
            return piece == expected.prefix(piece.count)
        }
    }
}

extension SharedBed {
    /// By the system's program, not by our own code.
    func sha256(_ path: String) async throws -> String {
        String(try await bed.run(["sha256sum", path]).output.prefix(64))
    }
}
