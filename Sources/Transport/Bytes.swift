internal import Glibc

extension [UInt8] {
    package init(copying bytes: RawSpan) { self = bytes.withUnsafeBytes { Array($0) } }

    package mutating func append(copying bytes: RawSpan) { bytes.withUnsafeBytes { append(contentsOf: $0) } }
}

extension Span<UInt8> {
    /// Uses memchr(3).
    package func firstIndex(of byte: UInt8) -> Int? {
        withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let found = memchr(base, CInt(byte), bytes.count) else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }
}

extension MutableSpan<UInt8> {
    /// Overwrites bytes from a place on. Traps without enough room.
    package mutating func copy(_ source: Span<UInt8>, to place: Int) {
        withUnsafeMutableBytes { room in
            source.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: room[place...]).copyMemory(from: $0) }
        }
    }
}
