import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Malicious chains: each ends in a clear error or acceptance, in bounded time.
@Suite struct BadChainTests {
    static let now = CertificateTemplate.now
    /// Milliseconds of processor time that parsing and verifying a chain may take.
    /// The costliest chain takes 41 in a debug build, and several times that under a sanitizer or on a busy machine.
    /// Work without a bound takes seconds to hours.
    static let limit = 500.0

    let root: HeldCertificate
    let issuer: HeldCertificate

    init() throws {
        root = try HeldCertificate.root()
        issuer = try root.issue(.intermediate("Issuer"))
    }

    // MARK: Broken encodings

    @Test func randomChangesOfALeaf() throws {
        let leaf = try issuer.issue(.leaf("api.test"))
        var chance = Chance(seed: 1)
        for _ in 0..<1500 {
            var bytes = leaf.der
            for _ in 0...Int.random(in: 0..<3, using: &chance) {
                bytes[Int.random(in: bytes.indices, using: &chance)] ^= UInt8(
                    1 << Int.random(in: 0..<8, using: &chance))
            }
            guard bytes != leaf.der else { continue }
            #expect(outcome(bytes, [issuer.der]) != .accepted)
        }
    }

    @Test func randomChangesOfAnIssuer() throws {
        let leaf = try issuer.issue(.leaf("api.test"))
        var chance = Chance(seed: 2)
        for _ in 0..<1500 {
            var bytes = issuer.der
            bytes[Int.random(in: bytes.indices, using: &chance)] ^= UInt8(1 << Int.random(in: 0..<8, using: &chance))
            #expect(outcome(leaf.der, [bytes]) != .accepted)
        }
    }

    /// A corrupted certificate beside it doesn't affect the good chain.
    @Test func randomChangesBesideAGoodChain() throws {
        let leaf = try issuer.issue(.leaf("api.test"))
        var chance = Chance(seed: 3)
        for _ in 0..<500 {
            var bytes = issuer.der
            bytes[Int.random(in: bytes.indices, using: &chance)] ^= UInt8(1 << Int.random(in: 0..<8, using: &chance))
            let outcome = outcome(leaf.der, [bytes, issuer.der])
            #expect(outcome == .accepted || outcome == .unparsed)
        }
    }

    @Test func deepNesting() throws {
        var nested: [UInt8] = DERWriter.null
        for _ in 0..<5000 { nested = DERWriter.value(0x30, nested) }
        let extensions = try issuer.issue(.leaf("api.test").with { $0.extensions = [("1.2.3.4", false, nested)] })
        #expect(outcome(extensions.der, [issuer.der]) == .accepted)
        #expect(outcome(nested, []) == .unparsed)
        let san = try issuer.issue(.leaf("api.test").with { $0.subjectAltName = nested })
        #expect(outcome(san.der, [issuer.der]) == .refused(.malformed))
        // A directoryName in a name constraint, as deep as it goes.
        let constraint = DERWriter.sequence(DERWriter.value(0xA0, DERWriter.sequence(DERWriter.value(0xA4, nested))))
        let constrained = try root.issue(.intermediate("C").with { $0.extensions = [("2.5.29.30", true, constraint)] })
        #expect(outcome(try constrained.issue(.leaf("api.test")).der, [constrained.der]) == .refused(.malformed))
    }

