import Foundation
import PinproxyTestAuthority
import Testing

/// A weakness of an origin (the name is that in `Peers/weak_origin.py`), and how its CONNECT is refused.
struct WeakOrigin: Sendable, CustomTestStringConvertible {
    let name: String
    let testDescription: String
    /// Words of the refusal.
    let words: String
    /// The alert that the origin receives; nil if the origin itself gives up.
    let alert: Int?

    private init(_ name: String, _ description: String, _ words: String, alert: Int? = nil) {
        (self.name, testDescription, self.words, self.alert) = (name, "\(name): \(description)", words, alert)
    }

    /// Servers that OpenSSL can still run. They accept nothing that our ClientHello offers.
    static let servers = [
        WeakOrigin("tls1-0", "speaks TLS 1.0 only", "protocol version"),
        WeakOrigin("tls1-1", "speaks TLS 1.1 only", "protocol version"),
        WeakOrigin("only-static-rsa", "no forward secrecy", "none of the offered ciphers"),
        WeakOrigin("only-cbc", "ECDHE with CBC only (Lucky 13, POODLE over TLS)", "none of the offered ciphers"),
        WeakOrigin("only-dhe-1024", "DHE in a shared group of 1024 bits (Logjam)", "none of the offered ciphers"),
        WeakOrigin("only-anonymous", "shows no certificate", "none of the offered ciphers"),
        WeakOrigin("only-null", "encrypts nothing", "none of the offered ciphers"),
        WeakOrigin("only-p192", "ECDHE on P-192 only", "none of the offered ciphers"),
    ]

    /// Unsolicited messages of servers, or of a machine in the middle.
    static let scripts = [
        WeakOrigin("ssl2", "answers with SSL 2.0 (DROWN)", "does not speak TLS"),
        WeakOrigin("ssl3", "chooses SSL 3.0 (POODLE)", "no tls version", alert: 70),
        WeakOrigin("tls1-0-chosen", "chooses TLS 1.0 (BEAST)", "no tls version", alert: 70),
        WeakOrigin("tls1-1-chosen", "chooses TLS 1.1", "no tls version", alert: 70),
        WeakOrigin("fallback-from-1-3", "TLS 1.2, marked as a fallback from 1.3", "inappropriate fallback", alert: 47),
        WeakOrigin("fallback-from-1-2", "TLS 1.2, marked as a fallback from 1.2", "inappropriate fallback", alert: 47),
        WeakOrigin("rc4", "chooses RC4", "cipher returned", alert: 47),
        WeakOrigin("3des", "chooses 3DES (Sweet32)", "cipher returned", alert: 47),
        WeakOrigin("des", "chooses DES", "cipher returned", alert: 47),
        WeakOrigin("null", "chooses no encryption", "cipher returned", alert: 47),
        WeakOrigin("rsa-export", "chooses RSA_EXPORT (FREAK)", "cipher returned", alert: 47),
        WeakOrigin("dhe-export", "chooses DHE_EXPORT (Logjam)", "cipher returned", alert: 47),
        WeakOrigin("anonymous-dh", "chooses anonymous DH", "cipher returned", alert: 47),
        WeakOrigin("anonymous-ecdh", "chooses anonymous ECDH", "cipher returned", alert: 47),
        WeakOrigin("static-rsa", "chooses RSA key exchange (ROBOT)", "cipher returned", alert: 47),
        WeakOrigin("static-rsa-cbc", "chooses RSA key exchange with CBC", "cipher returned", alert: 47),
        WeakOrigin("dhe", "chooses DHE", "cipher returned", alert: 47),
        WeakOrigin("cbc", "chooses CBC", "cipher returned", alert: 47),
        WeakOrigin("ccm8", "chooses a tag of 8 bytes", "cipher returned", alert: 47),
        WeakOrigin("psk", "chooses a pre-shared key", "cipher returned", alert: 47),
        WeakOrigin("ccm8-1-3", "the same in TLS 1.3", "cipher returned", alert: 47),
        WeakOrigin("group-1-3", "TLS 1.3 with a group that was not offered", "bad key share", alert: 47),
        WeakOrigin("retry-1-3", "asks again for such a group", "bad key share", alert: 47),
        WeakOrigin("compression", "compresses (CRIME)", "compression", alert: 47),
        WeakOrigin("no-rfc5746", "has no secure renegotiation", "unsafe legacy renegotiation", alert: 40),
        WeakOrigin("renegotiated", "has handshake data of another connection", "renegotiation mismatch", alert: 47),
        WeakOrigin("heartbleed", "sends a heartbeat of 16 KiB with nothing in it", "unexpected record", alert: 10),
        WeakOrigin("unoffered-alpn", "chooses a protocol that was not offered", "bad extension", alert: 50),
        WeakOrigin("no-certificate", "leaves its certificate out", "unexpected message", alert: 10),
        WeakOrigin("signed-by-nobody", "shows a certificate without having its key", "TLS handshake with", alert: 51),
        // OpenSSL 3.0 sends another alert for SHA-1.
        WeakOrigin(
            "sha1-signature", "signs its key exchange with SHA-1 (SLOTH)", "wrong signature type",
            alert: Probe.hasPostQuantum ? 47 : 40),
        WeakOrigin("md5-signature", "signs it with MD5 (SLOTH)", "wrong signature type", alert: 47),
        WeakOrigin("dsa-signature", "signs it as DSA does", "wrong signature type", alert: 47),
        WeakOrigin("weak-curve", "ECDHE on a curve of 163 bits", "wrong curve", alert: 47),
        WeakOrigin("unoffered-curve", "ECDHE on a curve that was not offered", "wrong curve", alert: 47),
        WeakOrigin("explicit-curve", "ECDHE on a curve of its own making", "wrong curve", alert: 47),
    ]

