import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// Attacks on a whole session, each at and over its limit.
@Suite struct FloodTests {
    struct Flood: CustomTestStringConvertible, Sendable {
        let what: String
        let limit: Int
        /// The frames of one round; `index` begins at 0.
        let round: @Sendable (_ index: UInt32) -> [UInt8]
        var testDescription: String { what }
    }

    private static let limits = FloodLimits()

    static let floods: [Flood] = [
        Flood(what: "rapid reset", limit: limits.resets.burst) { Raw.request(2 * $0 + 1) + Raw.reset(2 * $0 + 1) },
        Flood(what: "malformed heads (MadeYouReset)", limit: limits.faults.burst) {
            Raw.request(2 * $0 + 1, [("connection", "x")])
        },
        Flood(what: "windows that overflow (MadeYouReset)", limit: limits.faults.burst) {
            Raw.request(2 * $0 + 1) + Raw.windowUpdate(2 * $0 + 1, 0x7FFF_FFFF)
        },
        Flood(what: "bodies of another length (MadeYouReset)", limit: limits.faults.burst) {
            Raw.request(2 * $0 + 1, [("content-length", "1")], flags: Raw.endHeaders) + Raw.data(2 * $0 + 1, "12")
        },
        // One came with the connection.
        Flood(what: "SETTINGS", limit: limits.settings.burst - 2) { _ in Raw.settings([(1, 0)]) },
        Flood(what: "PING", limit: limits.pings.burst) { _ in Raw.ping() },
        Flood(what: "answers to PING", limit: limits.pings.burst) { _ in Raw.ping(ack: true) },
        Flood(what: "empty DATA", limit: limits.emptyData.burst) {
            ($0 == 0 ? Raw.request(1, flags: Raw.endHeaders) : []) + Raw.data(1, "")
        },
        Flood(what: "WINDOW_UPDATE", limit: limits.windowUpdates.burst) { _ in Raw.windowUpdate(0, 1) },
        Flood(what: "PRIORITY", limit: limits.priorities.burst) { Raw.frame(2, 0, 2 * $0 + 1, [0, 0, 0, 0, 16]) },
        Flood(what: "PRIORITY_UPDATE", limit: limits.priorities.burst) { _ in
            Raw.frame(16, 0, 0, Raw.number(1) + Array("u=1".utf8))
        },
        Flood(what: "frames of unknown types", limit: limits.ignored.burst) { _ in Raw.frame(0xFA, 0, 0, [1, 2, 3]) },
        Flood(what: "GOAWAY", limit: limits.settings.burst - 2) { _ in Raw.frame(7, 0, 0, Raw.number(0) + Raw.number(0))
        },
    ]

    @Test(arguments: floods)
    func aFloodIsLetThroughToItsLimit(_ flood: Flood) throws {
        let server = try Peer.server()
        for index in 0..<flood.limit {
            server.receive(flood.round(UInt32(index)))
            _ = server.collect()
        }
        #expect(!server.received.contains { if case .failed = $0 { true } else { false } })
        server.receive(flood.round(UInt32(flood.limit)))
        #expect(server.received.last == .failed(.enhanceYourCalm))
        let last = try #require(SentFrame.all(in: server.collect()).last)
        #expect(last.kind == .goAway && last.code == .enhanceYourCalm)
        #expect(String(decoding: last.payload[8...], as: UTF8.self).contains("too many"))
    }

    @Test(arguments: floods)
    func theSameSlowerDoesNoHarm(_ flood: Flood) throws {
        let server = try Peer.server()
        for index in 0..<UInt32(2 * flood.limit) {
            server.receive(flood.round(index), at: UInt64(index) * 100_000_000)
            _ = server.collect()
        }
        #expect(!server.received.contains { if case .failed = $0 { true } else { false } })
    }

