import Testing

@testable import PinproxyHTTPWire

@Suite struct ServerFlightTests {
    typealias Progress = ServerFlight.Progress

    /// The result for a flight that arrives in one piece.
    static func read(_ bytes: [UInt8]) -> Progress {
        var flight = ServerFlight()
        return flight.receive(bytes)
    }

    static func code(_ progress: Progress) -> WireError.Code? {
        if case .malformed(let error) = progress { error.code } else { nil }
    }

    /// A handshake message in records of at most `size` bytes.
    static func records(_ messages: [UInt8]..., size: Int = 1 << 14, version: UInt8 = 3) -> [UInt8] {
        var out: [UInt8] = []
        var rest = messages.flatMap(\.self)[...]
        while !rest.isEmpty {
            out += [22, 3, version] + ClientHelloTests.vector(2, Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return out
    }

    static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] { [type] + ClientHelloTests.vector(3, body) }

    static func hello(version: [UInt8] = [3, 3], extensions: [UInt8]? = nil) -> [UInt8] {
        let random = [UInt8](repeating: 7, count: 32)
        let tail = extensions.map { ClientHelloTests.vector(2, $0) } ?? []
        return message(2, version + random + ClientHelloTests.vector(1, []) + [0xC0, 0x2B, 0] + tail)
    }

    static func certificates(_ list: [[UInt8]]) -> [UInt8] {
        message(11, ClientHelloTests.vector(3, list.flatMap { ClientHelloTests.vector(3, $0) }))
    }

    static let done = message(14, [])
    static let changeCipherSpec: [UInt8] = [20, 3, 3, 0, 1, 1]

    // MARK: Recorded flights

    @Test func aFullFlightShowsItsCertificates() throws {
        guard case .shown(let shown) = Self.read(RecordedFlights.full) else {
            Issue.record("\(Self.read(RecordedFlights.full))")
            return
        }
        #expect(shown.version == 0x0303)
        #expect(shown.certificates.count == 2)
        // Each is one complete SEQUENCE.
        for der in shown.certificates {
            #expect(der[0] == 0x30 && der[1] == 0x82 && der.count == 4 + Int(der[2]) << 8 + Int(der[3]))
        }
        #expect(shown.ocspResponse == nil && shown.timestamps.isEmpty)
    }

    @Test func aStapledResponseIsFound() throws {
        guard case .shown(let shown) = Self.read(RecordedFlights.stapled) else {
            Issue.record("\(Self.read(RecordedFlights.stapled))")
            return
        }
        #expect(shown.ocspResponse?.count == 294)
        #expect(shown.ocspResponse?.first == 0x30)
    }

    @Test func whatIsNotAFullFlightIsTold() {
        // The client's identifier, made up for a ticket.
        let sessionID = Array(RecordedFlights.resumed[44..<76])
        #expect(Self.read(RecordedFlights.resumed) == .resumed(version: 0x0303, sessionID: sessionID))
        #expect(Self.read(RecordedFlights.encrypted) == .encrypted(isResumed: false))
        #expect(Self.read([21, 3, 3, 0, 2, 2, 70]) == .alert(70, 7))
    }

    @Test func aRetryIsFollowedByTheServerHello() {
        var flight = ServerFlight()
        let bytes = RecordedFlights.retry
        // The HelloRetryRequest ends before change_cipher_spec.
        #expect(flight.receive(bytes) == .retry(bytes.count - 6))
        #expect(flight.receive(Self.changeCipherSpec) == .incomplete)
        #expect(flight.receive(RecordedFlights.afterRetry) == .encrypted(isResumed: false))
    }

    @Test func aRetryMayArriveInPieces() {
        let retry = Array(RecordedFlights.retry.dropLast(6))
        for cut in 1..<retry.count {
            var flight = ServerFlight()
            #expect(flight.receive(Array(retry[..<cut])) == .incomplete)
            #expect(flight.receive(Array(retry[cut...])) == .retry(retry.count - cut))
            #expect(flight.receive(Self.changeCipherSpec) == .incomplete, "cut after \(cut) bytes")
            #expect(flight.receive(RecordedFlights.afterRetry) == .encrypted(isResumed: false))
        }
    }

    @Test func afterARetryNothingButTLS13MayFollow() {
        for bytes in [RecordedFlights.retry, RecordedFlights.full, RecordedFlights.resumed] {
            var flight = ServerFlight()
            guard case .retry(let end) = flight.receive(RecordedFlights.retry) else { return }
            #expect(end == RecordedFlights.retry.count - 6)
            #expect(Self.code(flight.receive(bytes)) == .serverHandshake)
        }
    }

    @Test(
        arguments: [
            RecordedFlights.full, RecordedFlights.stapled, RecordedFlights.resumed, RecordedFlights.encrypted,
            RecordedFlights.retry.dropLast(6), [21, 3, 3, 0, 2, 2, 40],
        ] as [[UInt8]])
    func everyPrefixIsIncomplete(_ bytes: [UInt8]) {
        for count in 0..<bytes.count {
            #expect(Self.read(Array(bytes.prefix(count))) == .incomplete, "\(count) bytes")
        }
        #expect(Self.read(bytes) != .incomplete)
    }

    @Test(arguments: 0..<30) func piecesComeToTheSame(_ seed: Int) {
        var random = Seeded(UInt64(seed))
        for bytes in [
            RecordedFlights.full, RecordedFlights.stapled, RecordedFlights.resumed, RecordedFlights.encrypted,
        ] {
            var flight = ServerFlight()
            var last = Progress.incomplete
            for piece in random.pieces(of: bytes.count, longest: seed == 0 ? 1 : 90) {
                #expect(last == .incomplete)
                last = flight.receive(Array(bytes[piece]))
            }
            #expect(last == Self.read(bytes))
        }
    }

    @Test func theEndStaysTheEnd() {
        var flight = ServerFlight()
        #expect(flight.receive(RecordedFlights.encrypted) == .encrypted(isResumed: false))
        #expect(flight.receive([1, 2, 3]) == .encrypted(isResumed: false))
    }

    /// A ServerHello of TLS 1.3 that selects a pre-shared key.
    @Test func aPreSharedKeyIsSeen() {
        let version: [UInt8] = [0, 43, 0, 2, 3, 4]
        let key: [UInt8] = [0, 41, 0, 2, 0, 0]
        #expect(Self.read(Self.records(Self.hello(extensions: version))) == .encrypted(isResumed: false))
        #expect(Self.read(Self.records(Self.hello(extensions: version + key))) == .encrypted(isResumed: true))
        #expect(Self.read(Self.records(Self.hello(extensions: key + version))) == .encrypted(isResumed: true))
    }

    // MARK: Hand-made flights

    @Test(arguments: [1, 3, 50]) func messagesMayBeCutIntoRecordsOrShareThem(_ size: Int) {
        let list: [[UInt8]] = [[1, 2, 3], [4]]
        let bytes = Self.records(Self.hello(), Self.certificates(list), Self.done, size: size)
        guard case .shown(let shown) = Self.read(bytes) else {
            Issue.record("\(Self.read(bytes))")
            return
        }
        #expect(shown.certificates == list)
    }

    @Test(arguments: [UInt8(0), 1, 2]) func olderVersionsAreTold(_ minor: UInt8) {
        let hello = Self.hello(version: [3, minor])
        let full = Self.records(hello, Self.certificates([[1]]), Self.done, version: minor)
        guard case .shown(let shown) = Self.read(full) else {
            Issue.record("\(Self.read(full))")
            return
        }
        #expect(shown.version == 0x0300 | UInt16(minor))
        #expect(
            Self.read(Self.records(hello, version: minor) + Self.changeCipherSpec)
                == .resumed(version: 0x0300 | UInt16(minor), sessionID: []))
    }

