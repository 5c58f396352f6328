/// Writes messages of Protocol Buffers (proto3), field by field.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    mutating func field(_ number: Int, varint value: UInt64) {
        put(varint: UInt64(number) << 3)
        put(varint: value)
    }

    mutating func field(_ number: Int, fixed64 value: UInt64) {
        put(varint: UInt64(number) << 3 | 1)
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func field(_ number: Int, _ text: String) { field(number, Array(text.utf8)) }

    /// A message, or several fields of one.
    mutating func field(_ number: Int, _ message: (inout ProtobufWriter) -> Void) {
        var writer = ProtobufWriter()
        message(&writer)
        field(number, writer.bytes)
    }

    mutating func field(_ number: Int, _ encoded: [UInt8]) {
        put(varint: UInt64(number) << 3 | 2)
        put(varint: UInt64(encoded.count))
        bytes += encoded
    }

    private mutating func put(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }
}
