import CPinproxyOpenSSL
import PinproxyAddresses

/// Name constraints of an authority (RFC 5280 section 4.2.1.10). OpenSSL compares names as written. This also checks
/// empty constraints, the requested name, and wildcards.
struct NameConstraints {
    /// Names of one kind that are permitted or excluded.
    enum Subtree {
        /// A domain in lower case; a leading dot excludes the domain itself.
        case dns([UInt8])
        /// A network of IPv4 (4 bytes) or IPv6 (16 bytes).
        case ip(base: [UInt8], mask: [UInt8])
        /// Names of another kind.
        case other
    }

    /// Why constraints can't be understood.
    struct Malformed: Error {
        let text: String
    }

    let permitted, excluded: [Subtree]

    init?(of authority: Certificate) throws(Malformed) {
        guard X509_get_ext_by_NID(authority.pointer, NID_name_constraints, -1) >= 0 else { return nil }
        guard let value = X509_get_ext_d2i(authority.pointer, NID_name_constraints, nil, nil) else {
            throw Malformed(text: "its name constraints can't be read")
        }
        let constraints = value.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
        defer { NAME_CONSTRAINTS_free(constraints) }
        let lists = (constraints.pointee.permittedSubtrees, constraints.pointee.excludedSubtrees)
        guard lists.0 != nil || lists.1 != nil else { throw Malformed(text: "its name constraints are empty") }
        permitted = try Self.subtrees(lists.0, "permitted")
        excluded = try Self.subtrees(lists.1, "excluded")
    }

    // MARK: Checks

    /// Why the authority may not vouch for a requested name, if so.
    func violation(by name: ServerName) -> String? {
        let isWithin: (Subtree) -> Bool?
        switch name {
        case .dns(let host):
            let host = Array(host.lowercased().utf8)
            isWithin = { if case .dns(let domain) = $0 { Self.contains(domain, host) } else { nil } }
        case .ip(let text):
            guard let address = Self.address(text) else { return "\(name) is not an address" }
            isWithin = { if case .ip(let base, let mask) = $0 { Self.contains(base, mask, address) } else { nil } }
        }
        if excluded.contains(where: { isWithin($0) == true }) { return "\(name) is excluded" }
        let answers = permitted.compactMap(isWithin)
        return answers.isEmpty || answers.contains(true) ? nil : "\(name) is not permitted"
    }

    /// The violation of a certificate's wildcards: an excluded domain that one of them matches, whichever name is
    /// requested (CVE-2025-61727). OpenSSL has checked the wildcards as written.
    /// - Parameter domains: those below wildcards, in lower case.
    func violation(byWildcardsOf domains: Set<[UInt8]>) -> String? {
        for case .dns(let name) in excluded {
            // The star is one label: it reaches a domain, but not what is below that alone.
            guard let dot = name.firstIndex(of: UInt8(ascii: ".")), dot > 0 else { continue }
            let parent = name[(dot + 1)...]
            if domains.contains(Array(parent)) {
                let (wildcard, name) = (String(decoding: parent, as: UTF8.self), String(decoding: name, as: UTF8.self))
                return "its wildcard *.\(wildcard) matches \(name) too, which is excluded"
            }
        }
        return nil
    }

    static func wildcardDomains(of certificate: Certificate) -> Set<[UInt8]> {
        Set(
            certificate.alternativeNames { name -> [UInt8]? in
                guard name.type == GEN_DNS, let value = name.d.dNSName else { return nil }
                let bytes = Certificate.bytes(of: value)
                return bytes.starts(with: "*.".utf8) ? lowercased(bytes.dropFirst(2)) : nil
            })
    }

    private static func contains(_ domain: [UInt8], _ host: [UInt8]) -> Bool {
        guard host.count > domain.count else { return host == domain }
        guard host.suffix(domain.count) == domain[...] else { return false }
        let isDotted = domain.isEmpty || domain[0] == UInt8(ascii: ".")
        return isDotted || host[host.count - domain.count - 1] == UInt8(ascii: ".")
    }

    /// - Parameter address: in all its forms.
    private static func contains(_ base: [UInt8], _ mask: [UInt8], _ address: [[UInt8]]) -> Bool {
        address.contains { address in
            address.count == base.count && zip(mask, zip(base, address)).allSatisfy { $0 & $1.0 == $0 & $1.1 }
        }
    }

    /// The bytes of an address, and of an embedded IPv4 address.
    private static func address(_ text: String) -> [[UInt8]]? {
        guard let address = IPAddress(text) else { return nil }
        return address.unmapped == address ? [address.bytes] : [address.bytes, address.unmapped.bytes]
    }

    // MARK: Reading