    @Test func aTicketBeforeTheEndOfAnAbbreviatedHandshakeIsPassedOver() {
        let bytes = Self.records(Self.hello(), Self.message(4, [0, 0, 0, 9, 0, 1, 5])) + Self.changeCipherSpec
        #expect(Self.read(bytes) == .resumed(version: 0x0303, sessionID: []))
    }

    @Test(
        arguments: [
            ([0, 7, 0, 2, 9, 8, 0, 1, 7], [[9, 8], [7]]), ([0, 0], []), ([0, 3, 0, 2, 9], []), ([9, 8, 7], []),
            ([], []),
            ([0, 2, 0, 0], []),
        ] as [([UInt8], [[UInt8]])])
    func timestampsOfTheServerHelloAreKept(_ value: [UInt8], _ expected: [[UInt8]]) {
        let bytes = Self.records(
            Self.hello(extensions: [0, 18] + ClientHelloTests.vector(2, value)), Self.certificates([[1]]), Self.done)
        guard case .shown(let shown) = Self.read(bytes) else {
            Issue.record("\(Self.read(bytes))")
            return
        }
        #expect(shown.timestamps == expected)
    }

    @Test func aStatusOfAnotherKindCountsForNothing() {
        let bytes = Self.records(
            Self.hello(), Self.certificates([[1]]), Self.message(22, [2, 0, 0, 1, 5]), Self.done)
        guard case .shown(let shown) = Self.read(bytes) else {
            Issue.record("\(Self.read(bytes))")
            return
        }
        #expect(shown.ocspResponse == nil)
    }

    @Test func warningsArePassedOverAndCloseNotifyIsNone() {
        let warning: [UInt8] = [21, 3, 3, 0, 2, 1, 112]
        #expect(Self.read(warning + RecordedFlights.resumed) == Self.read(RecordedFlights.resumed))
        #expect(Self.read([21, 3, 3, 0, 2, 1, 0]) == .alert(0, 7))
        #expect(Self.code(Self.read(Array(repeating: warning, count: 5).flatMap(\.self))) == .serverHandshake)
    }

