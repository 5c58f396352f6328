import Foundation
import PinproxyTestAuthority
import Testing

/// The two places where programs speak TLS with the proxy.
enum Door: String, Sendable, CaseIterable, CustomTestStringConvertible {
    /// Inside a CONNECT, with the leaf that the proxy has minted.
    case intercepted
    /// The proxy port itself (`proxy.tls`).
    case front

    var testDescription: String { rawValue }

    /// A connection where the proxy expects a ClientHello.
    func open(_ shared: SharedBed) async throws -> RawConnection {
        let connection = try RawConnection(to: shared.proxy)
        guard self == .intercepted else { return connection }
        try await connection.send("CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n")
        #expect(try await connection.response().status == 200)
        return connection
    }

    /// s_client's options to get there.
    func clientOptions(_ shared: SharedBed) -> [String] {
        let proxy = "\(shared.proxy.address):\(shared.proxy.port)"
        return switch self {
        case .intercepted: ["-proxy", proxy, "-connect", shared.authority]
        case .front: ["-connect", proxy]
        }
    }
}

/// A ClientHello that no server should accept today, and the alert that it should get.
struct WeakHello: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let hello: OfferedHello
    let alert: UInt8

    init(_ description: String, _ hello: OfferedHello, alert: UInt8 = 40) {
        (testDescription, self.hello, self.alert) = (description, hello, alert)
    }

    private static func suite(_ number: UInt16, _ description: String) -> WeakHello {
        WeakHello("offers \(description) only", OfferedHello(suites: [number, 0x00FF]))
    }

    static let all = [
        // SSL 3.0 has no alert for a version.
        WeakHello("SSL 3.0 (POODLE)", OfferedHello(version: 0x0300, suites: [0xC013, 0x002F])),
        WeakHello("TLS 1.0 (BEAST)", OfferedHello(version: 0x0301, suites: [0xC013, 0x002F]), alert: 70),
        WeakHello("TLS 1.1", OfferedHello(version: 0x0302, suites: [0xC013, 0x002F]), alert: 70),
        suite(0x0005, "RC4"), suite(0x000A, "3DES (Sweet32)"), suite(0x0009, "DES"), suite(0x0002, "no encryption"),
        suite(0x0003, "RSA_EXPORT (FREAK)"), suite(0x0014, "DHE_EXPORT (Logjam)"), suite(0x0034, "anonymous DH"),
        suite(0xC018, "anonymous ECDH"), suite(0x009C, "RSA key exchange (ROBOT)"), suite(0x002F, "RSA with CBC"),
        suite(0x009E, "DHE"), suite(0xC009, "ECDHE with CBC (Lucky 13)"), suite(0xC0AE, "a tag of 8 bytes"),
        suite(0x00A8, "a pre-shared key"),
        WeakHello("curves of 163 and 192 bits only", OfferedHello(suites: OfferedHello.soundSuites, groups: [1, 19])),
        WeakHello(
            "SHA-1 and MD5 signatures only (SLOTH)",
            OfferedHello(suites: OfferedHello.soundSuites, signatures: [0x0201, 0x0203, 0x0101])),
        WeakHello(
            "no signature algorithms, which means SHA-1",
            OfferedHello(suites: OfferedHello.soundSuites, signatures: nil)),
        WeakHello(
            "a fallback to TLS 1.2 (RFC 7507)", OfferedHello(suites: OfferedHello.soundSuites + [0x5600]), alert: 86),
        WeakHello(
            "TLS 1.3 with a tag of 8 bytes",
            OfferedHello(versions: [0x0304], suites: [0x1305], keyShare: (29, 32))),
        WeakHello(
            "TLS 1.3 with groups that are not spoken",
            OfferedHello(versions: [0x0304], suites: [0x1301], groups: [25], keyShare: (25, 133))),
    ]

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let front = try TestRoots("Front")
        let chain = try front.chain("proxy.test", "127.0.0.1")
        try bed.file("proxy/front.pem", chain.pem)
        try bed.file("proxy/front.key", chain.keyPEM)
        return try await OriginBed.prepare(
            bed, sections: ["proxy": ["tls: {certificate: front.pem, private_key: front.key}"]])
    }
}