    private static func subtrees(_ list: OpaquePointer?, _ kind: String) throws(Malformed) -> [Subtree] {
        guard let list else { return [] }
        let count = OPENSSL_sk_num(list)
        guard count > 0 else { throw Malformed(text: "its name constraints have an empty list of \(kind) names") }
        var subtrees: [Subtree] = []
        for index in 0..<count {
            guard let value = OPENSSL_sk_value(list, index) else { continue }
            subtrees.append(try subtree(value.load(as: GENERAL_SUBTREE.self), kind))
        }
        return subtrees
    }

    private static func subtree(_ subtree: GENERAL_SUBTREE, _ kind: String) throws(Malformed) -> Subtree {
        guard subtree.maximum == nil, subtree.minimum.map({ ASN1_INTEGER_get($0) }) ?? 0 == 0 else {
            throw Malformed(text: "its name constraints have a minimum or a maximum")
        }
        guard let base = subtree.base?.pointee else { return .other }
        switch base.type {
        case GEN_DNS:
            let name = base.d.dNSName.map { lowercased(Certificate.bytes(of: $0)[...]) } ?? []
            guard isDomain(name) else {
                throw Malformed(
                    text:
                        "its name constraints have the \(kind) dNSName "
                        + "\(Certificate.printable(Array(name.prefix(100)))), which is not a domain")
            }
            return .dns(name)
        case GEN_IPADD:
            let bytes = base.d.iPAddress.map { Certificate.bytes(of: $0) } ?? []
            let (network, mask) = (Array(bytes.prefix(bytes.count / 2)), Array(bytes.suffix(bytes.count / 2)))
            guard bytes.count == 8 || bytes.count == 32, isPrefix(mask) else {
                throw Malformed(
                    text: "its name constraints have an \(kind) iPAddress that is not an address and a mask")
            }
            return .ip(base: network, mask: mask)
        default: return .other
        }
    }

    /// Labels of letters, digits, hyphens and underscores, perhaps after a dot; empty means every name.
    private static func isDomain(_ name: [UInt8]) -> Bool {
        let dot = UInt8(ascii: ".")
        var isInLabel = false
        for (index, byte) in name.enumerated() {
            if byte == dot {
                guard isInLabel || index == 0 else { return false }
                isInLabel = false
            } else {
                guard labelBytes.contains(byte) else { return false }
                isInLabel = true
            }
        }
        return isInLabel || name.isEmpty
    }

    private static let labelBytes = Set("abcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func isPrefix(_ mask: [UInt8]) -> Bool {
        let afterOnes = mask.drop { $0 == 0xFF }
        guard let first = afterOnes.first else { return true }
        return (~first & (~first &+ 1)) == 0 && afterOnes.dropFirst().allSatisfy { $0 == 0 }
    }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }
}

extension NameConstraints {
    /// Why a verified chain's leaf, or the requested name, breaks an authority's constraints.
    static func failure(of chain: VerifiedChain, name: ServerName?) -> ChainFailure? {
        do throws(ChainFailure) {
            let all = try read(in: chain.certificates, above: 0)
            guard !all.isEmpty else { return nil }
            let domains = wildcardDomains(of: chain.leaf)
            for (authority, constraints) in all {
                let text =
                    constraints.violation(byWildcardsOf: domains) ?? name.flatMap { constraints.violation(by: $0) }
                guard let text else { continue }
                let fault = RuleFault(
                    reason: .nameConstraint,
                    text: "breaks the name constraints of \(VerificationFailure.subject(of: authority)): \(text)")
                let failure = VerificationFailure(fault, depth: 0, certificate: chain.leaf)
                return ChainFailure(failure: failure, chain: chain.certificates, culprit: authority)
            }
            return nil
        } catch {
            return error
        }
    }

    /// The constraints of the authorities above a depth.
    static func read(
        in chain: [Certificate], above depth: Int
    ) throws(ChainFailure) -> [(authority: Certificate, constraints: NameConstraints)] {
        var all: [(Certificate, NameConstraints)] = []
        for (depth, authority) in chain.enumerated().dropFirst(depth + 1) {
            do throws(Malformed) {
                if let constraints = try NameConstraints(of: authority) { all.append((authority, constraints)) }
            } catch {
                let failure = VerificationFailure(.malformed(error.text), depth: depth, certificate: authority)
                throw ChainFailure(failure: failure, chain: chain, culprit: authority)
            }
        }
        return all
    }

    /// The authority with constraints that the certificate violates, by OpenSSL's comparison.
    static func culprit(of violator: Certificate, in chain: [Certificate], above depth: Int) -> Certificate? {
        chain.dropFirst(depth + 1).first { authority in
            guard let value = X509_get_ext_d2i(authority.pointer, NID_name_constraints, nil, nil) else { return false }
            let constraints = value.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
            defer { NAME_CONSTRAINTS_free(constraints) }
            return NAME_CONSTRAINTS_check(violator.pointer, constraints) != X509_V_OK
        }
    }
}
