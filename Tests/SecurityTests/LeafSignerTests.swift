import Foundation
import PinproxyTLS
import Testing

@testable import PinproxySecurity

@Suite struct LeafSignerTests {
    private static let now = Int64(Date().timeIntervalSince1970)
    private static let name = ServerName.dns("a.test")

    private let authority: LocalAuthority
    /// The authority as the proxy sees it, without the key.
    private let keyless: LocalAuthority

    init() throws {
        let directory = try TemporaryDirectory()
        let files = AuthorityFiles(certificate: directory.path + "/a.pem", key: directory.path + "/a.key")
        authority = try files.loadOrCreate(at: Self.now).authority
        let proxys = AuthorityFiles(
            certificate: files.certificate, key: directory.path + "/none", isSignedElsewhere: true)
        keyless = try proxys.loadOrCreate(at: Self.now).authority
    }

    private func signer(intercepting names: Set<ServerName> = [name], burst: Int = LeafAllowance.burst) -> LeafSigner {
        let allowance = LeafAllowance(at: 0, burst: burst)
        return LeafSigner(AuthoritySet(authority), lifetime: 3600, allowance: allowance) {
            names.contains($0) && $1 == 443
        }
    }

    private func ask(
        _ signer: inout LeafSigner, _ request: LeafRequest, at nanoseconds: UInt64 = 0
    ) throws -> LeafAnswer {
        let reply = signer.answer(try #require(request.packet), at: Self.now, nanoseconds: nanoseconds)
        #expect(reply.host == request.host)
        return reply.answer
    }

    private func expectRefused(_ answer: LeafAnswer, _ words: String) {
        guard case .refused(let reason) = answer else {
            Issue.record("it was issued")
            return
        }
        #expect(reason.contains(words), "\(reason)")
    }

    @Test func aLeafGoesFromSignerToCache() throws {
        let cache = LeafCache(authority: keyless, lifetime: 3600)
        #expect(throws: AuthorityError.self) { try cache.identity(for: Self.name, now: Self.now) }
        var signer = signer()
        let request = try #require(cache.request(for: Self.name, port: 443, now: Self.now))
        guard case .leaf(let der) = try ask(&signer, request) else {
            Issue.record("it was refused")
            return
        }
        try cache.keep(der, for: request, now: Self.now)
        #expect(cache.request(for: Self.name, port: 443, now: Self.now) == nil)
        #expect(try cache.identity(for: Self.name, now: Self.now).leaf.der == der)
        #expect(cache.statistics == LeafCache.Statistics(entries: 1, issued: 1))
        // After half of its life it is requested again.
        #expect(cache.request(for: Self.name, port: 443, now: Self.now + 1801) != nil)
        // Another host's leaf isn't accepted, nor another authority's, nor garbage.
        let elsewhere = keyless.request(for: .dns("b.test"), port: 443)
        #expect(throws: AuthorityError.self) { try cache.keep(der, for: elsewhere, now: Self.now) }
        let other = try LocalAuthority.temporary(at: Self.now)
        let forged = try other.leaf(for: Self.name, key: try PublicKey(der: request.key), at: Self.now, lifetime: 3600)
            .der
        #expect(throws: AuthorityError.self) { try cache.keep(forged, for: request, now: Self.now) }
        #expect(throws: AuthorityError.self) { try cache.keep([1, 2, 3], for: request, now: Self.now) }
        // A leaf for a key that isn't the proxy's.
        let foreign = try authority.leaf(
            for: Self.name, key: PrivateKey.generateP256().publicKey, at: Self.now, lifetime: 3600
        ).der
        #expect(throws: AuthorityError.self) { try cache.keep(foreign, for: request, now: Self.now) }
        #expect(cache.statistics.issued == 1)
    }

    /// A reload replaces the authority while the signer answers.
    @Test func aLeafThatAReloadOvertookIsDropped() throws {
        let before = keyless.request(for: Self.name, port: 443)
        let der = try authority.leaf(for: Self.name, key: try PublicKey(der: before.key), at: Self.now, lifetime: 3600)
            .der
        let other = try LocalAuthority.temporary(at: Self.now)
        let cache = LeafCache(authority: other, lifetime: 3600)
        try cache.keep(der, for: before, now: Self.now)
        #expect(cache.statistics == LeafCache.Statistics())
    }

    @Test func onlyInterceptedHostsGetLeaves() throws {
        var signer = signer()
        expectRefused(try ask(&signer, keyless.request(for: .dns("b.test"), port: 443)), "doesn't intercept b.test")
        expectRefused(try ask(&signer, keyless.request(for: Self.name, port: 444)), "doesn't intercept a.test")
        let other = try LocalAuthority.temporary(at: Self.now)
        expectRefused(try ask(&signer, other.request(for: Self.name, port: 443)), "another authority")
        signer.replace(with: AuthoritySet(authority), lifetime: 3600) { name, _ in name == .dns("b.test") }
        expectRefused(try ask(&signer, keyless.request(for: Self.name, port: 443)), "doesn't intercept a.test")
    }

    /// The proxy follows a rotation just after the signer, at the next reload at the latest.
    @Test func theFormerAuthoritySignsUntilTheNextReload() throws {
        var signer = signer()
        let fresh = AuthoritySet(try LocalAuthority.temporary(at: Self.now))
        let request = keyless.request(for: Self.name, port: 443)
        signer.replace(with: fresh, lifetime: 3600) { _, _ in true }
        guard case .leaf = try ask(&signer, request) else {
            Issue.record("it was refused")
            return
        }
        signer.replace(with: fresh, lifetime: 3600) { _, _ in true }
        expectRefused(try ask(&signer, request), "another authority")
    }

    @Test func onlyKeysOfTheProxysKindAreSigned() throws {
        var signer = signer()
        let request = keyless.request(for: Self.name, port: 443)
        var (compressed, offCurve) = (request.key, request.key)
        compressed[26] = 2
        offCurve[90] ^= 1
        // P-384 with its own head, and P-256 with a head of other lengths (as explicit parameters have).
        let other: [UInt8] = [
            0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x05, 0x2B, 0x81, 0x04,
            0x00, 0x22,
        ]
        let keys: [[UInt8]] = [
            [], [0x30], Array(repeating: 0x41, count: 91), request.key + [0], Array(request.key.dropLast()), compressed,
            offCurve,
            other + request.key.dropFirst(other.count),
        ]
        for key in keys {
            let changed = LeafRequest(authority: request.authority, host: request.host, port: 443, key: key)
            let answer = signer.answer(try #require(changed.packet), at: Self.now, nanoseconds: 0).answer
            guard case .refused = answer else {
                Issue.record("a leaf for \(key.count) bytes")
                return
            }
        }
    }

    @Test func aHostOutsideTheNameConstraintsIsRefused() throws {
        let names = PermittedNames([.domain("b.test")])
        let constrained = try LocalAuthority.issue(
            for: LocalAuthority.generateKey(), machine: "m", at: Self.now, permitting: names)
        var signer = LeafSigner(AuthoritySet(constrained), lifetime: 3600, allowance: LeafAllowance(at: 0)) { _, _ in
            true
        }
        expectRefused(try ask(&signer, constrained.request(for: Self.name, port: 443)), "name constraints")
    }

    @Test func theAllowanceIsRefilled() {
        var allowance = LeafAllowance(at: 0)
        let atOnce = (0..<LeafAllowance.burst).count { _ in allowance.take(at: 0) }
        #expect(atOnce == LeafAllowance.burst)
        let each = 1_000_000_000 / LeafAllowance.rate
        let others = [0, each - 1, each, each, 2 * each - 1, 2 * each].map { allowance.take(at: $0) }
        #expect(others == [false, false, true, false, false, true])
        // Never more than the burst, however long it was unused.
        let late = (0...LeafAllowance.burst).count { _ in allowance.take(at: .max / 2) }
        #expect(late == LeafAllowance.burst)
    }

    /// Only issued leaves count.
    @Test func aFloodOfQuestionsIsBounded() throws {
        var signer = signer(burst: 8)
        let request = try #require(keyless.request(for: Self.name, port: 443).packet)
        let refused = try #require(keyless.request(for: .dns("b.test"), port: 443).packet)
        for _ in 0..<8 {
            expectRefused(signer.answer(refused, at: Self.now, nanoseconds: 0).answer, "doesn't intercept")
            guard case .leaf = signer.answer(request, at: Self.now, nanoseconds: 0).answer else {
                Issue.record("it was refused")
                return
            }
        }
        expectRefused(signer.answer(request, at: Self.now, nanoseconds: 0).answer, "at once")
        signer.replace(with: AuthoritySet(authority), lifetime: 3600) { _, _ in true }
        expectRefused(signer.answer(request, at: Self.now, nanoseconds: 0).answer, "at once")
    }

    @Test func everyPrefixOfAPacketIsJudged() throws {
        let packet = try #require(keyless.request(for: Self.name, port: 443).packet)
        #expect(packet.count <= LeafRequest.longest)
        #expect(LeafRequest(packet) == keyless.request(for: Self.name, port: 443))
        let head = 36 + "a.test".utf8.count
        for length in 0..<packet.count { #expect(LeafRequest(Array(packet.prefix(length))) == nil, "\(length)") }
        var (other, long) = (packet, packet)
        other[0] = 2
        long += Array(repeating: 0, count: LeafRequest.longest)
        #expect(LeafRequest(other) == nil && LeafRequest(long) == nil)
        // Names have only one spelling.
        for name in ["A.test", "a.test.", ""] {
            let bytes = Array(packet[..<35]) + [UInt8(name.utf8.count)] + Array(name.utf8) + Array(packet[head...])
            #expect(LeafRequest(bytes) == nil, "\(name)")
        }
        #expect(
            LeafRequest(
                authority: authority.certificate.sha256, host: .dns(String(repeating: "a", count: 256)), port: 1,
                key: []
            ).packet == nil)
    }

    @Test func everyAnswerIsReadAgain() {
        for answer in [LeafAnswer.leaf([1, 2]), .refused("no"), .refused("")] {
            #expect(LeafAnswer(answer.packet) == answer)
        }
        for packet in [[], [0], [2], [7, 1], [1, 0xff], Array(repeating: 0, count: LeafAnswer.longest + 1)] as [[UInt8]]
        {
            #expect(LeafAnswer(packet) == nil, "\(packet.prefix(4))")
        }
    }

    @Test func withoutItsCertificateTheProxyWaitsForTheSigner() throws {
        let files = AuthorityFiles(
            certificate: "/nonexistent/a.pem", key: "/nonexistent/a.key", isSignedElsewhere: true)
        let error = #expect(throws: AuthorityError.self) { try files.loadOrCreate(at: Self.now) }
        #expect(
            error?.description.contains("pinproxy signer") == true && error?.isOfConfiguration == false,
            "\(String(describing: error))")
    }
}
