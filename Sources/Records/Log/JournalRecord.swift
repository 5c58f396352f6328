import Glibc

/// An event on its way to the system's journal (systemd-journald(8)), as a ``LogQueue`` carries it: between control
/// characters, which no value can hold, since all of them are escaped.
///
/// The journal gets `MESSAGE=`, `PRIORITY=`, and a field for each of the event's: `PINPROXY_EVENT=pin.mismatch`,
/// `PINPROXY_HOST=api.example.com`. Events that people match on have a `MESSAGE_ID=` too.
package enum JournalRecord {
    static let start: UInt8 = 0x1C
    static let separator: UInt8 = 0x1E
    static let end: UInt8 = 0x1D
    static let prefix = "PINPROXY_"

    private static let message = Array("MESSAGE=".utf8)
    private static let priority = Array("PRIORITY=".utf8)
    private static let event = Array("PINPROXY_EVENT=".utf8)
    private static let messageID = Array("MESSAGE_ID=".utf8)

    /// Where the first record among the lines begins. Each line passes here, and mostly none is one.
    static func firstStart(in lines: [UInt8]) -> Int? {
        lines.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let found = memchr(base, CInt(start), bytes.count) else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// Capital letters, digits and underscores are all that the journal takes.
    static func fieldNameByte(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 32
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
        default: UInt8(ascii: "_")
        }
    }

    /// The fields of a record without its first and last byte, each `NAME=value`.
    static func withFields(of record: ArraySlice<UInt8>, _ body: ([iovec]) -> Bool) -> Bool {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(record.count + message.count + priority.count + messageID.count + 33)
        var ranges: [Range<Int>] = []
        func add(_ name: [UInt8], _ value: ArraySlice<UInt8>) {
            let start = bytes.count
            bytes += name
            bytes += value
            ranges.append(start..<bytes.count)
        }
        add(priority, record.prefix(1))
        for (index, part) in record.dropFirst().split(separator: separator, omittingEmptySubsequences: false).enumerated() {
            add(index == 0 ? message : [], part)
            // The event's name comes first of its fields.
            guard index == 1, part.starts(with: event),
                let id = JournalMessageID.of(String(decoding: part.dropFirst(event.count), as: UTF8.self))
            else { continue }
            add(messageID, ArraySlice(id.utf8))
        }
        return bytes.withUnsafeMutableBytes { bytes in
            let base = bytes.baseAddress
            return body(ranges.map { range in iovec(iov_base: base?.advanced(by: range.lowerBound), iov_len: range.count) })
        }
    }
}
