import PinproxyEventLoop
import Testing

@testable import PinproxyReachability

@Suite struct NetlinkParserTests {
    private static let recordings = [
        RecordedMessages.vethLink, RecordedMessages.addressDump, RecordedMessages.route4, RecordedMessages.route6,
    ]

    /// Passes the bytes as the socket does: aligned, and with nothing readable after them.
    private func parse(_ bytes: [UInt8]) throws -> [NetlinkMessage] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 4)
        defer { buffer.deallocate() }
        buffer.copyBytes(from: bytes)
        return try NetlinkParser.messages(in: UnsafeRawBufferPointer(buffer))
    }

    @Test func readsALink() throws {
        let message = try #require(parse(RecordedMessages.vethLink).first)
        #expect(message.sequence == 7)
        #expect(!message.isInterrupted)
        guard case .link(let link) = message.content else {
            Issue.record("\(message)")
            return
        }
        #expect(link.index == 3)
        #expect(link.name == "v0")
        #expect(link.kind == "veth")
        #expect(link.lower == 2)
        #expect(link.isUsable)
        #expect(!link.isLoopback)
    }

    @Test func readsAddresses() throws {
        let messages = try parse(RecordedMessages.addressDump)
        let addresses = messages.compactMap { message in
            if case .address(let address) = message.content { address } else { nil }
        }
        #expect(addresses.map(\.link) == [1, 3, 1, 2, 3, 3])
        #expect(addresses.map(\.isIPv6) == [false, false, true, true, true, true])
        // Loopback's addresses have scope host, link-local ones scope link.
        #expect(addresses.map(\.isUsable) == [false, true, false, false, true, false])
    }

    @Test func readsRoutes() throws {
        let routes = try [RecordedMessages.route4, RecordedMessages.route6].map { try parse($0).map(\.content) }
        #expect(
            routes == [
                [
                    .route(
                        RouteRecord(type: 1, link: 3, gateway: IPAddress("192.0.2.1"), source: IPAddress("192.0.2.7")))
                ],
                [
                    .route(
                        RouteRecord(
                            type: 1, link: 3, gateway: IPAddress("2001:db8::1"), source: IPAddress("2001:db8::7")))
                ],
            ])
    }

    @Test func readsAnErrorAndTheEndOfADump() throws {
        // NLMSG_ERROR with −101 (ENETUNREACH) and the request's header; NLMSG_DONE with NLM_F_DUMP_INTR.
        let error: [UInt8] =
            [36, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0x9B, 0xFF, 0xFF, 0xFF]
            + [UInt8](repeating: 0, count: 16)
        let done: [UInt8] = [20, 0, 0, 0, 3, 0, 0x12, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let messages = try parse(error + done)
        #expect(messages.map(\.content) == [.failed(101), .done])
        #expect(messages.map(\.isInterrupted) == [false, true])
        #expect(messages.map(\.sequence) == [9, 9])
    }

    @Test(arguments: recordings) func noPrefixIsTakenForTheWhole(_ recording: [UInt8]) throws {
        let whole = try parse(recording)
        var ends: Set<Int> = [0]
        var end = 0
        while end < recording.count {
            end += Int(recording[end]) | Int(recording[end + 1]) << 8
            ends.insert(end)
        }
        for count in 0..<recording.count {
            let prefix = Array(recording.prefix(count))
            if ends.contains(count) {
                #expect(try parse(prefix).count < whole.count)
            } else {
                #expect(throws: NetlinkDefect.truncated) { try parse(prefix) }
            }
        }
    }

    /// The message's length falsely ends within an attribute, at every place.
    @Test(arguments: recordings) func anAttributeDoesNotReachBeyondItsMessage(_ recording: [UInt8]) throws {
        let length = Int(recording[0]) | Int(recording[1]) << 8
        // Where each attribute ends, with and without the padding after it.
        var ends: Set<Int> = []
        var next = 16 + (recording[4] == 16 ? 16 : recording[4] == 20 ? 8 : 12)
        ends.insert(next)
        while next < length {
            let size = Int(recording[next]) | Int(recording[next + 1]) << 8
            ends.formUnion(next + size...next + (size + 3) & ~3)
            next += (size + 3) & ~3
        }
        for count in 16..<length {
            var message = Array(recording.prefix(count))
            (message[0], message[1]) = (UInt8(count & 0xFF), UInt8(count >> 8))
            if ends.contains(count) {
                #expect(try parse(message).count == 1)
            } else {
                #expect(throws: NetlinkDefect.truncated) { try parse(message) }
            }
        }
    }

    /// No byte makes the parser read beyond its input (under the address sanitizer) or trap.
    @Test(arguments: recordings) func anyByteMayBeWrong(_ recording: [UInt8]) {
        for index in recording.indices.prefix(400) {
            for value: UInt8 in [0, 1, 3, 0x7F, 0xFF] {
                var message = recording
                message[index] = value
                _ = try? parse(message)
            }
        }
    }

    @Test func aLengthBeyondTwoGibibytesIsRefused() {
        var message = RecordedMessages.route4
        message[3] = 0xFF
        #expect(throws: NetlinkDefect.truncated) { try parse(message) }
    }

    @Test func anAttributeOfAnotherSizeIsRefused() {
        // RTA_OIF of two bytes.
        let route: [UInt8] =
            [36, 0, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 12)
            + [6, 0, 4, 0, 3, 0, 0, 0]
        #expect(throws: NetlinkDefect.attributeSize(type: 4)) { try parse(route) }
    }
}
