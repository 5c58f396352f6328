import Glibc
import PinproxySecurity
import PinproxyTLS

/// Certificates up to the verdict, with the evidence for them. The keys of ``FixedChain`` were deleted: only its leaf
/// may be accepted.
enum Certificates {
    private static let name = ServerName(host: "a.test")
    private static let anchors = (try? Certificate(der: FixedChain.root)).map { TrustAnchors([$0]) }
    private static let leaf = try? Certificate(der: FixedChain.leaf)
    private static let policies: [SecurityPolicy] = {
        guard let leaf, let root = try? Certificate(der: FixedChain.root) else { return [] }
        func pins(_ certificate: Certificate) -> PinSet {
            let key = (try? Pin(text: "sha256/\(certificate.spkiSHA256.base64)", for: .publicKey)).map { [$0] }
            return PinSet(key ?? [])
        }
        return [
            SecurityPolicy(), SecurityPolicy(mode: .publicKey, pins: pins(root)),
            SecurityPolicy(mode: .publicKey, pins: pins(leaf), position: .leaf),
            SecurityPolicy(mode: .publicKey, pins: pins(leaf), allowsInvalidCertificates: true),
            SecurityPolicy(
                mode: .publicKey, pins: pins(leaf), allowsInvalidCertificates: true, validatesDomainName: false),
            SecurityPolicy(mode: .publicKey, pins: pins(leaf), enforcement: .report),
        ]
    }()

    /// Certificates as in TLS 1.2: each after its length in three bytes.
    static func chain(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        guard let anchors, let leaf else { return require(false, "the fixed chain can be read") }
        let policy = choices.one(of: policies)
        let given = vectors(choices.input, width: 3)
        guard let presented = try? PresentedChain(der: given) else { return }
        for (certificate, given) in zip(presented.certificates, given) {
            read(certificate)
            // Equal bytes need no second parse, which takes a fifth of the time.
            let der = certificate.der
            require(der == given || (try? Certificate(der: der)) == certificate, "a certificate reads as itself")
        }
        let verdict = policy.evaluate(presented, host: name, anchors: anchors, at: FixedChain.time)
        if let refusal = verdict.refusal {
            require(!refusal.details.isEmpty, "a refusal says why")
            return
        }
        require(presented.leaf.publicKeyDER == leaf.publicKeyDER, "only the key of the leaf is accepted")
        if let chain = verdict.trustedChain {
            require(
                chain.leaf == presented.leaf && anchors.contains(chain.anchor),
                "a trusted chain leads from the leaf to the anchor")
        } else {
            require(policy.allowsInvalidCertificates, "without a chain nothing is trusted")
        }
        if policy.mode == .publicKey, policy.enforcement == .enforce {
            require(verdict.matchedPin != nil, "a pin matched")
        }
        require(verdict.validUntil > FixedChain.time, "what is accepted holds for a while")
    }

    /// Reads what is displayed and queried of a certificate.
    private static func read(_ certificate: Certificate) {
        let words = [certificate.subject, certificate.issuer, certificate.serialNumber, certificate.keyDescription]
        require(words.allSatisfy { $0.utf8.count < 1 << 18 }, "what is shown of a certificate is bounded")
        _ = (
            certificate.notBefore, certificate.end, certificate.isAuthority, certificate.isSelfIssued,
            certificate.mustStaple
        )
        _ = (certificate.subjectKeyIdentifier, certificate.spkiSHA256, certificate.isValid(at: FixedChain.time))
        let itself = TrustAnchors([certificate])
        let options = VerificationOptions(name: name, time: FixedChain.time, allowsPartialChain: true)
        if case .success(let chain) = itself.verify(PresentedChain(leaf: certificate), options: options) {
            require(chain.certificates == [certificate], "a chain of one has one certificate")
        }
    }

    private static let presented = try? PresentedChain(der: [FixedChain.leaf, FixedChain.issuer])
    private static let verified: VerifiedChain? = {
        guard let anchors, let presented else { return nil }
        return try? anchors.verify(presented, options: VerificationOptions(name: name, time: FixedChain.time)).get()
    }()
    private static let good = try? verified?.checkStatus(FixedChain.status, at: FixedChain.time).get()

    static func status(_ bytes: [UInt8]) {
        guard let verified, let good else {
            return require(false, "the fixed chain is verified, and its status is good")
        }
        switch verified.checkStatus(bytes, at: FixedChain.time) {
        case .success(let status): require(status == good, "only the responder's own words count")
        case .failure(let failure):
            require(!failure.isRevocation, "nobody but the issuer revokes a certificate")
            require(failure.description.utf8.count < 1 << 16, "what is shown of a response is bounded")
        }
        if let logs {
            _ = verified.checkTransparency(PeerEvidence(ocspResponse: bytes), logs: logs, at: FixedChain.time)
        }
    }

    static func revocationList(_ bytes: [UInt8]) {
        guard let anchors, let presented else { return require(false, "the fixed chain can be read") }
        guard let lists = inMemory(bytes, RevocationLists.load) else { return }
        for term in lists.terms { require(!term.description.isEmpty && term.thisUpdate <= .max, "a list has a term") }
        let options = VerificationOptions(name: name, time: FixedChain.time, revocationLists: lists)
        switch anchors.verify(presented, options: options) {
        case .success(let chain):
            _ = (
                lists.end(for: chain, at: FixedChain.time), lists.terms(for: chain, at: FixedChain.time),
                lists.strangers(to: chain)
            )
        case .failure(let failure): require(failure.reason != .revoked, "nobody but the issuer revokes a certificate")
        }
        _ = lists.defects(among: anchors.certificates + presented.certificates).map(\.description)
    }

    private static let logs = inMemory(FixedChain.logs) { (paths: [String]) throws(TransparencyLogsError) in
        try TransparencyLogs.load(paths.first ?? "")
    }

    /// Timestamps as in the TLS extension: each after its length in two bytes.
    static func timestamps(_ bytes: [UInt8]) {
        guard let verified, let logs else {
            return require(false, "the fixed chain is verified, and its logs can be read")
        }
        let evidence = PeerEvidence(timestamps: vectors(bytes, width: 2))
        let result: TransparencyResult
        switch verified.checkTransparency(evidence, logs: logs, at: FixedChain.time) {
        case .success(let enough):
            result = enough
            require(Set(result.timestamps.filter(\.isValid).map(\.logID)).count >= 2, "two logs vouch for a leaf")
        case .failure(let failure): result = failure.result
        }
        require(result.timestamps.count <= evidence.timestamps.count, "no timestamp comes from nowhere")
        for timestamp in result.timestamps where timestamp.isValid {
            require(timestamp.log != nil && timestamp.time <= FixedChain.time, "a valid timestamp is a known log's")
        }
        require(result.description.utf8.count < 1 << 16, "what is shown of timestamps is bounded")
    }

    /// - Parameter load: reads the file of that path; nil if it throws.
    private static func inMemory<Value, Failure: Error>(
        _ bytes: [UInt8], _ load: ([String]) throws(Failure) -> Value
    )
        -> Value?
    {
        guard let descriptor = try? MemoryFile.make(bytes) else { return nil }
        defer { close(descriptor) }
        return try? load(["/proc/self/fd/\(descriptor)"])
    }

    private static func vectors(_ bytes: [UInt8], width: Int) -> [[UInt8]] {
        var (vectors, rest) = ([[UInt8]](), bytes[...])
        while rest.count >= width, vectors.count < 64 {
            let length = rest.prefix(width).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(width)
            vectors.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return vectors
    }
}
