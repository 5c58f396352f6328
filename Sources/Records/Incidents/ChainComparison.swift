package import PinproxyTLS

/// The differences between a refused chain and one of the host that matched a pin, in words. Texts of certificates are
/// in it, which an attacker may have written. What clears a chain (a renewal, a rotation) is said only of one that
/// verifies.
package struct ChainComparison: Encodable, Sendable, Equatable {
    package enum Kind: String, Encodable, Sendable, CaseIterable {
        /// The leaf is unchanged, and no pin matches: the pins have changed.
        case sameChain = "same-chain"
        /// The leaf is unchanged, but refused for another reason.
        case otherCause = "other-cause"
        /// The server didn't prove that it holds the leaf's key.
        case unproven
        /// A new certificate with the same key, which verifies.
        case renewal
        /// A new key, signed by the same issuer, which verifies.
        case rotation
        /// With the key or the issuer of the last one, and it doesn't verify.
        case unverified
        /// Signed by another issuer.
        case otherIssuer = "other-issuer"
        /// An issuer that names an inspection product.
        case inspection
        case selfSigned = "self-signed"
        /// For another name that reads like a portal's: captive portals answer for every host.
        case captivePortal = "captive-portal"
        /// For another name, and no portal's.
        case otherName = "other-name"
        /// No chain of the host has matched yet.
        case unknown
        /// The chain can't be read.
        case unreadable
    }

    package let kind: Kind
    /// The finding in one line.
    package let headline: String
    /// The meaning, and the compared values; a line each.
    package let lines: [String]

    /// - Parameter matched: one that met a pin, the leaf first; empty: none.
    package init(_ incident: Incident, with matched: [Certificate]) {
        self.init(
            incident.certificates, isVerified: incident.verified, refusedFor: incident.fault,
            host: ServerName(host: incident.host), with: matched)
    }

    /// - Parameters:
    ///   - chain: the leaf first.
    ///   - isVerified: the trust anchors vouch for the chain.
    init(
        _ chain: [Certificate], isVerified: Bool, refusedFor fault: Sighting.Fault, host: ServerName,
        with matched: [Certificate]
    ) {
        guard let leaf = chain.first else {
            (kind, headline, lines) = (.unreadable, "the chain can't be read", [])
            return
        }
        let facts = Facts(
            chain: chain, leaf: leaf, isVerified: isVerified, fault: fault, host: host, matched: matched)
        kind = facts.kind
        headline = facts.headline(kind)
        let trust = [Kind.otherIssuer, .inspection, .captivePortal].contains(kind) ? [Self.trust(isVerified)] : []
        lines = facts.advice(kind) + trust + facts.differences
    }

    private static func trust(_ isVerified: Bool) -> String {
        isVerified
            ? "This machine's trust anchors vouch for the chain."
            : "This machine's trust anchors don't vouch for the chain."
    }

    private struct Facts {
        let chain: [Certificate]
        let leaf: Certificate
        let isVerified: Bool
        let fault: Sighting.Fault
        let host: ServerName
        let matched: [Certificate]

        private var product: InspectionProduct? { InspectionProduct.issuing(chain) }

        private var isForHost: Bool { leaf.mismatch(with: host) == nil }

        private var isSelfSigned: Bool { leaf.isSelfIssued && leaf.isSigned(by: leaf) }

        var kind: Kind {
            // Any server can send a copied chain.
            if fault == .unproven { return .unproven }
            let known = matched.first
            if leaf == known { return fault == .pin ? .sameChain : .otherCause }
            let hasSameKey = leaf.spkiSHA256 == known?.spkiSHA256
            if isForHost, hasSameKey || leaf.hasIssuer(of: matched) {
                guard isVerified else { return .unverified }
                return hasSameKey ? .renewal : .rotation
            }
            if product != nil { return .inspection }
            if !isForHost { return isPortal ? .captivePortal : .otherName }
            if isSelfSigned { return .selfSigned }
            return known == nil ? .unknown : .otherIssuer
        }

        private static let portalWords = [
            "captive", "portal", "hotspot", "wifi", "wi-fi", "wlan", "guest", "login", "logon", "signin", "splash",
        ]

        /// Whether its names read like those of a captive portal.
        private var isPortal: Bool {
            let names = (leaf.dnsNames + [leaf.subject]).map { $0.lowercased() }
            return Self.portalWords.contains { word in names.contains { $0.contains(word) } }
        }

        private var names: String {
            let all = leaf.dnsNames + leaf.ipAddresses
            guard !all.isEmpty else { return leaf.subject.isEmpty ? "no name" : leaf.subject }
            return all.prefix(4).joined(separator: ", ") + (all.count > 4 ? " and \(all.count - 4) more" : "")
        }

        private var issuer: String { leaf.issuer.isEmpty ? "an issuer without a name" : leaf.issuer }

        func headline(_ kind: Kind) -> String {
            switch kind {
            case .sameChain: "the same certificate as the one that matched: the pins or the policy have changed"
            case .otherCause: "the same certificate as the one that matched, refused for another cause than its pins"
            case .unproven: "the server didn't prove that it holds the certificate's key: the chain may be a copy"
            case .renewal: "another certificate for the same key: a renewal"
            case .rotation: "another key, signed by the same issuer: most likely a rotation"
            case .unverified: "of the same key or issuer as the one that matched, but the chain doesn't verify"
            case .otherIssuer: "another issuer: \(issuer) instead of \(matched.first?.issuer ?? "")"
            case .inspection: "the issuer names an inspection product: \(product?.name ?? "")"
            case .selfSigned: "self-signed: the certificate vouches for itself"
            case .captivePortal:
                "another server answers, which may be a captive portal by its name: the certificate is for \(names)"
            case .otherName: "another server answers: the certificate is for \(names), not for \(host)"
            case .unknown: "no chain of this host has matched a pin yet: there is nothing to compare with"
            case .unreadable: ""
            }
        }

        func advice(_ kind: Kind) -> [String] {
            switch kind {
            case .sameChain: ["Look at what was changed in the pin file, or at what the policy requires besides pins."]
            case .otherCause: ["The cause above says for which; the pins have nothing to do with it."]
            case .unproven:
                [
                    "The certificates describe their owner, and this server may be another: it may replay a chain, or "
                        + "its cipher suite has no signature."
                ]
            case .unverified:
                [
                    "The cause above says why. A chain that doesn't verify shows no renewal and no rotation: it may be "
                        + "old, revoked or intended for something else."
                ]
            case .renewal: ["A pinned key still matches; pinned certificates have to be replaced."]
            case .rotation:
                [
                    "The signature was checked. If the host's operator confirms the key, add its pin; a backup pin "
                        + "would have spared this."
                ]
            case .otherIssuer:
                [
                    "Hosts change their authority now and then, and an interceptor presents another one too. Ask the "
                        + "host's operator."
                ]
            case .inspection:
                [
                    "Somebody on the way opens the connection: a gateway of this network, or a program on this "
                        + "machine. Names in certificates prove nothing; ask who runs the network.",
                    "If that is intended, the host can't be pinned here: exempt it from the inspection.",
                ]
            case .selfSigned: ["A device, a test server or a simple attack presents one; a public host never does."]
            case .captivePortal:
                [
                    "Anyone may choose such a name. If the network asks its users to sign in, open a page in a "
                        + "browser to do so, then try again.",
                    "Otherwise the name leads to a wrong server, or the server chose a wrong certificate (SNI).",
                ]
            case .otherName: ["The name leads to a wrong server, or the server chose a wrong certificate (SNI)."]
            case .unknown, .unreadable: []
            }
        }

        /// The differences of the two, a line each.
        var differences: [String] {
            guard let known = matched.first, leaf != known else { return [] }
            var lines: [String] = []
            func compare(_ what: String, _ now: String, _ before: String) {
                if now != before { lines.append("\(what): \(now), before: \(before)") }
            }
            compare("subject", leaf.subject, known.subject)
            compare("issuer", leaf.issuer, known.issuer)
            compare("key", leaf.keyDescription, known.keyDescription)
            compare("pin", "sha256/\(leaf.spkiSHA256.base64)", "sha256/\(known.spkiSHA256.base64)")
            compare("names", list(leaf), list(known))
            if let root = chain.last, let before = matched.last { compare("top", root.subject, before.subject) }
            return lines
        }

        private func list(_ certificate: Certificate) -> String {
            let all = certificate.dnsNames + certificate.ipAddresses
            return all.prefix(8).joined(separator: ", ") + (all.count > 8 ? " and \(all.count - 8) more" : "")
        }
    }
}