    @Test func lengthsThatLie() throws {
        let leaf = try issuer.issue(.leaf("api.test")).der
        let lengths: [[UInt8]] = [
            [0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x80], [0xFF], [0x88] + [UInt8](repeating: 0xFF, count: 8),
            [0x84, 0, 0, 0, 1],
        ]
        for length in lengths { #expect(outcome([0x30] + length + leaf.dropFirst(4), []) == .unparsed) }
    }

    // MARK: Chains that lead nowhere

    @Test func loops() throws {
        // A and B have issued each other, and neither is an anchor.
        let (keyA, keyB) = (try TestKey(), try TestKey())
        let a0 = try HeldCertificate.selfSigned(.intermediate("A", pathLength: nil).with { $0.keyPair = keyA })
        let b0 = try HeldCertificate.selfSigned(.intermediate("B", pathLength: nil).with { $0.keyPair = keyB })
        let a = try b0.issue(.intermediate("A", pathLength: nil).with { $0.keyPair = keyA })
        let b = try a0.issue(.intermediate("B", pathLength: nil).with { $0.keyPair = keyB })
        let leaf = try a.issue(.leaf("api.test"))
        for rest in [[a, b], [b, a], [a, b, a, b], [a0, b0, a, b]] {
            #expect(outcome(leaf.der, rest.map(\.der)).isRefused)
        }
        // One that is its own issuer by name, but not by key.
        let own = try a.issue(.intermediate("A", pathLength: nil))
        #expect(outcome(try own.issue(.leaf("api.test")).der, [own.der, a.der, b.der]).isRefused)
    }

    @Test func selfIssuedRuns() throws {
        var authority = try HeldCertificate.root("Run")
        var run = [authority]
        for _ in 0..<30 {
            authority = try authority.issue(.intermediate("Run", pathLength: nil))
            run.append(authority)
        }
        let leaf = try authority.issue(.leaf("api.test"))
        #expect(outcome(leaf.der, run.map(\.der)).isRefused)
        #expect(outcome(leaf.der, run.reversed().map(\.der)).isRefused)
    }

    @Test func aHundredIntermediates() throws {
        var authority = root
        var above: [HeldCertificate] = []
        for level in 0..<100 {
            authority = try authority.issue(.intermediate("Level \(level)", pathLength: nil))
            above.append(authority)
        }
        let leaf = try authority.issue(.leaf("api.test"))
        for rest in [above, above.reversed()] {
            let outcome = outcome(leaf.der, rest.map(\.der))
            #expect(outcome == .refused(.pathTooLong) || outcome == .refused(.unknownIssuer))
        }
        // They don't affect a good chain.
        let good = try issuer.issue(.leaf("api.test"))
        #expect(outcome(good.der, above.map(\.der) + [issuer.der]) == .accepted)
    }

    // MARK: Large ones

    /// At most three thousand of the names below are read.
    @Test(arguments: [(100, true), (3_000, true), (10_000, false)])
    func manyNames(_ count: Int, _ areRead: Bool) throws {
        let names = (0..<count).map { "host\($0).test" }
        let leaf = try issuer.issue(.leaf("api.test").with { $0.dnsNames = names + ["api.test"] })
        #expect(outcome(leaf.der, [issuer.der]) == (areRead ? .accepted : .refused(.malformed)))
        let other = try issuer.issue(.leaf("api.test").with { $0.dnsNames = names })
        #expect(outcome(other.der, [issuer.der]) == .refused(areRead ? .nameMismatch : .malformed))
    }

    @Test(arguments: [100, 1_000, 3_000])
    func namesTimesConstraints(_ count: Int) throws {
        let excluded = (0..<count).flatMap { DERWriter.sequence(DERWriter.value(0x82, Array("no\($0).test".utf8))) }
        let constraint = DERWriter.sequence(DERWriter.value(0xA1, excluded))
        let authority = try root.issue(.intermediate("C").with { $0.extensions = [("2.5.29.30", true, constraint)] })
        let leaf = try authority.issue(
            .leaf("api.test").with { $0.dnsNames = (0..<count).map { "host\($0).test" } + ["api.test"] })
        let outcome = outcome(leaf.der, [authority.der])
        // OpenSSL counts names times constraints, and gives up at a million.
        #expect(outcome == (count <= 1_000 ? .accepted : .refused(.nameConstraint)))
    }

    @Test(arguments: [4096, 8192, 16_384, 16_392, 65_536])
    func largeKeys(_ bits: Int) throws {
        // Made-up keys, since finding real ones of this size takes minutes; a leaf's key signs nothing here.
        let key = DERWriter.rsa(modulus: [UInt8](repeating: 0xC3, count: bits / 8), exponent: [1, 0, 1])
        let leaf = try issuer.issue(.leaf("api.test").with { $0.publicKeyDER = key })
        // The largest isn't even parsed.
        let isParsed = bits < 65_536
        #expect(
            outcome(leaf.der, [issuer.der]) == (bits <= 8192 ? .accepted : isParsed ? .refused(.weakKey) : .unparsed))
        // An issuer's key of this size would have to verify a signature.
        let authority = try root.issue(.intermediate("Large").with { $0.publicKeyDER = key })
        let below = try HeldCertificate.selfSigned(
            .root("Large").with {
                $0.key = .rsa(2048)
                $0.subjectKeyIdentifier = .none
                $0.authorityKeyIdentifier = .none
            }
        ).issue(.leaf("api.test").with { $0.authorityKeyIdentifier = .none })
        #expect(outcome(below.der, [authority.der]).isRefused == isParsed)
    }

