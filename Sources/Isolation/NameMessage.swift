package import PinproxyEventLoop

/// A stub resolver's question for addresses, and its answer (RFC 1035 section 4.1): one uncompressed name. c-ares 1.18,
/// of Debian 12, only reads answers and writes questions.
package struct NameMessage: Equatable {
    package enum Parsing: Equatable {
        case question(NameMessage)
        /// The only possible answer.
        case answer([UInt8])
        case nothing
    }

    package enum Kind: Equatable {
        case ipv4, ipv6
        /// HTTPS and SVCB (RFC 9460): no such record is known here. Clients then ask for addresses.
        case service
    }

    /// RCODE of the header.
    package enum Status: UInt8 {
        case fine = 0
        case malformed = 1
        case failed = 2
        case unknownName = 3
        case notImplemented = 4
        case refused = 5
    }

    /// The time to live of an answer. The proxy remembers the name servers' own times.
    private static let lifetimeSeconds: UInt32 = 10
    private static let headerLength = 12

    /// A name of printable ASCII, without a final dot. Empty: the root.
    package let name: String
    let kind: Kind
    /// The first two fields of the header.
    private let start: [UInt8]
    /// The whole section, which the answer repeats.
    private let section: [UInt8]

    package static func parse(_ bytes: [UInt8]) -> Parsing {
        // A response must not be answered.
        guard bytes.count >= headerLength, bytes[2] & 0x80 == 0 else { return .nothing }
        let start = Array(bytes[..<4])
        func answer(_ status: Status) -> Parsing { .answer(Self.answer(status, start: start, section: [])) }
        guard bytes[2] & 0x78 == 0 else { return answer(.notImplemented) }
        guard bytes[4] == 0, bytes[5] == 1 else { return answer(.malformed) }
        var position = headerLength
        var labels: [String] = []
        var isName = true
        while true {
            guard position < bytes.count, bytes[position] < 64, position - headerLength < 255 else {
                return answer(.malformed)
            }
            let label = bytes[(position + 1)...].prefix(Int(bytes[position]))
            guard label.count == Int(bytes[position]) else { return answer(.malformed) }
            position += 1 + label.count
            if label.isEmpty { break }
            isName = isName && label.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ".") }
            labels.append(String(decoding: label, as: UTF8.self))
        }
        guard position + 4 <= bytes.count else { return answer(.malformed) }
        let section = Array(bytes[headerLength..<(position + 4)])
        let (type, internet) = (UInt16(section.dropLast(2).suffix(2)), UInt16(section.suffix(2)) == 1)
        let kind: Kind
        switch type {
        case 1: kind = .ipv4
        case 28: kind = .ipv6
        case 64, 65: kind = .service
        default: return .answer(Self.answer(.notImplemented, start: start, section: section))
        }
        // No host has a name of another form.
        guard isName, internet else { return .answer(Self.answer(.unknownName, start: start, section: section)) }
        return .question(NameMessage(name: labels.joined(separator: "."), kind: kind, start: start, section: section))
    }

    package func answer(_ status: Status) -> [UInt8] { Self.answer(status, start: start, section: section) }

    /// - Parameter longest: in bytes. A longer answer is empty and has the TC bit, which asks for a query over TCP.
    package func answer(_ addresses: [IPAddress], longest: Int) -> [UInt8] {
        let wanted = addresses.filter { kind == .ipv6 ? $0.isIPv6 : kind == .ipv4 && !$0.isIPv6 }
        var answer = Self.answer(.fine, start: start, section: section)
        var records: [UInt8] = []
        for address in wanted {
            // The question's name (section 4.1.4: a pointer).
            records += [0xC0, UInt8(Self.headerLength), 0, kind == .ipv6 ? 28 : 1, 0, 1]
            records += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: Self.lifetimeSeconds >> $0) }
            records += [0, UInt8(address.bytes.count)] + address.bytes
        }
        if answer.count + records.count > longest {
            answer[2] |= 0x02
            return answer
        }
        answer[6] = UInt8(truncatingIfNeeded: wanted.count >> 8)
        answer[7] = UInt8(truncatingIfNeeded: wanted.count)
        return answer + records
    }

    /// Not authoritative, with recursion.
    private static func answer(_ status: Status, start: [UInt8], section: [UInt8]) -> [UInt8] {
        [
            start[0], start[1], 0x80 | (start[2] & 0x79), 0x80 | status.rawValue, 0, section.isEmpty ? 0 : 1, 0, 0, 0,
            0, 0, 0,
        ] + section
    }
}

extension UInt16 {
    /// Two bytes in network order.
    fileprivate init(_ bytes: ArraySlice<UInt8>) { self = bytes.reduce(0) { $0 << 8 | UInt16($1) } }
}
