import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// However bytes are split, they mean the same.
@Suite struct SplitTests {
    private static let big = [("x-long", String(repeating: "z", count: 300)), ("cookie", "a=1"), ("cookie", "b=2")]

    /// A client's data: heads in parts, bodies with padding, trailers, resets, windows, priorities, stream errors.
    static let client: [UInt8] =
        Raw.client() + Raw.request(1, big) + Raw.frame(2, 0, 3, [0, 0, 0, 0, 15])
        + Raw.frame(1, 1, 3, Raw.get.flatMap { Raw.literal($0.0, $0.1) }) + Raw.frame(9, 0, 3, Raw.literal("a", "b"))
        + Raw.frame(9, 4, 3)
        + Raw.request(5, flags: Raw.endHeaders) + Raw.data(5, "hello") + Raw.frame(0, 8, 5, [3, 0x61, 0x62, 0, 0, 0])
        + Raw.data(5, "")
        + Raw.headers(5, [("x-trailer", "t")]) + Raw.windowUpdate(0, 100) + Raw.windowUpdate(1, 7)
        + Raw.request(7, [("connection", "x")]) + Raw.request(9, [("content-length", "3")], flags: Raw.endHeaders)
        + Raw.data(9, "for")
        + Raw.data(9, "d") + Raw.data(9, "ignored") + Raw.reset(1) + Raw.ping()
        + Raw.frame(16, 0, 0, Raw.number(11) + Array("u=1, i".utf8))
        + Raw.frame(0xFA, 3, 5, [1, 2, 3]) + Raw.request(11) + Raw.settings([(4, 100_000), (0x0808, 1)])
        + Raw.request(13, [("te", "gzip")])
        + Raw.frame(7, 0, 0, Raw.number(0) + Raw.number(0) + Array("bye".utf8)) + Raw.frame(4, 0, 5) + Raw.request(15)

    /// An origin's data for seven requests.
    static let origin: [UInt8] =
        Raw.headers(1, [(":status", "103"), ("link", "</a>")], flags: Raw.endHeaders)
        + Raw.headers(1, [(":status", "200"), ("content-length", "5")], flags: Raw.endHeaders)
        + Raw.headers(3, [(":status", "404")]) + Raw.data(1, "he")
        + Raw.headers(5, [(":status", "200")], flags: Raw.endHeaders)
        + Raw.data(1, "llo", ends: true) + Raw.data(5, "x") + Raw.headers(5, [("grpc-status", "0")])
        + Raw.ping(ack: true)
        + Raw.headers(7, [(":status", "101")]) + Raw.reset(9, 7) + Raw.frame(7, 0, 0, Raw.number(11) + Raw.number(0))
        + Raw.frame(6, 0, 0, [1])

    private func server() throws -> Peer { try Peer(.server) }
    private func client() throws -> Peer { try Peer.client([String](repeating: "GET", count: 7)) }

    @Test func aClientsBytesMeanTheSameInEveryTwoParts() throws {
        try everySplit(Self.client, server)
    }

    @Test func anOriginsBytesMeanTheSameInEveryTwoParts() throws {
        try everySplit(Self.origin, client)
    }

    private func everySplit(_ bytes: [UInt8], _ make: () throws -> Peer) throws {
        let whole = try make()
        whole.receive(bytes)
        let sent = whole.collect()
        guard case .failed? = whole.received.last else {
            Issue.record("the recording ends with a fault: \(whole.received)")
            return
        }
        for cut in 0...bytes.count {
            let peer = try make()
            peer.receive(Array(bytes[..<cut]))
            peer.receive(Array(bytes[cut...]))
            #expect(peer.received == whole.received, "cut at \(cut)")
            #expect(peer.collect() == sent, "cut at \(cut)")
        }
        for length in [1, 2, 3, 5, 8, 9, 10, 13] {
            let peer = try make()
            var start = 0
            while start < bytes.count {
                peer.receive(Array(bytes[start..<min(start + length, bytes.count)]))
                start += length
            }
            #expect(peer.received == whole.received, "in pieces of \(length)")
            #expect(peer.collect() == sent, "in pieces of \(length)")
        }
    }

    @Test func aBeginningAloneHasNoEventTooMany() throws {
        let whole = try server()
        whole.receive(Self.client)
        for cut in 0..<Self.client.count {
            let peer = try server()
            peer.receive(Array(Self.client[..<cut]))
            #expect(isBeginning(peer.received, of: whole.received), "cut at \(cut)")
        }
    }

    /// The last piece of data may be a part.
    private func isBeginning(_ part: [Peer.Seen], of whole: [Peer.Seen]) -> Bool {
        guard part.count <= whole.count else { return false }
        for (one, other) in zip(part, whole) where one != other {
            guard case .data(let a, let few) = one, case .data(let b, let many) = other, a == b, many.starts(with: few)
            else { return false }
        }
        return true
    }

    @Test func framesAreFoundInEverySplit() {
        let bytes =
            Raw.preface + Raw.settings([(1, 2)]) + Raw.ping() + Raw.data(0x7FFF_FFFF, "abc", ends: true)
            + Raw.frame(0xFF, 0xFF, 1)
        func scan(_ length: Int) -> [FrameHeader] {
            var scanner = FrameScanner(awaitsPreface: true)
            var headers: [FrameHeader] = []
            var ended = 0
            var position = 0
            while position < bytes.count {
                let piece = Array(bytes[..<min(bytes.count, (position / length + 1) * length)])
                switch scanner.next(in: piece.span, from: position) {
                case .partialHeader(let count): position += count
                case .payload(let count, let ends):
                    position += count
                    if ends { ended += 1 }
                case .header(let header, let count):
                    headers.append(header)
                    position += count
                    if header.length == 0 { ended += 1 }
                }
            }
            #expect(ended == headers.count + 1)
            return headers
        }
        let expected = [
            FrameHeader(.settings, length: 6, stream: 0), FrameHeader(.ping, length: 8, stream: 0),
            FrameHeader(.data, flags: 1, length: 3, stream: Int32.max),
            FrameHeader(.other, flags: 0xFF, length: 0, stream: 1),
        ]
        for length in 1...bytes.count { #expect(scan(length) == expected) }
    }
}