    /// Thirty issuers of the same name that might all have signed, each of them costly to check.
    @Test(arguments: [2048, 3072, 8192, 16_384], [3, 4, 8, 256])
    func costlySignatures(_ bits: Int, _ exponentBytes: Int) throws {
        let exponent = [UInt8](repeating: 0x7F, count: exponentBytes)
        let authorities = try (0..<30).map { number in
            let modulus = [UInt8](repeating: 0xC3, count: bits / 8 - 1) + [UInt8(number * 2 + 1)]
            return try root.issue(
                .intermediate("Large").with {
                    $0.publicKeyDER = DERWriter.rsa(modulus: modulus, exponent: exponent)
                    $0.subjectKeyIdentifier = .wrong
                })
        }
        let below = try HeldCertificate.selfSigned(.root("Large").with { $0.key = .rsa(2048) }).issue(
            .leaf("api.test").with {
                $0.authorityKeyIdentifier = .wrong
                $0.signature = [UInt8](repeating: 0x55, count: bits / 8)
            })
        let isCalculatedWith = bits <= 8192 && exponentBytes <= 4
        #expect(outcome(below.der, authorities.map(\.der)) == .refused(isCalculatedWith ? .badSignature : .weakKey))
    }

    @Test func hugeNames() throws {
        let name = String(repeating: "x", count: 50_000)
        let leaf = try issuer.issue(.leaf("api.test").with { $0.commonName = name })
        #expect(outcome(leaf.der, [issuer.der]) == .accepted)
        let authority = try root.issue(.intermediate(name))
        #expect(outcome(try authority.issue(.leaf("api.test")).der, [authority.der]) == .accepted)
        let stranger = try HeldCertificate.root(name).issue(.leaf(name))
        guard case .failure(let failure) = try verify(stranger.der, []) else {
            Issue.record("accepted")
            return
        }
        #expect(failure.message.utf8.count < 1000)
        let many = try issuer.issue(
            .leaf("api.test").with { $0.subject = (0..<5_000).map { ("2.5.4.11", "unit \($0)") } })
        #expect(outcome(many.der, [issuer.der]) == .accepted)
    }

    @Test func hugeSerialNumber() throws {
        let leaf = try issuer.issue(
            .leaf("api.test").with { $0.serialContents = [UInt8](repeating: 0x55, count: 60_000) })
        #expect(outcome(leaf.der, [issuer.der]) == .refused(.malformed))
    }

    @Test(arguments: [(50, true), (10_000, false)])
    func manyExtensions(_ count: Int, _ areRead: Bool) throws {
        let leaf = try issuer.issue(
            .leaf("api.test").with { $0.extensions = (0..<count).map { ("1.2.3.\($0)", false, DERWriter.null) } })
        #expect(outcome(leaf.der, [issuer.der]) == (areRead ? .accepted : .refused(.malformed)))
    }

    @Test func manyNamesakesInOneChain() throws {
        let twins = try (0..<100).map { _ in try root.issue(.intermediate("Issuer").with { $0.breaksSignature = true })
        }
        let leaf = try issuer.issue(.leaf("api.test").with { $0.authorityKeyIdentifier = .none })
        #expect(outcome(leaf.der, twins.map(\.der)).isRefused)
    }

    /// Twenty issuers that have all issued each other, two of them under the root: more paths than atoms.
    @Test func aMazeOfCrossCertificates() throws {
        let keys = [try TestKey(), try TestKey(), try TestKey()]
        func authority(_ number: Int, by issuer: HeldCertificate, spoilt: Bool = true) throws -> HeldCertificate {
            try issuer.issue(
                .intermediate("Level \(number)", pathLength: nil).with {
                    $0.keyPair = keys[number]
                    if spoilt { $0.extensions = [("1.2.3.4", true, DERWriter.null)] }
                })
        }
        let starts = try (0..<3).map { number in
            try HeldCertificate.selfSigned(.root("Level \(number)").with { $0.keyPair = keys[number] })
        }
        var maze: [HeldCertificate] = []
        for round in 0..<2 {
            for above in 0..<3 {
                for below in 0..<3 where above != below { maze.append(try authority(below, by: starts[above])) }
            }
            maze.append(try authority(round, by: root))
        }
        let leaf = try starts[2].issue(.leaf("api.test"))
        #expect(outcome(leaf.der, maze.map(\.der)).isRefused)
        // A good one is found within the tries.
        let good = try authority(2, by: root, spoilt: false)
        #expect(outcome(leaf.der, [good.der] + maze.map(\.der)) == .accepted)
        // Valid chains are searched until one is wanted.
        let presented = PresentedChain(
            leaf: try Certificate(der: leaf.der), rest: try ([good] + maze).map { try Certificate(der: $0.der) })
        var asked = 0
        let (milliseconds, result) = try ThreadTime.of {
            TrustAnchors([try Certificate(der: root.der)]).verify(
                presented, options: VerificationOptions(name: .dns("api.test"), time: Self.now)
            ) { _ in
                asked += 1
                return false
            }
        }
        #expect(throws: Never.self) { try result.get() }
        #expect(asked >= 1)
        #expect(milliseconds < Self.limit)
    }

