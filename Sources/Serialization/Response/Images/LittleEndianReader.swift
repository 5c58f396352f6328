/// Numbers in a file of Windows.
struct LittleEndianReader {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func word(_ offset: Int) throws(ImageDefect) -> Int { try number(offset, 2) }

    /// Four bytes.
    func long(_ offset: Int) throws(ImageDefect) -> Int { try number(offset, 4) }

    func signedLong(_ offset: Int) throws(ImageDefect) -> Int { Int(Int32(truncatingIfNeeded: try number(offset, 4))) }

    private func number(_ offset: Int, _ size: Int) throws(ImageDefect) -> Int {
        guard offset + size <= bytes.count else { throw .truncated }
        return (0..<size).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    }
}
