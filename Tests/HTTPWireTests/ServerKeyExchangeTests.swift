import Testing

@testable import PinproxyHTTPWire

@Suite struct ServerKeyExchangeTests {
    typealias Exchange = ServerKeyExchange

    static let clientRandom = [UInt8](repeating: 1, count: 32)
    static let serverRandom = [UInt8](repeating: 2, count: 32)
    static let curve: [UInt8] = [3, 0, 29, 4, 9, 9, 9, 9]
    static let primes: [UInt8] = [0, 2, 7, 7, 0, 1, 5, 0, 2, 8, 8]
    static let ending: [UInt8] = [4, 3, 0, 3, 0x30, 1, 0]

    static func shown(_ message: [UInt8]?, suite: UInt16 = 0xC02B) -> ServerCertificates {
        ServerCertificates(
            version: 0x0303, random: serverRandom, cipherSuite: suite, certificates: [[1]], ocspResponse: nil,
            timestamps: [],
            keyExchange: message)
    }

    static func read(_ message: [UInt8]?, suite: UInt16 = 0xC02B) throws -> Exchange {
        try Exchange(shown(message, suite: suite), clientRandom: clientRandom)
    }

    @Test func aRecordedFlightHasItsKeyExchange() throws {
        guard case .shown(let shown) = ServerFlightTests.read(RecordedFlights.full) else {
            Issue.record("no certificates")
            return
        }
        #expect(shown.cipherSuite == 0xC02B && shown.random.starts(with: [0xD0, 0xA3, 0x12, 0x2E]))
        let exchange = try Exchange(shown, clientRandom: Self.clientRandom)
        // X25519, ecdsa_secp256r1_sha256, an ECDSA signature.
        #expect(exchange.signed.count == 64 + 36 && exchange.signed[64..<68].elementsEqual([3, 0, 29, 32]))
        #expect(exchange.signed.starts(with: Self.clientRandom + shown.random))
        #expect(exchange.scheme == 0x0403 && exchange.signature.count == 71 && exchange.signature.first == 0x30)
    }

    @Test(
        arguments: [(0xC02B, curve), (0xC02F, curve), (0xCCA8, curve), (0x009E, primes), (0xCCAA, primes)]
            as [(UInt16, [UInt8])])
    func whatIsSignedIsTheRandomsAndTheParameters(_ suite: UInt16, _ parameters: [UInt8]) throws {
        let exchange = try Self.read(parameters + Self.ending, suite: suite)
        #expect(exchange.signed == Self.clientRandom + Self.serverRandom + parameters)
        #expect(exchange.scheme == 0x0403 && exchange.signature == [0x30, 1, 0])
    }

    @Test(arguments: [(0xC02B, curve), (0x009E, primes)] as [(UInt16, [UInt8])])
    func everyPrefixIsMalformed(_ suite: UInt16, _ parameters: [UInt8]) throws {
        let whole = parameters + Self.ending
        for count in 0..<whole.count {
            #expect(throws: Exchange.Fault.malformed) { try Self.read(Array(whole.prefix(count)), suite: suite) }
        }
        #expect(throws: Exchange.Fault.malformed) { try Self.read(whole + [0], suite: suite) }
        #expect(throws: Exchange.Fault.malformed) { try Self.read(nil, suite: suite) }
        #expect(throws: Never.self) { try Self.read(whole, suite: suite) }
    }

    /// Curves described by their parameters, an empty point, an empty number, no signature, the other kind's form.
    @Test(
        arguments: [
            (0xC02B, [1, 0, 29, 4, 9, 9, 9, 9] + ending), (0xC02B, [2, 0, 29, 4, 9, 9, 9, 9] + ending),
            (0xC02B, [3, 0, 29, 0] + ending), (0xC02B, curve + [4, 3, 0, 0]), (0xC02B, primes + ending),
            (0x009E, [0, 0, 0, 1, 5, 0, 2, 8, 8] + ending), (0x009E, curve + ending),
        ] as [(UInt16, [UInt8])])
    func otherFormsAreMalformed(_ suite: UInt16, _ message: [UInt8]) {
        #expect(throws: Exchange.Fault.malformed) { try Self.read(message, suite: suite) }
    }

    /// Static RSA and Diffie-Hellman, pre-shared keys with and without certificates, anonymous, TLS 1.3, GREASE.
    @Test(arguments: [
        0x009C, 0x002F, 0x003C, 0xC004, 0xC00E, 0xC031, 0x00AC, 0xC035, 0x00AA, 0x0034, 0xC018, 0x1301, 0x0A0A, 0,
    ])
    func suitesThatSignNothingAreTold(_ suite: UInt16) {
        #expect(throws: Exchange.Fault.unsigned) { try Self.read(Self.curve + Self.ending, suite: suite) }
        #expect(throws: Exchange.Fault.unsigned) { try Self.read(nil, suite: suite) }
    }

    @Test func randomsHave32Bytes() {
        #expect(throws: Exchange.Fault.malformed) {
            try Exchange(Self.shown(Self.curve + Self.ending), clientRandom: [1])
        }
    }
}
