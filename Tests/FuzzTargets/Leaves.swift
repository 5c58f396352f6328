import PinproxyClients
import PinproxyConfiguration
import PinproxySecurity
import PinproxyTLS

/// What a compromised proxy sends to its signer, and what a compromised signer sends to the proxy.
enum Leaves {
    private static let authority = try? LocalAuthority.temporary(at: FixedChain.time)
    private static let other = ServerName.dns("b.test")
    private static let asked = authority?.request(for: other, port: 443)
    /// Stays empty: no leaf in an input has the right signature.
    private static let cache = authority.map { LeafCache(authority: $0, lifetime: 3600) }
    /// The policy for names, as the signer's process applies it.
    private static let snapshot: Snapshot? = {
        let pins =
            """
            hosts:\n  - {match: b.test, action: tunnel}\n  - {match: 192.0.2.1, action: deny}\n  - {match: \
            \"[2001:db8::1]\", action: tunnel}\n
            """
        return try? Snapshot.load(
            "/fuzz/pinproxy.yaml",
            from: ConfigurationFiles(contents: [
                .init(path: "/fuzz/pinproxy.yaml", bytes: Array("pins: pins.yaml\n".utf8)),
                .init(path: "/fuzz/pins.yaml", bytes: Array(pins.utf8)),
            ]), stateDirectory: "/fuzz/state")
    }()

    /// The host, then the rest of a request, with the right authority and key, so that the fuzzer needn't guess them.
    static func request(_ bytes: [UInt8]) {
        guard let authority, let snapshot else { return require(false, "the signer can be made") }
        var choices = Choices(bytes, count: 3)
        let (isRaw, port) = (choices.flag(), UInt16(choices.byte()) << 8 | UInt16(choices.byte()))
        var packet = choices.input
        if !isRaw, let right = asked?.packet {
            let host = packet.prefix(Int(UInt8.max))
            packet =
                right[..<33] + [UInt8(port >> 8), UInt8(port & 0xFF), UInt8(host.count)] + host
                + right[(36 + other.description.utf8.count)...]
        }
        read(packet)
        var signer = LeafSigner(AuthoritySet(authority), lifetime: 3600, allowance: LeafAllowance(at: 0)) {
            name, port in
            HostDecision.intercepts(name.description, port: port, in: snapshot)
        }
        let reply = signer.answer(packet, at: FixedChain.time, nanoseconds: 0)
        let (answer, host) = (reply.answer, reply.host)
        require(answer.packet.count <= LeafAnswer.longest, "an answer fits into a packet")
        require(LeafAnswer(answer.packet) == answer, "an answer reads as itself")
        guard let request = LeafRequest(packet) else { return require(host == nil, "what is malformed has no host") }
        require(request.packet == packet && host == request.host, "a request reads as itself")
        guard case .leaf(let der) = answer else { return }
        require(request.host != other, "nothing is issued for a host that isn't intercepted")
        let cache = LeafCache(authority: authority, lifetime: 3600)
        require((try? cache.keep(der, for: request, now: FixedChain.time)) != nil, "what is issued is accepted")
        guard let leaf = try? cache.identity(for: request.host, now: FixedChain.time).leaf else {
            return require(false, "what is accepted is kept")
        }
        require(leaf.der == der, "a leaf reads as itself")
        require(!leaf.isAuthority && leaf.issuer == authority.certificate.subject, "a leaf signs nothing")
    }

    /// Reads an answer as the proxy does.
    private static func read(_ packet: [UInt8]) {
        guard let answer = LeafAnswer(packet) else { return }
        require(answer.packet == packet, "an answer reads as itself")
        guard let cache, let asked, case .leaf(let der) = answer else { return }
        require(
            (try? cache.keep(der, for: asked, now: FixedChain.time)) == nil, "nobody without the key issues a leaf")
    }
}
