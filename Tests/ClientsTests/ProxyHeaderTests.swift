import PinproxyEventLoop
import Testing

@testable import PinproxyClients

/// Version 1 and 2 of the PROXY protocol: every prefix of valid headers, and invalid ones.
@Suite struct ProxyHeaderTests {
    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    private static func binary(_ rest: [UInt8]) -> [UInt8] { binary(0x21, 0x11, rest) }

    private static func binary(_ command: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? rest.count
        return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + rest
    }

    private static let v4: [UInt8] = [192, 0, 2, 1, 192, 0, 2, 2, 0xDC, 0x04, 0x01, 0xBB]
    private static let v6: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1] + Array(repeating: 0, count: 15) + [
            1, 0x12, 0x34, 0x01, 0xBB,
        ]

    private static func field(_ type: UInt8, _ value: [UInt8]) -> [UInt8] {
        [type, UInt8(value.count >> 8), UInt8(value.count & 0xFF)] + value
    }

    private static func source(_ ip: String, _ port: UInt16) -> ProxyHeader.Source {
        .address(SocketAddress(ip: IPAddress(ip)!, port: port))
    }

    /// With the checksum that HAProxy would write.
    private static func checked(_ before: [UInt8], _ after: [UInt8]) -> [UInt8] {
        var header = binary(before + field(3, [0, 0, 0, 0]) + after)
        let sum = CRC32C.of(header)
        let place = signature.count + 4 + before.count + 3
        for index in 0..<4 { header[place + index] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32(index))) }
        return header
    }

    private static let good: [([UInt8], ProxyHeader.Source)] = [
        (Array("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n".utf8), source("192.0.2.1", 56324)),
        (Array("PROXY TCP6 2001:db8::1 ::1 1 65535\r\n".utf8), source("2001:db8::1", 1)),
        (Array("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".utf8), source("255.255.255.255", 65535)),
        (
            Array("PROXY TCP6 ffff:f:f:f:f:f:f:ffff ffff:f:f:f:f:f:f:ffff 0 0\r\n".utf8),
            source("ffff:f:f:f:f:f:f:ffff", 0)
        ),
        (Array("PROXY UNKNOWN\r\n".utf8), .unknown),
        (Array("PROXY UNKNOWN ffff:f...f:ffff whatever is here\r\n".utf8), .unknown),
        (binary(v4), source("192.0.2.1", 56324)),
        (binary(0x21, 0x21, v6), source("2001:db8::1", 0x1234)),
        // Fields after the addresses, of known and unknown types.
        (
            binary(v4 + field(2, Array("example.com".utf8)) + field(0x20, [1, 0, 0, 0, 0]) + field(0xEE, [])),
            source("192.0.2.1", 56324)
        ),
        (checked(v4, field(1, Array("h2".utf8))), source("192.0.2.1", 56324)),
        (checked(v4 + field(4, [0, 0, 0]), []), source("192.0.2.1", 56324)),
        // LOCAL: whatever follows is skipped.
        (binary(0x20, 0x00, []), .unknown), (binary(0x20, 0x11, v4), .unknown),
        (binary(0x20, 0xFF, [3, 0, 4, 1, 2, 3, 4, 9]), .unknown),
        // An unspecified family, and Unix sockets.
        (binary(0x21, 0x00, []), .unknown), (binary(0x21, 0x00, field(0xEE, [1])), .unknown),
        (binary(0x21, 0x31, [UInt8](repeating: 0x2F, count: 216)), .unknown), (binary(0x21, 0x10, v4), .unknown),
    ]

    @Test(arguments: good.indices) func readsWhatIsWhole(_ index: Int) throws {
        let (bytes, source) = Self.good[index]
        for length in 0..<bytes.count {
            #expect(try ProxyHeader.parse(Array(bytes[..<length])) == nil, "\(length) bytes")
        }
        for rest in ["", "C", "CONNECT a.test:443 HTTP/1.1\r\n\r\n", "PROXY UNKNOWN\r\n", "\r\n"] {
            #expect(try ProxyHeader.parse(bytes + rest.utf8) == ProxyHeader(source: source, length: bytes.count))
        }
    }

    private static let bad: [(String, ProxyHeader.Defect?)] = [
        ("GET / HTTP/1.1\r\n", .noHeader), ("CONNECT", .noHeader), ("\u{16}\u{03}\u{01}", .noHeader),
        ("PROXY\t", .noHeader),
        ("proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n", .noHeader), ("PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n", nil),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n", nil), ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n", nil),
        ("PROXY TCP4\r\n", nil),
        ("PROXY \r\n", nil), ("PROXY UNKNOWN\n", nil), ("PROXY UNKNOWNS\r\n", nil),
        ("PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n", nil),
        ("PROXY TCP4 ::1 ::1 1 2\r\n", nil), ("PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", nil),
        ("PROXY TCP4 192.0.2.1 ::1 1 2\r\n", nil),
        ("PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n", nil), ("PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n", nil),
        ("PROXY TCP4 localhost 192.0.2.2 1 2\r\n", nil), ("PROXY TCP6 fe80::1%lo ::1 1 2\r\n", nil),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n", nil), ("PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n", nil),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n", nil), ("PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n", nil),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1 x\r\n", nil), ("PROXY TCP4 192.0.2.1\u{0} 192.0.2.2 1 2\r\n", nil),
        ("PROXY " + String(repeating: "A", count: 101), nil),
        ("PROXY UNKNOWN " + String(repeating: "A", count: 200) + "\r\n", nil),
    ]

    @Test(arguments: bad.indices) func refusesWhatIsNot(_ index: Int) {
        let (text, defect) = Self.bad[index]
        if let defect {
            #expect(throws: defect) { try ProxyHeader.parse(Array(text.utf8)) }
        } else {
            #expect(throws: ProxyHeader.Defect.self, "\(text)") { try ProxyHeader.parse(Array(text.utf8)) }
        }
    }

    /// A header that can't become valid is refused before the rest of it arrives.
    @Test func refusesAtOnce() {
        let early: [([UInt8], ProxyHeader.Defect)] = [
            (Self.signature + [0x11], .malformed("version 1")), (Self.signature + [0x22], .malformed("command 2")),
            (Self.binary(0x21, 0x11, [], length: 8000), .tooLong),
            (Self.binary(0x21, 0x11, [], length: 0xFFFF), .tooLong),
            (Self.binary(0x21, 0x11, [], length: 11), .malformed("it ends within the addresses")),
            (Self.binary(0x21, 0x21, [], length: 35), .malformed("it ends within the addresses")),
            (Self.binary(0x21, 0x12, [], length: 12), .malformed("datagrams, where a stream is")),
            (Self.binary(0x21, 0x41, [], length: 12), .malformed("address family 4, transport 1")),
            (Self.binary(0x21, 0x13, [], length: 12), .malformed("address family 1, transport 3")),
        ]
        for (bytes, defect) in early { #expect(throws: defect) { try ProxyHeader.parse(bytes) } }
    }

    @Test func refusesBrokenFields() {
        let broken: [([UInt8], ProxyHeader.Defect)] = [
            (Self.v4 + [1], .malformed("it ends within a field")),
            (Self.v4 + [1, 0], .malformed("it ends within a field")),
            (Self.v4 + [1, 0, 2, 9], .malformed("it ends within a field")),
            (Self.v4 + [1, 0xFF, 0xFF], .malformed("it ends within a field")),
            (Self.v4 + Self.field(3, [1, 2, 3]), .malformed("the checksum has 3 bytes")),
            (Self.v4 + Self.field(3, [1, 2, 3, 4]), .wrongChecksum),
        ]
        for (rest, defect) in broken { #expect(throws: defect) { try ProxyHeader.parse(Self.binary(rest)) } }
        // A valid checksum before a bit is changed.
        let header = Self.checked(Self.v4, Self.field(1, [7]))
        for index in 16..<28 {
            var changed = header
            changed[index] ^= 1
            #expect(throws: ProxyHeader.Defect.wrongChecksum) { try ProxyHeader.parse(changed) }
        }
    }

    /// RFC 3720 appendix B.4
    @Test func computesTheChecksum() {
        #expect(CRC32C.of(Array("123456789".utf8)) == 0xE306_9283)
        #expect(CRC32C.of([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(CRC32C.of([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
    }
}