    /// All of them reach the anchor and are valid: only eight are built and offered.
    @Test func manyChainsThatHold() throws {
        let key = try TestKey()
        let twins = try (0..<20).map { _ in
            try root.issue(.intermediate("Twin").with { $0.keyPair = key })
        }
        let leaf = try twins[0].issue(.leaf("api.test"))
        let presented = PresentedChain(
            leaf: try Certificate(der: leaf.der), rest: try twins.map { try Certificate(der: $0.der) })
        var asked: Set<[Certificate]> = []
        let (milliseconds, result) = try ThreadTime.of {
            TrustAnchors([try Certificate(der: root.der)]).verify(
                presented, options: VerificationOptions(name: .dns("api.test"), time: Self.now)
            ) { chain in
                #expect(asked.insert(chain.certificates).inserted)
                return false
            }
        }
        #expect(asked.count == 8)
        #expect(try asked.contains(result.get().certificates))
        #expect(milliseconds < Self.limit)
    }

    @Test func aLongRevocationList() throws {
        let entries = (0..<20_000).map { number in
            (serial: [0x40, UInt8(number >> 8), UInt8(number & 0xFF), 1], date: Self.now, reason: UInt8?.none)
        }
        let listed = try issuer.issue(.leaf("api.test").with { $0.serial = entries[12_345].serial })
        let clean = try issuer.issue(.leaf("api.test"))
        let list = try RevocationList(
            der: issuer.revocationList(RevocationListTemplate().with { $0.revoked = entries }))
        let lists = RevocationLists([list])
        for (leaf, expected) in [(listed, Outcome.refused(.revoked)), (clean, .accepted)] {
            #expect(outcome(leaf.der, [issuer.der], lists: lists) == expected)
        }
    }

    // MARK: Over the wire

    /// More than OpenSSL's 100 KiB of certificates ends the handshake with a clear message.
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func aChainThatIsTooLongToSend(_ version: TLSVersion) throws {
        let peers = try Peers.shared.get()
        let large = try HeldCertificate.selfSigned(
            .root("Large").with { $0.extensions = [("1.2.3.4", false, [UInt8](repeating: 0, count: 60_000))] })
        let chain = try ([peers.leaf] + [large, large]).map { try Certificate(der: $0.der) }
        let identity = try Identity(chain: chain, key: PrivateKey(pem: Array(peers.leaf.keyPEM.utf8)))
        let pair = try ConnectionPair(client: peers.clientContext, server: Peers.server(version), identity: identity)
        let (client, _) = pair.handshake()
        #expect(client.kind == .protocolError)
        #expect(client.message?.hasPrefix("the peer sends more than is accepted in a handshake") == true)
    }

    // MARK: Bed

    enum Outcome: Equatable {
        case unparsed, accepted
        case refused(VerificationFailure.Reason)

        var isRefused: Bool { if case .refused = self { true } else { false } }
    }

    /// The verdict on a chain. Records an issue if it takes too long, or if a failure has no message.
    private func outcome(
        _ leaf: [UInt8], _ rest: [[UInt8]], lists: RevocationLists? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Outcome {
        let (milliseconds, outcome) = ThreadTime.of { () -> Outcome in
            guard let result = try? verify(leaf, rest, lists) else { return .unparsed }
            switch result {
            case .success: return .accepted
            case .failure(let failure):
                #expect(!failure.message.isEmpty, sourceLocation: sourceLocation)
                return .refused(failure.reason)
            }
        }
        #expect(milliseconds < Self.limit, sourceLocation: sourceLocation)
        return outcome
    }

    private func verify(
        _ leaf: [UInt8], _ rest: [[UInt8]], _ lists: RevocationLists? = nil
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        let presented = PresentedChain(
            leaf: try Certificate(der: leaf), rest: try rest.map { try Certificate(der: $0) })
        let options = VerificationOptions(name: .dns("api.test"), time: Self.now, revocationLists: lists)
        return TrustAnchors([try Certificate(der: root.der)]).verify(presented, options: options)
    }
}
