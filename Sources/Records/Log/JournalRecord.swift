/// An event for the journal (systemd-journald(8)) in a ``LogQueue``, between control characters, which values escape.
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

    /// The journal takes only capital letters, digits and underscores.
    static func fieldNameByte(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 32
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
        default: UInt8(ascii: "_")
        }
    }

    /// The fields of a record without its first and last byte, each `NAME=value`, as ranges of the bytes.
    static func fields(of record: ArraySlice<UInt8>) -> (bytes: [UInt8], fields: [Range<Int>]) {
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
        for (index, part) in record.dropFirst().split(separator: separator, omittingEmptySubsequences: false)
            .enumerated()
        {
            add(index == 0 ? message : [], part)
            // The event's name is its first field.
            guard index == 1, part.starts(with: event),
                let id = JournalMessageID.all[String(decoding: part.dropFirst(event.count), as: UTF8.self)]
            else { continue }
            add(messageID, ArraySlice(id.utf8))
        }
        return (bytes, ranges)
    }
}
