import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// Heads at, below and above the announced limit (RFC 9113 section 6.5.2), and HPACK's expansion of few bytes.
@Suite struct HeaderListTests {
    private func size(_ fields: [(String, String)]) -> Int {
        fields.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 32 }
    }

    @Test func aHeadMayBeAsLargeAsWasAnnounced() throws {
        for excess in [-1, 0, 1] {
            var settings = HTTP2Settings()
            settings.maxHeaderListSize = 1000
            let server = try Peer.server(settings: settings)
            let rest = 1000 + excess - size(Raw.get) - size([("x", "")])
            server.receive(Raw.request(1, [("x", String(repeating: "y", count: rest))]) + Raw.request(3))
            switch server.received.first {
            case .head(1, _, ends: true, body: .none): #expect(excess <= 0)
            case .refused(1, "tooLarge"): #expect(excess == 1)
            default: Issue.record("\(server.received)")
            }
            #expect(server.received.last == .head(3, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ends: true, body: .none))
        }
    }

    @Test func aHeadOfMoreThanFourTimesThatSizeIsMalformed() throws {
        var settings = HTTP2Settings()
        settings.maxHeaderListSize = 1000
        for excess in [0, 1] {
            let server = try Peer.server(settings: settings)
            let rest = 4000 + excess - size(Raw.get) - size([("x", "")])
            server.receive(Raw.request(1, [("x", String(repeating: "y", count: rest))]) + Raw.request(3))
            #expect(server.received.first == (excess == 0 ? .refused(1, "tooLarge") : .malformed(1, .headTooLong)))
            #expect(server.received.count == 2)
        }
    }

    @Test func aHeadThatIsTooLargeCanStillBeRefusedByName() throws {
        var settings = HTTP2Settings()
        settings.maxHeaderListSize = 1000
        let server = try Peer.server(settings: settings)
        let bytes = Raw.request(1, [("x", String(repeating: "y", count: 1000)), ("z", "1")])
        #expect(server.session.receive(bytes.span, at: 0) == bytes.count)
        guard case .request(_, let place, _)? = server.session.nextEvent() else {
            Issue.record("no request")
            return
        }
        var (head, text) = (RequestHead(), [UInt8]())
        guard case .tooLarge = server.session.readRequest(place, into: &head, bytes: &text) else {
            Issue.record("not too large")
            return
        }
        #expect(head.method == .get)
        #expect(String(decoding: text, as: UTF8.self) == "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    }

    @Test func aHeadHasSoManyFields() throws {
        // Host counts as one.
        for (count, passes) in [(HeadParser.fieldLimit - 1, true), (HeadParser.fieldLimit, false), (1700, false)] {
            let server = try Peer.server()
            server.receive(Raw.request(1, (0..<count).map { ("a", "\($0 % 10)") }))
            switch server.received.first {
            case .head: #expect(passes)
            case .refused(1, "tooManyFields"): #expect(!passes)
            default: Issue.record("\(server.received)")
            }
        }
    }

    @Test func cookiesCountByTheirCrumbs() throws {
        var settings = HTTP2Settings()
        settings.maxHeaderListSize = 1000
        let server = try Peer.server(settings: settings)
        let crumbs = (1000 - size(Raw.get)) / size([("cookie", "a=1")])
        server.receive(Raw.request(1, [(String, String)](repeating: ("cookie", "a=1"), count: crumbs)))
        server.receive(Raw.request(3, [(String, String)](repeating: ("cookie", "a=1"), count: crumbs + 1)))
        guard case .head(1, _, _, _)? = server.received.first, case .refused(3, "tooLarge")? = server.received.last
        else {
            Issue.record("\(server.received)")
            return
        }
    }

    /// A table entry of 4 KiB, then an index of one byte for each copy.
    private func bomb(_ stream: UInt32, copies: Int, stores: Bool) -> [UInt8] {
        var block = Raw.get.flatMap { Raw.literal($0.0, $0.1) }
        if stores { block += Raw.literal("x", String(repeating: "y", count: 4000), form: 0x40) }
        return Raw.frame(1, 5, stream, block + [UInt8](repeating: 0x80 | 62, count: copies))
    }

    @Test func aBombOfHPACKCostsWhatAHeadMayCost() throws {
        let server = try Peer.server()
        server.receive(bomb(1, copies: 60, stores: true))
        #expect(server.received == [.refused(1, "tooLarge")])
        server.receive(bomb(5, copies: 10_000, stores: false))
        #expect(server.received.last == .malformed(5, .headTooLong))
        #expect(
            SentFrame.all(in: server.collect()).contains {
                $0.kind == .reset && $0.stream == 5 && $0.code == .enhanceYourCalm
            })
        server.receive(bomb(7, copies: 3, stores: false))
        guard case .head(7, let text, _, _)? = server.received.last else {
            Issue.record("\(server.received)")
            return
        }
        #expect(text.utf8.count > 12_000)
    }

    @Test func bombsInOneReadDontAddUp() throws {
        let server = try Peer.server()
        server.receive(bomb(1, copies: 1, stores: true))
        let bytes = (1..<100).flatMap { bomb(2 * UInt32($0) + 1, copies: 15, stores: false) }
        #expect(bytes.count < 16_384)
        var start = 0
        var rounds = 0
        while start < bytes.count {
            start += server.session.receive(Array(bytes[start...]).span, at: 0)
            while server.session.nextEvent() != nil {}
            rounds += 1
        }
        #expect(rounds >= 20)
    }

    @Test func trailersThatAreTooLongAreMalformed() throws {
        var settings = HTTP2Settings()
        settings.maxHeaderListSize = 1000
        let server = try Peer.server(settings: settings)
        for (stream, length) in [(UInt32(1), 1000 - 33), (3, 1001 - 33)] {
            server.receive(
                Raw.request(stream, flags: Raw.endHeaders)
                    + Raw.headers(stream, [("x", String(repeating: "y", count: length))]))
        }
        guard case .trailers(1, _)? = server.received.dropLast(2).last else {
            Issue.record("\(server.received)")
            return
        }
        #expect(server.received.last == .malformed(3, .trailersTooLong))
    }

    @Test func aPlaceIsValidUntilTheNextReceive() throws {
        let server = try Peer.server()
        let bytes = Raw.request(1)
        _ = server.session.receive(bytes.span, at: 0)
        guard case .request(_, let place, _)? = server.session.nextEvent() else {
            Issue.record("no request")
            return
        }
        _ = server.session.receive(Raw.request(3).span, at: 0)
        var (head, text) = (RequestHead(), [UInt8]())
        guard case .malformed = server.session.readRequest(place, into: &head, bytes: &text) else {
            Issue.record("a place of an earlier round was read")
            return
        }
        #expect(text.isEmpty)
    }

    @Test func aSessionThatHasGivenBackMemoryContinues() throws {
        let server = try Peer.server()
        let heads = (0..<20).flatMap { Raw.request(2 * $0 + 1, [("x", String(repeating: "y", count: 5000))]) }
        server.receive(heads)
        #expect(server.received.count == 20)
        server.session.trim()
        for index in Int32(0)..<20 {
            server.session.submitResponse(HTTP2StreamID(2 * index + 1), response(), hasBody: false)
        }
        _ = server.collect()
        server.session.trim()
        let bytes = Raw.request(41, [("cookie", "a=1"), ("cookie", "b=2")])
        server.receive(Array(bytes.prefix(30)))
        server.session.trim()
        server.receive(Array(bytes.dropFirst(30)))
        #expect(
            server.received.last
                == .head(41, "GET / HTTP/1.1\r\nHost: a.test\r\ncookie: a=1; b=2\r\n\r\n", ends: true, body: .none))
    }

    @Test func aHeadMayComeInTwoReceives() throws {
        let server = try Peer.server()
        let bytes = Raw.request(1) + Raw.request(3, [("x", "y")])
        server.receive(Array(bytes.prefix(bytes.count - 4)))
        server.receive(Array(bytes.suffix(4)))
        #expect(
            server.received.last == .head(3, "GET / HTTP/1.1\r\nHost: a.test\r\nx: y\r\n\r\n", ends: true, body: .none))
    }

    @Test func fieldsThatMayNotBeIndexedAreToldOfExceptTheUsualSecrets() throws {
        for (name, tells) in [
            ("authorization", false), ("cookie", false), ("set-cookie", false), ("proxy-authorization", false),
            ("x-api-key", true),
        ] {
            let server = try Peer.server()
            let bytes = Raw.frame(
                1, 5, 1, Raw.get.flatMap { Raw.literal($0.0, $0.1) } + Raw.literal(name, "secret", form: 0x10))
            _ = server.session.receive(bytes.span, at: 0)
            guard case .request(_, let place, _)? = server.session.nextEvent() else {
                Issue.record("no request")
                return
            }
            #expect(place.neverIndexed == tells, "\(name)")
        }
    }
}
