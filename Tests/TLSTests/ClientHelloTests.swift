import Glibc
import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// What we offer to servers, read off the wire: at least what a current browser demands.
@Suite struct ClientHelloTests {
    let hello: ClientHello

    init() throws { hello = try ClientHello(of: TLSClientContext()) }

    @Test func suites() {
        #expect(
            hello.suites.filter { $0 != 0x00FF } == [
                0x1301, 0x1303, 0x1302,  // TLS 1.3: AES-128-GCM, ChaCha20, AES-256-GCM
                0xC02B, 0xC02F, 0xCCA9, 0xCCA8, 0xC02C, 0xC030,  // TLS 1.2: ECDHE with the same
            ])
        // Secure renegotiation (RFC 5746) is signalled by OpenSSL 3.0's SCSV, or by 3.5's extension.
        #expect(hello.suites.contains(0x00FF) != (hello.extensions[0xFF01] == [0]))
        #expect(hello.compressions == [0])
    }

    @Test func versionsGroupsAndSignatures() throws {
        #expect(try hello.numbers(of: 43, countBytes: 1) == [0x0304, 0x0303])
        // X25519MLKEM768 where the library has it, X25519, P-256, P-384.
        let hybrid: [UInt16] = try OpenSSLCommand.knowsPostQuantumGroups ? [0x11EC] : []
        #expect(try hello.numbers(of: 10, countBytes: 2) == hybrid + [29, 23, 24])
        #expect(try hello.keyShares() == hybrid + [29])
        let signatures = try hello.numbers(of: 13, countBytes: 2)
        #expect(signatures.prefix(3) == [0x0403, 0x0804, 0x0401])
        // Neither MD5, SHA-1 nor SHA-224 as digest, nor DSA as signature.
        #expect(signatures.allSatisfy { $0 >> 8 >= 4 && ($0 >> 8 == 8 || $0 & 0xFF != 2) })
        // ML-DSA after all others.
        let isNewest = try OpenSSLCommand.knowsPostQuantumGroups
        #expect(signatures.dropFirst(10) == (isNewest ? [0x0904, 0x0905, 0x0906] : []))
    }

    @Test func names() throws {
        #expect(hello.extensions[0] == [0, 11, 0, 0, 8] + Array("api.test".utf8))
        #expect(hello.extensions[16] == [0, 9, 8] + Array("http/1.1".utf8))
    }

    @Test func extensionsThatMustBeThere() {
        // extended_master_secret, session_ticket, psk_key_exchange_modes: (EC)DHE only.
        #expect(hello.extensions[23] == [])
        #expect(hello.extensions[35] == [])
        #expect(hello.extensions[45] == [1, 1])
        // Neither early data nor heartbeat.
        #expect(hello.extensions[42] == nil)
        #expect(hello.extensions[15] == nil)
        // Neither compressed certificates (RFC 8879) nor raw public keys (RFC 7250), which OpenSSL 3.2 brought.
        for number: UInt16 in [27, 19, 20] { #expect(hello.extensions[number] == nil) }
    }

    @Test func onlyTLS13WhenAskedFor() throws {
        var options = TLSClientContext.Options()
        options.versions = .tls13 ... .tls13
        let hello = try ClientHello(of: TLSClientContext(options: options))
        #expect(try hello.numbers(of: 43, countBytes: 1) == [0x0304])
        #expect(hello.suites.prefix(3) == [0x1301, 0x1303, 0x1302])
    }

    @Test func olderVersionsAreRaised() throws {
        var options = TLSClientContext.Options()
        options.versions = .tls10 ... .tls12
        let hello = try ClientHello(of: TLSClientContext(options: options))
        #expect(hello.extensions[43] == nil)
        #expect(hello.legacyVersion == 0x0303)
        #expect(!hello.suites.contains(0x1301))
    }
}

/// The fields of a ClientHello (RFC 8446 section 4.1.2).
struct ClientHello {
    let legacyVersion: UInt16
    let suites: [UInt16]
    let compressions: [UInt8]
    let extensions: [UInt16: [UInt8]]

    /// What a client of the context sends first.
    init(of context: TLSClientContext) throws {
        let sockets = try SocketPair()
        let client = Endpoint(
            try TLSConnection(
                client: context, descriptor: sockets.client, serverName: .dns("api.test"), verify: { _ in .accept }))
        try #require(client.handshake().isPending)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(sockets.server, &bytes, bytes.count, 0)
        var record = Wire(bytes[..<max(count, 0)])
        try #require(record.number(1) == 22)
        _ = try record.number(2)
        var message = Wire(try record.vector(2))
        try #require(message.number(1) == 1)
        var body = Wire(try message.vector(3))
        legacyVersion = UInt16(try body.number(2))
        _ = try body.take(32)
        _ = try body.vector(1)
        suites = try Wire.numbers(in: body.vector(2))
        compressions = Array(try body.vector(1))
        var list = Wire(try body.vector(2))
        var found: [UInt16: [UInt8]] = [:]
        while !list.isAtEnd { found[UInt16(try list.number(2))] = Array(try list.vector(2)) }
        extensions = found
    }

    /// An extension that is a list of two-byte numbers after its length.
    func numbers(of kind: UInt16, countBytes: Int) throws -> [UInt16] {
        var wire = Wire(try #require(extensions[kind])[...])
        return try Wire.numbers(in: wire.vector(countBytes))
    }

    /// The groups that key shares are sent for (RFC 8446 section 4.2.8).
    func keyShares() throws -> [UInt16] {
        var extensionBytes = Wire(try #require(extensions[51])[...])
        var list = Wire(try extensionBytes.vector(2))
        var groups: [UInt16] = []
        while !list.isAtEnd {
            groups.append(UInt16(try list.number(2)))
            _ = try list.vector(2)
        }
        return groups
    }

    struct Wire {
        private var rest: ArraySlice<UInt8>
        init(_ bytes: ArraySlice<UInt8>) { rest = bytes }
        var isAtEnd: Bool { rest.isEmpty }

        mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
            try #require(rest.count >= count)
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        mutating func number(_ count: Int) throws -> Int { try take(count).reduce(0) { $0 << 8 | Int($1) } }
        mutating func vector(_ countBytes: Int) throws -> ArraySlice<UInt8> { try take(number(countBytes)) }

        static func numbers(in bytes: ArraySlice<UInt8>) throws -> [UInt16] {
            var wire = Wire(bytes)
            var numbers: [UInt16] = []
            while !wire.isAtEnd { numbers.append(UInt16(try wire.number(2))) }
            return numbers
        }
    }
}