/// The program is the weak one: the proxy accepts nothing that a good server wouldn't.
@Suite(.sharedBed(WeakHello.prepare), .timeLimit(.minutes(5)))
struct StrengthDownstreamTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private func answer(to bytes: [UInt8], at door: Door) async throws -> HelloAnswer {
        let connection = try await door.open(shared)
        try await connection.send(bytes)
        return try await answer(on: connection)
    }

    private func answer(on connection: RawConnection) async throws -> HelloAnswer {
        var received: [UInt8] = []
        while true {
            let some = try await connection.receive()
            received += some
            if let answer = HelloAnswer(received) { return answer }
            if some.isEmpty { return .other(received) }
        }
    }

    private func serverHello(to hello: OfferedHello, at door: Door) async throws -> HelloAnswer.ServerHello {
        let answer = try await answer(to: hello.record, at: door)
        guard case .serverHello(let hello) = answer else { throw TestBedError("\(answer)") }
        return hello
    }

    @Test(arguments: WeakHello.all, Door.allCases)
    func aWeakHelloIsRefused(_ weak: WeakHello, at door: Door) async throws {
        let answer = try await answer(to: weak.hello.record, at: door)
        guard case .alert(weak.alert) = answer else {
            Issue.record("\(answer)")
            return
        }
    }

    /// The same bytes with sound values are accepted, so the weakness is what is refused.
    @Test(arguments: Door.allCases)
    func aSoundHelloIsAgreedTo(at door: Door) async throws {
        let old = try await serverHello(to: .sound12, at: door)
        #expect(old.version == 0x0303 && old.suite == 0xC02B && old.extensions[43] == nil)
        // extended_master_secret (RFC 7627) against the triple handshake.
        #expect(old.extensions[23] != nil)
        // A TLS 1.2 client that also supports TLS 1.3 detects a forced downgrade here (RFC 8446 section 4.1.3).
        #expect(old.random.suffix(8) == Array("DOWNGRD".utf8) + [1])
        let new = try await serverHello(to: .sound13, at: door)
        #expect(new.suite == 0x1301 && new.extensions[43] == [3, 4])
        #expect(new.extensions[51]?.starts(with: [0, 29]) == true)
    }

    /// SSL 2.0's ClientHello, with all seven of its ciphers (DROWN).
    @Test(arguments: Door.allCases)
    func ssl2IsNotSpoken(at door: Door) async throws {
        let ciphers: [UInt8] = [1, 2, 3, 4, 5, 6, 7].flatMap { [$0, 0, 0x80] }
        let body = [1, 0, 2, 0, UInt8(ciphers.count), 0, 0, 0, 16] + ciphers + [UInt8](repeating: 7, count: 16)
        let connection = try await door.open(shared)
        try await connection.send([0x80, UInt8(body.count)] + body)
        try await connection.finishSending()
        let received = try await connection.receiveAll()
        // On the front these bytes are no request either. SSL 2.0's ServerHello would begin with its
        // length and a 4.
        let isNoServerHello =
            received.isEmpty || received[0] == 21 || received.starts(with: Array("HTTP/1.1 400 ".utf8))
        #expect(isNoServerHello, "\(received)")
    }

    @Test(arguments: Door.allCases)
    func compressionIsNotChosen(at door: Door) async throws {
        var hello = OfferedHello.sound12
        hello.compressions = [1, 64, 0]
        #expect(try await serverHello(to: hello, at: door).compression == 0)
    }

    /// Strong and weak together: the order of the client doesn't decide.
    @Test(arguments: Door.allCases)
    func theStrongestIsChosenFromAMixedOffer(at door: Door) async throws {
        let weak: [UInt16] = [0x0005, 0x000A, 0x0003, 0x0034, 0x002F, 0x009C, 0x009E, 0xC009]
        var hello = OfferedHello.sound12
        hello.suites = weak + hello.suites
        hello.groups = [1, 19, 23]
        hello.signatures = [0x0101, 0x0201, 0x0203, 0x0403, 0x0401]
        #expect(try await serverHello(to: hello, at: door).suite == 0xC02B)
        hello.versions = [0x0300, 0x0301, 0x0303, 0x0304]
        hello.suites.append(0x1301)
        hello.keyShare = (29, 32)
        hello.groups.append(29)
        #expect(try await serverHello(to: hello, at: door).suite == 0x1301)
    }

    /// Heartbleed: no heartbeat is agreed to, and a request of 16 KiB with nothing in it gets an alert.
    @Test(arguments: Door.allCases)
    func heartbeatsAreNotAnswered(at door: Door) async throws {
        var hello = OfferedHello.sound12
        hello.more = [(15, [1])]
        #expect(try await serverHello(to: hello, at: door).extensions[15] == nil)

        let connection = try await door.open(shared)
        try await connection.send([24, 3, 3, 0, 3, 1, 0x40, 0])
        let answer = try await answer(on: connection)
        switch answer {
        case .alert: break
        // The front treats anything but a handshake as a request in plain HTTP.
        case .other(let bytes): #expect(bytes.isEmpty || bytes.starts(with: Array("HTTP/1.1 400 ".utf8)), "\(answer)")
        case .serverHello: Issue.record("\(answer)")
        }
    }

    /// A real client that would accept anything.
    @Test(
        arguments: [
            ["-tls1"], ["-tls1_1"], ["-no_tls1_3", "-cipher", "kRSA:@SECLEVEL=0"],
            ["-no_tls1_3", "-cipher", "kDHE:@SECLEVEL=0"], ["-no_tls1_3", "-cipher", "aNULL:eNULL:@SECLEVEL=0"],
            ["-no_tls1_3", "-cipher", "ECDHE+AES+SHA1:@SECLEVEL=0"],
        ], Door.allCases)
    func aWeakProgramIsRefused(options: [String], at door: Door) async throws {
        let cipher = options.contains("-cipher") ? [] : ["-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"]
        let run = try await shared.bed.run(["openssl", "s_client"] + door.clientOptions(shared) + options + cipher)
        #expect(run.output.contains("Cipher is (NONE)"), "\(run)")
        #expect(run.errors.contains("alert"), "\(run)")
    }

    @Test(arguments: Door.allCases)
    func aProgramGetsNoRenegotiation(at door: Door) async throws {
        // s_client takes an R from its terminal; a pipe that never ends replaces one.
        let terminal = shared.bed.path("terminal-\(door)")
        let client = (["exec", "openssl", "s_client", "-tls1_2"] + door.clientOptions(shared)).joined(separator: " ")
        let run = try await shared.bed.run([
            "timeout", "30", "/bin/sh", "-c",
            "mkfifo \(terminal) && exec 0<>\(terminal) && printf 'R\\n' >&0 && \(client)",
        ])
        #expect(run.output.contains("Secure Renegotiation IS supported"), "\(run)")
        #expect(run.errors.contains("RENEGOTIATING") && run.errors.contains("no renegotiation"), "\(run)")
        #expect(run.ending == .exited(1), "\(run)")
    }

    /// 0-RTT data could be replayed: tickets allow none of it.
    @Test(arguments: Door.allCases)
    func ticketsAllowNoEarlyData(at door: Door) async throws {
        let name = "session-\(door).pem"
        let target = (door == .front ? shared.plainURL : "") + "/echo"
        let request = Array("GET \(target) HTTP/1.1\r\nHost: \(shared.authority)\r\nConnection: close\r\n\r\n".utf8)
        let run = try await shared.bed.run(
            ["openssl", "s_client", "-tls1_3", "-ign_eof", "-sess_out", name] + door.clientOptions(shared),
            input: request)
        #expect(run.output.contains("HTTP/1.1 "), "\(run)")
        let session = try await shared.bed.run(["openssl", "sess_id", "-in", name, "-noout", "-text"])
        #expect(session.output.contains("Max Early Data: 0"), "\(session)")
    }
}
