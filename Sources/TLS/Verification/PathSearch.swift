import CPinproxyOpenSSL

/// The paths from a leaf up to an anchor, by names, key identifiers and key usages; OpenSSL verifies each. OpenSSL
/// takes the first matching issuer, though another of the same name and key may reach an anchor. This backtracks,
/// without dead ends or repeated failures, so peers can't prolong it.
struct PathSearch {
    /// One path, without the leaf.
    struct Path {
        /// From the peer, nearest first.
        let issuers: [Certificate]
        /// First anchor first; at least one.
        let anchors: [Certificate]
    }

    /// The leaf, then all candidates.
    private let nodes: [Node]
    private let leastDistance: [Int?]
    /// Unfinished paths, the next one last.
    private var open: [[Int]] = [[0]]
    private var dropped: Set<Int> = []
    private var brokenLinks: Set<[Int]> = []
    private var steps = 0

    private struct Node {
        let certificate: Certificate
        let isAnchor: Bool
        let isEnd: Bool
        /// Possible issuers: anchors first.
        var issuers: [Int] = []
    }

    /// Paths examined per chain, dead ends included. A real chain has two or three.
    private static let maximumSteps = 500

    /// - Parameter endsAnywhere: a chain ends at the first anchor, self-signed or not.
    init(from leaf: Certificate, by candidates: [Certificate], to anchors: TrustAnchors, endsAnywhere: Bool) {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        var nodes = [Node(certificate: leaf, isAnchor: false, isEnd: false)]
        // Anchors that the peer sent are known already.
        nodes += candidates.filter { !anchors.contains($0) }.map {
            Node(certificate: $0, isAnchor: false, isEnd: false)
        }
        let untrusted = nodes.indices.dropFirst()
        var known: [SHA256Digest: Int] = [:]
        var index = 0
        while index < nodes.count {
            let node = nodes[index]
            // No issuer is needed above an end, which is trusted already.
            if !node.isEnd {
                for anchor in anchors.certificates where anchor.mayHaveIssued(node.certificate) {
                    let place = known[anchor.sha256] ?? nodes.count
                    if place == nodes.count {
                        known[anchor.sha256] = place
                        nodes.append(
                            Node(certificate: anchor, isAnchor: true, isEnd: endsAnywhere || anchor.isSelfSigned))
                    }
                    nodes[index].issuers.append(place)
                }
                if !node.isAnchor {
                    nodes[index].issuers += untrusted.filter {
                        $0 != index && nodes[$0].certificate.mayHaveIssued(node.certificate)
                    }
                }
            }
            index += 1
        }
        self.nodes = nodes
        leastDistance = Self.distances(nodes)
    }

    /// The fewest steps from each node to an end; nil if none is reachable.
    private static func distances(_ nodes: [Node]) -> [Int?] {
        var distances: [Int?] = nodes.map { $0.isEnd ? 0 : nil }
        for distance in 1...Int(TrustAnchors.maximumIntermediates) + 1 {
            for (index, node) in nodes.enumerated() where distances[index] == nil {
                if node.issuers.contains(where: { distances[$0] == distance - 1 }) { distances[index] = distance }
            }
        }
        return distances
    }

    /// The next path that isn't in `seen` (leaf first); nil if none is left, or enough were tried.
    mutating func next(except seen: [[Certificate]]) -> Path? {
        while let path = open.popLast(), steps < Self.maximumSteps {
            steps += 1
            if isSpoilt(path) { continue }
            let last = nodes[path[path.count - 1]]
            if last.isEnd {
                if seen.contains(path.map { nodes[$0].certificate }) { continue }
                let certificates = path.dropFirst().map { nodes[$0] }
                return Path(
                    issuers: certificates.filter { !$0.isAnchor }.map(\.certificate),
                    anchors: certificates.filter(\.isAnchor).map(\.certificate))
            }
            let room = Int(TrustAnchors.maximumIntermediates) + 1 - path.count
            for issuer in last.issuers.reversed() where !path.contains(issuer) {
                if let distance = leastDistance[issuer], distance <= room { open.append(path + [issuer]) }
            }
        }
        return nil
    }

    private func isSpoilt(_ path: [Int]) -> Bool {
        path.contains(where: dropped.contains)
            || !brokenLinks.isEmpty && zip(path, path.dropFirst()).contains { brokenLinks.contains([$0, $1]) }
    }

    /// Drops certificates that a failure rules out on every path.
    mutating func learn(from failed: ChainFailure) {
        let depth = failed.failure.depth
        if let culprit = failed.culprit {
            // Another issuer's name may break the constraint, on another path.
            if depth == 0 || culprit == failed.failure.certificate { drop(culprit) }
        } else if failed.failure.reason == .badSignature {
            guard depth + 1 < failed.chain.count, let below = index(of: failed.chain[depth]),
                let above = index(of: failed.chain[depth + 1])
            else { return }
            brokenLinks.insert([below, above])
        } else if failed.failure.isOfCertificate, let certificate = failed.failure.certificate, depth > 0 {
            drop(certificate)
        }
    }

    private mutating func drop(_ certificate: Certificate) {
        if let index = index(of: certificate) { dropped.insert(index) }
    }

    private func index(of certificate: Certificate) -> Int? { nodes.firstIndex { $0.certificate == certificate } }
}

extension VerificationFailure {
    /// Whether the certificate fails in any chain.
    var isOfCertificate: Bool {
        switch reason {
        case .expired, .notYetValid, .nameMismatch, .weakKey, .weakSignature, .notAnAuthority, .wrongPurpose,
            .distrusted, .revoked, .lifetimeTooLong:
            true
        case .malformed: !Self.faultsOfIssuers.contains(x509Code)
        case .selfSigned, .untrustedRoot, .unknownIssuer, .badSignature, .pathTooLong, .nameConstraint,
            .revocationUnknown, .other:
            false
        }
    }

    /// Errors that OpenSSL reports for a certificate though its issuer is at fault.
    private static let faultsOfIssuers: Set<CInt> = [
        X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE, X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX,
        X509_V_ERR_UNSUPPORTED_NAME_SYNTAX, X509_V_ERR_SUBTREE_MINMAX, X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY,
        X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE, X509_V_ERR_SIGNATURE_ALGORITHM_MISMATCH,
    ]
}

extension Certificate {
    /// By name, key identifier and key usage; the signature isn't checked.
    fileprivate func mayHaveIssued(_ other: Certificate) -> Bool {
        X509_NAME_cmp(X509_get_subject_name(pointer), X509_get_issuer_name(other.pointer)) == 0
            && X509_check_issued(pointer, other.pointer) == X509_V_OK
    }
}
