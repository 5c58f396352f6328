import Foundation
import PinproxyTestAuthority
import Testing

/// What the proxy offers to origins, as an origin records it: the same to every origin, whatever its client supports.
@Suite(.sharedBed(WeakOrigin.prepare), .timeLimit(.minutes(5)))
struct InterceptionOfferTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    /// The parts of a ClientHello that a client's weakness could change.
    private static let offer = [
        "version", "versions", "suites", "groups", "signatures", "compressions", "extensions", "protocols",
    ]

    private func hellos(_ name: String) throws -> [LogEvent] {
        try #require(shared.origin).events.all("hello").filter { $0["name"] == "\(name).weak.test" }
    }

    /// Every field by its number: Chromium's and Firefox's lists without what they still keep for old
    /// servers (docs/interception.md compares them).
    @Test func theOfferIsABrowsersWithoutItsOldParts() async throws {
        _ = try await shared.proxy.connect(to: "sound-until-cut.weak.test:\(shared.originPort)")
        let hello = try #require(try hellos("sound-until-cut").first)
        #expect(hello["version"] == "\(0x0303)" && hello["versions"] == "772,771")
        #expect(hello["name"] == "sound-until-cut.weak.test" && hello["protocols"] == "h2,http/1.1")
        #expect(hello["compressions"] == "0")
        let suites = try numbers(hello, "suites")
        // TLS 1.3, and ECDHE with AES-GCM or ChaCha20.
        #expect(
            Set(suites).subtracting([0x00FF]) == [
                0x1301, 0x1302, 0x1303, 0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9,
            ], "\(suites)")
        // X25519MLKEM768, X25519, P-256, P-384.
        #expect(try numbers(hello, "groups") == (Probe.hasPostQuantum ? [4588] : []) + [29, 23, 24])
        let signatures = try numbers(hello, "signatures")
        // The left byte is a digest (4: SHA-256 and up) or 8, RSA-PSS and Ed25519; DSA's right byte is 2.
        #expect(signatures.allSatisfy { $0 >> 8 >= 4 && ($0 >> 8 == 8 || $0 & 0xFF != 2) }, "\(signatures)")
        let extensions = try numbers(hello, "extensions")
        // Renegotiation is secure (RFC 5746): OpenSSL 3.0 signals it by a cipher suite, 3.5 by renegotiation_info.
        #expect(suites.contains(0x00FF) != extensions.contains(0xFF01), "\(suites), \(extensions)")
        // extended_master_secret is there; heartbeat, early_data and pre-shared keys of others are not.
        #expect(extensions.contains(23))
        #expect(Set(extensions).isDisjoint(with: [15, 42]), "\(extensions)")
    }

    private func numbers(_ event: LogEvent, _ field: String) throws -> [Int] {
        try #require(event[field]).split(separator: ",").compactMap { Int($0) }
    }

    /// Only the interceptor's TLS protects the connection to the origin. A client of twenty years ago and one of today
    /// must not make a difference.
    @Test func theClientsOfferChangesNothing() async throws {
        let authority = "sound-1-2.weak.test:\(shared.originPort)"
        let clients = [
            ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA:@SECLEVEL=0"],
            ["-tls1_3", "-groups", "P-521:P-256", "-sigalgs", "ECDSA+SHA256:RSA+SHA1"],
            ["-no_tls1_3", "-comp", "-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"],
        ]
        for options in clients {
            // Each request closes its upstream connection, so that the next opens a new one.
            let run = try await shared.bed.run(
                [
                    "openssl", "s_client", "-quiet", "-proxy", "\(shared.proxy.address):\(shared.proxy.port)",
                    "-connect", authority, "-servername", "sound-1-2.weak.test", "-CAfile", shared.proxy.authority,
                ] + options,
                input: Array("GET / HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n\r\n".utf8))
            #expect(run.output.contains("hello"), "\(run)")
        }
        // A client without TLS, too.
        let plain = try RawConnection(to: shared.proxy)
        try await plain.send("GET https://\(authority)/ HTTP/1.0\r\nHost: \(authority)\r\n\r\n")
        #expect(try await plain.response().status == 200)

        let offers = try hellos("sound-1-2").map { hello in Self.offer.map { hello[$0] ?? "-" } }
        #expect(offers.count == clients.count + 1)
        #expect(Set(offers).count == 1, "\(offers)")
    }
}
