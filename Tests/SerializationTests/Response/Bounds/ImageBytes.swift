@testable import Serialization

/// Why an image is refused; nil: it isn't.
func explanation(_ body: [UInt8], _ limits: ImageLimits = ImageLimits()) -> String? {
    caught { () throws(BodyDefect) in try ImageResponseSerializer(limits: limits).check(body: body) }?.explanation
}

/// A number as files have it, the high byte first.
func bytes(_ number: Int, _ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: number >> (8 * (size - 1 - $0))) }
}

/// The low byte first.
func littleEndian(_ number: Int, _ size: Int) -> [UInt8] { bytes(number, size).reversed() }

/// A chunk with its sum.
enum PNGChunk {
    static func bytes(_ type: String, _ contents: [UInt8]) -> [UInt8] {
        func number(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        let sum = crc32(Array(type.utf8) + contents)
        return number(UInt32(contents.count)) + Array(type.utf8) + contents + number(sum)
    }

    static func crc32(_ bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(~0) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
    }
}