    @Test func aHeadHasSoManyCONTINUATIONFrames() throws {
        for (count, passes) in [(7, true), (8, true), (9, false), (10_000, false)] {
            let server = try Peer.server()
            var bytes = Raw.frame(1, Raw.endStream, 1, Raw.get.flatMap { Raw.literal($0.0, $0.1) })
            for index in 0..<count {
                bytes += Raw.frame(9, index == count - 1 ? Raw.endHeaders : 0, 1, Raw.literal("x", "\(index)"))
            }
            server.receive(bytes)
            if passes {
                guard case .head(1, let text, ends: true, _)? = server.received.first else {
                    Issue.record("\(server.received)")
                    continue
                }
                #expect(text.contains("x: \(count - 1)\r\n"))
            } else {
                #expect(server.received == [.failed(.enhanceYourCalm)])
            }
        }
    }

    @Test func continuationFramesWithoutAnEndEmptyOnesAmongThem() throws {
        let server = try Peer.server()
        server.receive(Raw.frame(1, Raw.endStream, 1) + (0..<9).flatMap { _ in Raw.frame(9, 0, 1) })
        #expect(server.received == [.failed(.enhanceYourCalm)])
    }

    @Test func continuationFramesForAStreamThatIsRefusedAreCountedToo() throws {
        let server = try Peer.server()
        server.receive(Raw.frame(1, 1, 1, Raw.literal("X", "y")) + (0..<9).flatMap { _ in Raw.frame(9, 0, 1) })
        #expect(server.received == [.malformed(1, .field), .failed(.enhanceYourCalm)])
    }

    @Test func headsForClosedStreamsAreCounted() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1) + Raw.request(3))
        server.session.reset(HTTP2StreamID(1), .cancel)
        _ = server.collect()
        for _ in 0..<FloodLimits().ignored.burst { server.receive(Raw.request(1)) }
        #expect(server.received.count == 2)
        server.receive(Raw.request(1))
        #expect(server.received.last == .failed(.enhanceYourCalm))
    }

    @Test func anOriginsResetsOfStreamsThatWereOpenedArePaidFor() throws {
        let client = try Peer(.client)
        _ = client.collect()
        client.receive(Raw.settings() + Raw.settingsAck)
        for index in 0..<UInt32(3000) {
            _ = try #require(client.session.submitRequest(request(), hasBody: false))
            _ = client.collect()
            client.receive(Raw.reset(2 * index + 1, 7))
        }
        #expect(client.received.last == .reset(5999, .refusedStream))
        // Other frames are not limited.
        for _ in 0...FloodLimits().resets.burst { client.receive(Raw.reset(1)) }
        #expect(client.received.last == .failed(.enhanceYourCalm))
    }

    @Test func aClientOfManyGoodStreamsMayResetMany() throws {
        let server = try Peer.server()
        for index in 0..<UInt32(4000) {
            let stream = 2 * index + 1
            server.receive(Raw.request(stream))
            if index % 2 == 0 {
                server.session.submitResponse(HTTP2StreamID(Int32(stream)), response(), hasBody: false)
                _ = server.collect()
            } else {
                server.receive(Raw.reset(stream))
            }
        }
        #expect(!server.received.contains { if case .failed = $0 { true } else { false } })
    }

    @Test func tooManySettingsInOneFrame() throws {
        let server = try Peer.server()
        server.receive(Raw.settings((0..<33).map { (UInt16(0x100 + $0), 1) }))
        #expect(server.received == [.failed(.enhanceYourCalm)])
    }

    @Test func eventsAreBoundedAndSoIsTheTextOfHeads() throws {
        var limits = HTTP2Limits()
        limits.events = 4
        let server = try Peer.server(limits: limits)
        let bytes = (0..<20).flatMap { Raw.request(2 * $0 + 1) }
        let taken = server.session.receive(bytes.span, at: 0)
        #expect(taken == bytes.count / 5)
        var count = 0
        while server.session.nextEvent() != nil { count += 1 }
        #expect(count == 4)

        let other = try Peer.server()
        let long = Raw.request(1, [("x", String(repeating: "y", count: 16_000))]).dropFirst(0)
        let heads = (0..<50).flatMap { index in
            Raw.request(2 * index + 1, [("x", String(repeating: "y", count: 16_000))])
        }
        let first = other.session.receive(heads.span, at: 0)
        #expect(first < heads.count && first >= 256 << 10 && first < (256 << 10) + 2 * long.count)
    }
}
