package import PinproxyAddresses
import PinproxyTLS

/// The names that a local authority may sign for, as critical name constraints (RFC 5280 section 4.2.1.10).
///
/// Every other host name and address is excluded. `pinproxy.test` is always permitted.
package struct PermittedNames: Sendable, Hashable {
    package enum Item: Sendable, Hashable, CustomStringConvertible {
        /// A host name and all below it, in lower case and ASCII.
        case domain(String)
        /// A network: its address has no bit beyond the prefix.
        case network(IPAddress, prefixLength: Int)

        package var description: String {
            switch self {
            case .domain(let name): name
            case .network(let address, let length): "\(address)/\(length)"
            }
        }
    }

    package let items: [Item]

    package init(_ items: [Item]) { self.items = items }

    /// Reads a domain. The reason says what is wrong with it.
    package static func domain(_ text: String) -> Result<Item, PermittedNameError> {
        let name: String
        do { name = try InternationalName.toASCII(text) } catch {
            return .failure(PermittedNameError(reason: "\(error)"))
        }
        if name.contains("*") || name.hasPrefix(".") {
            return .failure(
                PermittedNameError(
                    reason: "\"\(text)\" has a wildcard; a domain includes all names below it"))
        }
        guard LocalAuthority.isHostName(name), !name.hasSuffix(".") else {
            return .failure(PermittedNameError(reason: "\"\(text)\" is neither a domain nor a network"))
        }
        return .success(.domain(name))
    }

    var certificateExtension: CertificateExtension {
        let permitted = [.domain("pinproxy.test")] + items.filter { $0 != .domain("pinproxy.test") }
        // A kind of name without a permitted subtree is not constrained: all its names are excluded.
        let networks = items.compactMap { if case .network(let address, _) = $0 { address } else { nil } }
        let excluded = [false, true].filter { isIPv6 in !networks.contains { $0.isIPv6 == isIPv6 } }
            .map { Self.subtree(.context7, [UInt8](repeating: 0, count: $0 ? 32 : 8)) }
        var lists = [DERWriter.value(.constructed0, permitted.flatMap(Self.subtree))]
        if !excluded.isEmpty { lists.append(DERWriter.value(.constructed1, excluded.flatMap(\.self))) }
        return CertificateExtension(
            .nameConstraints, isCritical: true, value: DERWriter.value(.sequence, lists.flatMap(\.self)))
    }

    private static func subtree(_ item: Item) -> [UInt8] {
        switch item {
        case .domain(let name): return subtree(.context2, Array(name.utf8))
        case .network(let address, let length):
            let mask = address.bytes.indices.map { index in
                let bits = min(max(length - index * 8, 0), 8)
                return bits == 0 ? 0 : UInt8(truncatingIfNeeded: 0xff << (8 - bits))
            }
            return subtree(.context7, address.bytes + mask)
        }
    }

    private static func subtree(_ tag: DERWriter.Tag, _ base: [UInt8]) -> [UInt8] {
        DERWriter.sequence(DERWriter.value(tag, base))
    }
}

package struct PermittedNameError: Error, Sendable, CustomStringConvertible {
    let reason: String
    package var description: String { reason }
}
