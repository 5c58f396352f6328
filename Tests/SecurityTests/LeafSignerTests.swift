import Foundation
import TLS
import Testing

@testable import Security

@Suite struct LeafSignerTests {
    private static let now = Int64(Date().timeIntervalSince1970)
    private static let name = ServerName.dns("a.test")

    private let authority: LocalAuthority
    /// The proxy's view of it, without the key.
    private let keyless: LocalAuthority

    init() throws {
        let directory = try TemporaryDirectory()
        let files = AuthorityFiles(certificate: directory.path + "/a.pem", key: directory.path + "/a.key")
        authority = try files.loadOrCreate(at: Self.now).authority
        let proxys = AuthorityFiles(certificate: files.certificate, key: directory.path + "/none", isSignedElsewhere: true)
        keyless = try proxys.loadOrCreate(at: Self.now).authority
    }

    private func signer(intercepting names: Set<ServerName> = [name]) -> LeafSigner {
        LeafSigner(AuthoritySet(authority), lifetime: 3600, at: 0) { name, port in names.contains(name) && port == 443 }
    }

    private func ask(_ signer: inout LeafSigner, _ request: LeafRequest, at nanoseconds: UInt64 = 0) throws -> LeafAnswer {
        let (answer, host) = signer.answer(try #require(request.packet), at: Self.now, nanoseconds: nanoseconds)
        #expect(host == request.host)
        return answer
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
        try cache.keep(der, for: Self.name, now: Self.now)
        #expect(cache.request(for: Self.name, port: 443, now: Self.now) == nil)
        #expect(try cache.identity(for: Self.name, now: Self.now).leaf.der == der)
        #expect(cache.statistics == LeafCache.Statistics(entries: 1, issued: 1))
        // After half of its life it is asked for again.
        #expect(cache.request(for: Self.name, port: 443, now: Self.now + 1801) != nil)
        // Another host's isn't taken, nor another authority's, nor garbage.
        #expect(throws: AuthorityError.self) { try cache.keep(der, for: .dns("b.test"), now: Self.now) }
        let other = try LocalAuthority.temporary(at: Self.now)
        let forged = try other.leaf(for: Self.name, key: try PublicKey(der: request.key), at: Self.now, lifetime: 3600).der
        #expect(throws: AuthorityError.self) { try cache.keep(forged, for: Self.name, now: Self.now) }
        #expect(throws: AuthorityError.self) { try cache.keep([1, 2, 3], for: Self.name, now: Self.now) }
        // A leaf for a key that isn't the proxy's.
        let foreign = try authority.leaf(for: Self.name, key: PrivateKey.generateP256().publicKey, at: Self.now, lifetime: 3600).der
        #expect(throws: AuthorityError.self) { try cache.keep(foreign, for: Self.name, now: Self.now) }
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

    /// The proxy follows a rotation a moment after the signer, and no later than the next reload.
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
        for key in [[], [0x30], Array(repeating: 0x41, count: 91), request.key + [0]] as [[UInt8]] {
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
        let constrained = try LocalAuthority.issue(for: LocalAuthority.generateKey(), machine: "m", at: Self.now, permitting: names)
        var signer = LeafSigner(AuthoritySet(constrained), lifetime: 3600, at: 0) { _, _ in true }
        expectRefused(try ask(&signer, constrained.request(for: Self.name, port: 443)), "name constraints")
    }

    @Test func theAllowanceIsRefilled() {
        var allowance = LeafAllowance(at: 0)
        for _ in 0..<LeafAllowance.burst { #expect(allowance.take(Self.name, at: 0) == nil) }
        #expect(allowance.take(Self.name, at: 0) != nil)
        let each = 1_000_000_000 / LeafAllowance.rate
        #expect(allowance.take(Self.name, at: each - 1) != nil)
        #expect(allowance.take(Self.name, at: each) == nil)
        #expect(allowance.take(Self.name, at: each) != nil)
        // Never more than the burst, however long nobody asked.
        let late = UInt64.max / 2
        for _ in 0..<LeafAllowance.burst { #expect(allowance.take(Self.name, at: late) == nil) }
        #expect(allowance.take(Self.name, at: late) != nil)
    }

    @Test func theNamesOfADayAreBounded() {
        var allowance = LeafAllowance(at: 0)
        let second: UInt64 = 1_000_000_000
        for number in 0..<LeafAllowance.names { #expect(allowance.take(.dns("\(number).test"), at: UInt64(number) * second) == nil) }
        let now = UInt64(LeafAllowance.names) * second
        #expect(allowance.take(.dns("one.more.test"), at: now)?.contains("within a day") == true)
        #expect(allowance.take(.dns("0.test"), at: now) == nil)
        #expect(allowance.take(.dns("one.more.test"), at: 86_400 * second) == nil)
    }

    @Test func everyPrefixOfAPacketIsJudged() throws {
        let packet = try #require(keyless.request(for: Self.name, port: 443).packet)
        #expect(packet.count <= LeafRequest.longest)
        #expect(LeafRequest(packet) == keyless.request(for: Self.name, port: 443))
        let head = 36 + "a.test".utf8.count
        for length in 0..<packet.count { #expect((LeafRequest(Array(packet.prefix(length))) == nil) == (length <= head), "\(length)") }
        var (other, long) = (packet, packet)
        other[0] = 2
        long += Array(repeating: 0, count: LeafRequest.longest)
        #expect(LeafRequest(other) == nil && LeafRequest(long) == nil)
        // Names are written in one way only.
        for name in ["A.test", "a.test.", ""] {
            let bytes = Array(packet[..<35]) + [UInt8(name.utf8.count)] + Array(name.utf8) + Array(packet[head...])
            #expect(LeafRequest(bytes) == nil, "\(name)")
        }
        #expect(LeafRequest(authority: authority.certificate.sha256, host: .dns(String(repeating: "a", count: 256)), port: 1, key: []).packet == nil)
    }

    @Test func everyAnswerIsReadAgain() {
        for answer in [LeafAnswer.leaf([1, 2]), .refused("no"), .refused("")] { #expect(LeafAnswer(answer.packet) == answer) }
        for packet in [[], [0], [2], [7, 1], [1, 0xff], Array(repeating: 0, count: LeafAnswer.longest + 1)] as [[UInt8]] {
            #expect(LeafAnswer(packet) == nil, "\(packet.prefix(4))")
        }
    }

    @Test func withoutItsCertificateTheProxyWaitsForTheSigner() throws {
        let files = AuthorityFiles(certificate: "/nonexistent/a.pem", key: "/nonexistent/a.key", isSignedElsewhere: true)
        let error = #expect(throws: AuthorityError.self) { try files.loadOrCreate(at: Self.now) }
        #expect(error?.description.contains("pinproxy signer") == true && error?.isOfConfiguration == false, "\(String(describing: error))")
    }
}