    /// Anonymous key exchange (`aNULL`) and pre-shared keys: no certificate is presented, and no session resumed.
    @Test(arguments: [
        records(hello(), message(12, [1, 2])), records(hello(), message(13, [1])), records(hello(), done),
        records(hello(), certificates([]), done),
    ])
    func aServerWithoutACertificateIsNone(_ bytes: [UInt8]) {
        #expect(Self.code(Self.read(bytes)) == .noServerCertificate)
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n", "SSH-2.0-x\r\n", "220 mail ESMTP\r\n", "\u{0}", "\u{17}\u{3}\u{3}",
    ])
    func whatIsNotTLSIsTold(_ text: String) {
        #expect(Self.code(Self.read(Array(text.utf8))) == .serverHandshakeNotTLS)
    }

    @Test(
        arguments: [
            // Records: length, a change of type within a message, change_cipher_spec out of place, application data.
            [22, 3, 3, 0, 0], [22, 3, 3, 0x40, 1], [22, 3, 5], [21, 3, 3, 0, 3], [20, 3, 3, 0, 2],
            [22, 3, 3, 0, 1, 2] + changeCipherSpec, changeCipherSpec, [20, 3, 3, 0, 1, 2],
            records(hello()) + [23, 3, 3, 0, 1, 0],
            records(hello(), certificates([[1]])) + changeCipherSpec,
            // Messages out of order.
            records(certificates([[1]])), records(message(0, [])), records(hello(), hello()),
            records(hello(), certificates([[1]]), certificates([[1]])),
            records(hello(), message(22, [1, 0, 0, 1, 5])), records(hello(), message(20, [])),
            records(hello(), certificates([[1]]), message(12, []), message(22, [1, 0, 0, 1, 5])),
            records(hello(), certificates([[1]]), message(12, []), message(12, [])),
            // Messages with false lengths.
            records(hello(), message(11, [0, 0, 4, 0, 0, 2, 1])), records(hello(), message(11, [0, 0, 3, 0, 0, 0])),
            records(hello(), message(11, [0, 0, 4, 0, 0, 1, 1, 9])), records(hello(), message(11, [])),
            records(hello(), certificates([[1]]), message(22, [1, 0, 0, 2, 5])),
            records(hello(), certificates([[1]]), message(14, [0])),
            records(message(2, [3, 3])), records(message(2, [3, 3] + [UInt8](repeating: 7, count: 32) + [33])),
            records(hello(extensions: [0])), records(hello(extensions: [0, 43, 0, 1, 3])),
            records(hello(extensions: [0, 43, 0, 3, 3, 4, 0])),
            // TLS 1.2 by way of supported_versions, a draft of TLS 1.3, and twice the same.
            records(hello(extensions: [0, 43, 0, 2, 3, 3])), records(hello(extensions: [0, 43, 0, 2, 0x7F, 0x1C])),
            records(hello(extensions: [0, 43, 0, 2, 3, 4, 0, 43, 0, 2, 3, 4])),
            records(hello(extensions: [0, 18, 0, 0, 0, 18, 0, 0])),
        ] as [[UInt8]])
    func whatIsBrokenIsMalformed(_ bytes: [UInt8]) {
        let progress = Self.read(bytes)
        #expect([.serverHandshake, .serverHandshakeNotTLS].contains(Self.code(progress)), "\(progress)")
    }

    @Test func aRetryEndsWithItsRecord() {
        var shared = Array(RecordedFlights.retry.dropLast(6))
        shared[4] += 1
        #expect(Self.code(Self.read(shared + [2])) == .serverHandshake)
        #expect(Self.code(Self.read(shared)) == .serverHandshake)
    }

    @Test func whatGrowsIsBounded() {
        // One message that is too long, as its header shows.
        #expect(Self.code(Self.read(Self.records(Self.hello(), [11, 2, 0, 0]))) == .serverHandshakeTooLong)
        // The whole flight, in records of one byte each.
        let certificate = [UInt8](repeating: 5, count: 100_000)
        let thin = Self.records(Self.hello(), Self.certificates([certificate]), size: 1)
        #expect(Self.code(Self.read(thin)) == .serverHandshakeTooLong)
        // Many certificates.
        let many = [[UInt8]](repeating: [1], count: ServerMessages.certificateLimit)
        guard case .shown = Self.read(Self.records(Self.hello(), Self.certificates(many), Self.done)) else {
            Issue.record("128 certificates were refused")
            return
        }
        #expect(Self.code(Self.read(Self.records(Self.hello(), Self.certificates(many + [[1]])))) == .serverHandshake)
    }

    @Test(arguments: 0..<300) func nothingThatIsThrownAtItCrashes(_ seed: Int) {
        var random = Seeded(UInt64(seed))
        var bytes = seed % 2 == 0 ? RecordedFlights.stapled : RecordedFlights.full
        for _ in 0..<4 {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        if case .shown(let shown) = Self.read(bytes) {
            #expect(!shown.certificates.isEmpty && shown.certificates.allSatisfy { !$0.isEmpty })
        }
    }
}

extension ServerFlight {
    fileprivate mutating func receive(_ bytes: [UInt8]) -> Progress { receive(bytes.span) }
}