    /// Sound servers, to show that the others are not refused for another reason.
    static let sound = ["sound", "sound-1-2"]

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let names = sound + ["sound-until-cut"] + (servers + scripts).map(\.name)
        let roots = try TestRoots()
        // RSA, so that the suites of old can be used with it.
        let chain = try roots.chain("*.weak.test") {
            $0.key = .rsa(2048)
            $0.keyUsage = [.digitalSignature, .keyEncipherment]
        }
        let origin = try await PythonPeer(
            in: bed, script: "weak_origin.py",
            [
                "--certificate", try bed.file("weak.pem", chain.pem), "--key", try bed.file("weak.key", chain.keyPEM),
            ])
        let proxy = try await ProxyProcess(
            in: bed, trust: roots.write(to: bed),
            hosts: Dictionary(uniqueKeysWithValues: names.map { ("\($0).weak.test", "127.0.0.1") }))
        return SharedBed(bed: bed, proxy: proxy, originPort: origin.port, origin: origin)
    }
}

/// The origin is the weak one: the proxy doesn't talk to what a current browser wouldn't, and says so at CONNECT.
@Suite(.sharedBed(WeakOrigin.prepare), .timeLimit(.minutes(5)))
struct StrengthUpstreamTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private func connect(_ name: String) async throws -> RawResponse {
        try await shared.proxy.connect(to: "\(name).weak.test:\(shared.originPort)")
    }

    @Test(arguments: WeakOrigin.sound)
    func aSoundServerIsTaken(name: String) async throws {
        #expect(try await connect(name).status == 200)
        let event = try await #require(shared.origin).events.first("secured") { $0["name"] == name }
        #expect(event["suite"]?.contains("GCM") == true, "\(event)")
    }

    @Test(arguments: WeakOrigin.servers)
    func aWeakServerIsRefused(_ weak: WeakOrigin) async throws {
        // The server does work: a client without scruples succeeds.
        let host = "\(weak.name).weak.test"
        let lax = try await shared.bed.run([
            "openssl", "s_client", "-connect", "127.0.0.1:\(shared.originPort)", "-servername", host, "-cipher",
            "ALL:COMPLEMENTOFALL:@SECLEVEL=0", "-groups", "P-192:P-256", "-no_tls1_3",
        ])
        #expect(lax.output.contains("\nNew, ") && !lax.output.contains("Cipher is (NONE)"), "\(lax)")
        let answer = try await connect(weak.name)
        Expected.refused(502, weak.words).check(answer, host: host)
    }

    @Test(arguments: WeakOrigin.scripts)
    func aWeakFlightIsRefused(_ weak: WeakOrigin) async throws {
        let answer = try await connect(weak.name)
        Expected.refused(502, weak.words).check(answer, host: "\(weak.name).weak.test")
        guard let alert = weak.alert else { return }
        let told = try await #require(shared.origin).events.first("alert") { $0["name"] == weak.name }
        #expect(told["description"] == "\(alert)")
    }

    /// The scripts' common part is sound: without a fault in it, the origin hears no complaint.
    @Test func aSoundFlightIsRefusedOnlyForItsEnd() async throws {
        Expected.refused(502, "closed the connection").check(
            try await connect("sound-until-cut"), host: "sound-until-cut.weak.test")
        let event = try await #require(shared.origin).events.first("failed") { $0["name"] == "sound-until-cut" }
        #expect(event["cause"] == "no alert")
    }

    /// The origin asks to renegotiate during an exchange. The proxy declines, and s_server gives up.
    @Test func anOriginGetsNoRenegotiation() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let chain = try roots.chain("again.test")
            // s_server takes commands from its terminal; a pipe that never ends replaces one.
            let terminal = bed.path("terminal")
            let server = try await bed.start(
                [
                    "/bin/sh", "-c",
                    """
                    mkfifo \(terminal) && exec 0<>\(terminal) && exec openssl s_server -accept 127.0.0.1:0 -tls1_2 \
                    -cert \(try bed.file("again.pem", chain.pem)) -key \(try bed.file("again.key", chain.keyPEM)) \
                    -cert_chain \(bed.path("again.pem"))
                    """,
                ], mergingErrors: true)
            let port = try await server.output.first(awaiting: "s_server's port") { line in
                line.hasPrefix("ACCEPT ") ? line.split(separator: ":").last.flatMap { UInt16($0) } : nil
            }
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["again.test": "127.0.0.1"])
            let client = try await bed.start(
                ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "https://again.test:\(port)/"],
                environment: proxy.clientEnvironment)
            _ = try await server.output.first(awaiting: "the request") { $0.hasPrefix("GET / ") ? true : nil }
            let handle = try #require(FileHandle(forUpdatingAtPath: terminal))
            try handle.write(contentsOf: Data("r\n".utf8))
            try handle.close()
            _ = try await server.output.first(awaiting: "the refusal") { line in
                line.contains("no renegotiation") ? true : nil
            }
            _ = try await client.ending()
            #expect(await client.output.text == "502")
            #expect(server.output.lines.count { $0.hasPrefix("CIPHER is ") } == 1)
        }
    }
}
