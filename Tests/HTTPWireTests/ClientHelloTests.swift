import PinproxyHTTPWire
import Testing

@Suite struct ClientHelloTests {
    // MARK: A hand-made hello

    static func vector(_ lengthBytes: Int, _ body: [UInt8]) -> [UInt8] {
        (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: body.count >> ($0 * 8)) } + body
    }

    static func serverName(_ name: String) -> [UInt8] {
        [0, 0] + vector(2, vector(2, [0] + vector(2, Array(name.utf8))))
    }

    static func protocols(_ names: [String]) -> [UInt8] {
        [0, 16] + vector(2, vector(2, names.flatMap { vector(1, Array($0.utf8)) }))
    }

    /// GREASE (RFC 8701), and a key share of ML-KEM's size.
    static let grease: [UInt8] = [0x0A, 0x0A, 0, 0]
    static let keyShare: [UInt8] = [0, 51] + vector(2, [UInt8](repeating: 7, count: 1250))

    static func handshake(extensions: [UInt8]?) -> [UInt8] {
        var body: [UInt8] = [3, 3] + [UInt8](repeating: 9, count: 32) + vector(1, [UInt8](repeating: 1, count: 32))
        body += vector(2, [0x3A, 0x3A, 0x13, 0x01]) + vector(1, [0])
        if let extensions { body += vector(2, extensions) }
        return [1] + vector(3, body)
    }

    static func records(_ handshake: [UInt8], sizes: [Int]) -> [UInt8] {
        var out: [UInt8] = []
        var rest = handshake[...]
        for size in sizes + [handshake.count] where !rest.isEmpty {
            out += [22, 3, 1] + vector(2, Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return out
    }

    static let typical = handshake(
        extensions: grease + serverName("Api.Example.test") + keyShare + protocols(["h2", "http/1.1"]) + grease)

    @Test(arguments: [[], [1], [3, 1], [100, 700], [4], [5, 5, 5, 5]])
    func everyPrefixIsIncompleteHoweverItIsCut(_ sizes: [Int]) {
        let bytes = Self.records(Self.typical, sizes: sizes)
        for count in 0..<bytes.count {
            #expect(ClientHello.peek(bytes.span.extracting(0..<count)) == .incomplete, "\(count) bytes")
        }
        guard case .complete(let hello) = ClientHello.peek((bytes + [23, 3, 3]).span) else {
            Issue.record("not complete")
            return
        }
        #expect(hello.serverName == "Api.Example.test")
        #expect(hello.applicationProtocols == ["h2", "http/1.1"])
        #expect(!hello.hasEncryptedClientHello)
        #expect(hello.length == bytes.count)
        #expect(hello.random == [UInt8](repeating: 9, count: 32))
    }

    @Test func extensionsMayBeMissing() {
        for extensions in [nil, [], Self.grease] as [[UInt8]?] {
            guard
                case .complete(let hello) = ClientHello.peek(
                    Self.records(Self.handshake(extensions: extensions), sizes: []).span)
            else {
                Issue.record("not complete")
                continue
            }
            #expect(hello.serverName == nil && hello.applicationProtocols.isEmpty)
        }
    }

    /// session_ticket is empty if a client only requests a ticket.
    @Test func offeredSessionsAreTold() {
        func offer(_ extensions: [UInt8]) -> SessionOffer? {
            guard
                case .complete(let hello) = ClientHello.peek(
                    Self.records(Self.handshake(extensions: extensions), sizes: []).span)
            else { return nil }
            return hello.sessions
        }
        let sessionID = [UInt8](repeating: 1, count: 32)
        #expect(offer([]) == SessionOffer(sessionID: sessionID))
        #expect(offer([0, 35, 0, 0]) == SessionOffer(sessionID: sessionID))
        #expect(offer([0, 35, 0, 2, 5, 5]) == SessionOffer(sessionID: sessionID, hasTicket: true))
        #expect(offer([0, 41, 0, 2, 0, 0]) == SessionOffer(sessionID: sessionID, hasPreSharedKey: true))
    }

    @Test func whatAnOfferAllows() {
        let byIdentifier = SessionOffer(sessionID: [1, 2, 3])
        #expect(byIdentifier.allows(sessionID: [1, 2, 3]))
        for other in [[], [1, 2], [1, 2, 4], [1, 2, 3, 4]] as [[UInt8]] {
            #expect(!byIdentifier.allows(sessionID: other))
        }
        #expect(!SessionOffer().allows(sessionID: []))
        #expect(!SessionOffer(hasPreSharedKey: true).allows(sessionID: []))
        // With a ticket the server may leave the identifier empty (RFC 5077 section 3.4).
        #expect(SessionOffer(hasTicket: true).allows(sessionID: []))
    }

    @Test func encryptedClientHelloIsTold() {
        let bytes = Self.records(Self.handshake(extensions: [0xFE, 0x0D, 0, 1, 0]), sizes: [])
        guard case .complete(let hello) = ClientHello.peek(bytes.span) else {
            Issue.record("not complete")
            return
        }
        #expect(hello.hasEncryptedClientHello)
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\u{15}\u{3}\u{1}", "\u{0}", "\u{16}\u{2}"])
    func otherProtocolsAreTold(_ text: String) {
        #expect(ClientHello.peek(Array(text.utf8).span) == .notTLS)
    }

    @Test(
        arguments: [
            [22, 3, 1, 0, 0], [22, 3, 1, 0x40, 1], [22, 3, 1, 0, 1, 2], [22, 3, 1, 0, 4, 1, 2, 0, 0],
            records(handshake(extensions: serverName("")), sizes: []),
            records(handshake(extensions: serverName("a\u{0}b")), sizes: []),
            records(handshake(extensions: serverName("a b")), sizes: []),
            records(handshake(extensions: serverName("a") + serverName("b")), sizes: []),
            records(handshake(extensions: protocols([])), sizes: []),
            records(handshake(extensions: protocols([""])), sizes: []),
            records(handshake(extensions: protocols(["h2"]) + protocols(["h2"])), sizes: []),
            records(handshake(extensions: [0]), sizes: []),
            records(handshake(extensions: [0, 0, 0, 9, 1]), sizes: []),
            records([1, 0, 0, 2, 3, 3], sizes: []),
            // More in the last record: known as soon as the message is complete.
            records(typical + [1], sizes: []), records(typical + [1], sizes: []).dropLast(),
            records(handshake(extensions: grease), sizes: [3]).prefix(8) + [23, 3, 1, 0, 1, 0],
        ] as [[UInt8]])
    func whatIsBrokenIsMalformed(_ bytes: [UInt8]) {
        guard case .malformed(let error) = ClientHello.peek(bytes.span) else {
            Issue.record("not refused: \(ClientHello.peek(bytes.span))")
            return
        }
        #expect(error.code == .clientHello)
    }

    // MARK: The second one, after a HelloRetryRequest

    /// The client's messages after its first hello.
    static func afterFirst(_ bytes: [UInt8]) throws -> (first: ClientHello, rest: [UInt8]) {
        guard case .complete(let first) = ClientHello.peek(bytes.span) else { throw Incomplete() }
        return (first, Array(bytes[first.length...]))
    }

    struct Incomplete: Error {}

    @Test func theSecondIsFoundBehindItsCamouflage() throws {
        let (first, rest) = try Self.afterFirst(RecordedFlights.retriedClient)
        #expect(first.serverName == "a.test")
        #expect(rest[0] == 20)
        for count in 0..<rest.count {
            #expect(ClientHello.peekSecond(rest.span.extracting(0..<count)) == .incomplete, "\(count) bytes")
        }
        guard case .complete(let second) = ClientHello.peekSecond((rest + [23, 3, 3]).span) else {
            Issue.record("not complete")
            return
        }
        #expect(second.serverName == "a.test")
        #expect(second.length == rest.count)
    }

    @Test func earlyDataMayStandBeforeTheSecond() throws {
        let hello = Self.records(Self.typical, sizes: [])
        let early: [UInt8] = [23, 3, 3, 0, 3, 1, 2, 3, 23, 3, 3, 0, 1, 9]
        guard case .complete(let second) = ClientHello.peekSecond((early + hello).span) else {
            Issue.record("not complete")
            return
        }
        #expect(second.length == early.count + hello.count)
        #expect(second.serverName == "Api.Example.test")
    }

    @Test(
        arguments: [
            [21, 3, 3, 0, 2, 2, 40], [20, 3, 3, 0, 0], [20, 4], [23, 3, 3, 0x41, 1], [1, 2, 3],
            [20, 3, 3, 0, 1, 1, 22, 3, 3, 0, 4, 2, 0, 0, 0],
        ] as [[UInt8]])
    func whatIsNoSecondIsMalformed(_ bytes: [UInt8]) {
        var more = bytes
        // Some false values show only when the record's header is complete.
        if more.count < 5 { more += [0, 0, 0] }
        guard case .malformed(let error) = ClientHello.peekSecond(more.span) else {
            Issue.record("not refused: \(ClientHello.peekSecond(more.span))")
            return
        }
        #expect(error.code == .clientHello)
    }

    @Test func recordsAreBoundedInNumber() {
        let few = Self.records(Self.typical, sizes: [Int](repeating: 1, count: 63))
        guard case .complete = ClientHello.peek(few.span) else {
            Issue.record("64 records were refused")
            return
        }
        let many = Self.records(Self.typical, sizes: [Int](repeating: 1, count: 200))
        guard case .malformed = ClientHello.peek(many.span) else {
            Issue.record("200 records were taken")
            return
        }
    }

    @Test(arguments: 0..<200)
    func nothingThatIsThrownAtItCrashes(_ seed: Int) {
        var random = Seeded(UInt64(seed))
        var bytes = Self.records(Self.typical, sizes: [50])
        for _ in 0..<5 {
            // Lengths are in the first and last parts.
            let place =
                Bool.random(using: &random)
                ? Int.random(in: 0..<150, using: &random) : bytes.count - 1 - Int.random(in: 0..<30, using: &random)
            bytes[place] = UInt8.random(in: 0...255, using: &random)
        }
        switch ClientHello.peek(bytes.span) {
        case .complete(let hello): #expect(hello.applicationProtocols.count < bytes.count)
        case .incomplete, .notTLS, .malformed: break
        }
    }
}
