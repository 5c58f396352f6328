package import PinproxyEventLoop

/// `upstream.block_addresses`, with the exceptions of `upstream.allow_addresses`: classes and ranges. An allowed class
/// lifts the block of that class alone (`metadata` stays when `link-local` goes); an allowed range lifts any block.
package final class AddressRules: Sendable, Hashable {
    package enum Rule: Sendable, Hashable, CustomStringConvertible {
        case kind(AddressClass)
        case range(AddressRange)

        package var description: String {
            switch self {
            case .kind(let kind): kind.rawValue
            case .range(let range): "\(range)"
            }
        }

        /// Whether an address at which clouds serve credentials is named.
        package var coversMetadata: Bool {
            switch self {
            case .kind(let kind): kind == .metadata
            case .range(let range): AddressClass.metadataAddresses.contains { range.contains($0) }
            }
        }
    }

    package let blocked: [Rule]
    package let allowed: [Rule]
    fileprivate let blockedKinds: Set<AddressClass>
    fileprivate let blockedRanges: [AddressRange]
    fileprivate let allowedKinds: Set<AddressClass>
    fileprivate let allowedRanges: [AddressRange]
    /// Their text, independent of their order.
    fileprivate let text: String
    private let textHash: Int

    package init(blocked: [Rule] = [.kind(.linkLocal), .kind(.metadata)], allowed: [Rule] = []) {
        self.blocked = blocked
        self.allowed = allowed
        (blockedKinds, blockedRanges) = Self.sorted(blocked)
        (allowedKinds, allowedRanges) = Self.sorted(allowed)
        let texts = [blocked, allowed].map { Set($0.map(\.description)).sorted().joined(separator: " ") }
        text = texts.joined(separator: "\n")
        textHash = text.hashValue
    }

    private static func sorted(_ rules: [Rule]) -> (Set<AddressClass>, [AddressRange]) {
        var kinds: Set<AddressClass> = []
        var ranges: [AddressRange] = []
        for rule in rules {
            switch rule {
            case .kind(let kind): kinds.insert(kind)
            case .range(let range): ranges.append(range)
            }
        }
        return (kinds, ranges)
    }

    package static func == (one: AddressRules, other: AddressRules) -> Bool {
        one === other || (one.textHash == other.textHash && one.text == other.text)
    }
    package func hash(into hasher: inout Hasher) { hasher.combine(textHash) }
}

/// Where a client is, which decides what addresses it may reach.
package enum ClientPlace: Sendable, Hashable {
    case thisMachine
    /// Must not reach what listens on loopback.
    case elsewhere

    /// - Parameter peer: only loopback itself counts, not an address that embeds it, which any host may have.
    package init(of peer: IPAddress) {
        let isLoopback = peer.isLoopback || AddressClass.classes(ofReading: peer.canonical).contains(.loopback)
        self = isLoopback ? .thisMachine : .elsewhere
    }
}

/// Judges the addresses to dial for one kind of client. Part of ``OriginKey``, since clients may differ.
package struct AddressGuard: Sendable, Hashable {
    package let rules: AddressRules
    package let client: ClientPlace

    /// Equal texts make equal decisions, also in another process.
    var text: String { client == .thisMachine ? rules.text : "elsewhere\n\(rules.text)" }

    package init(_ rules: AddressRules, client: ClientPlace) {
        self.rules = rules
        self.client = client
    }

    package enum Objection: Sendable, Hashable {
        case blocked(AddressRules.Rule)
        case loopbackFromElsewhere
        /// An internal address that a redirect from the internet led to.
        case insideFromOutside
    }

    /// Nil if the address may be dialled, in each of its readings.
    package func objection(to address: IPAddress) -> Objection? {
        for reading in address.readings {
            if let objection = objection(toReading: reading) { return objection }
        }
        return nil
    }

    var mayObject: Bool { !rules.blocked.isEmpty || client == .elsewhere }

    private func objection(toReading address: IPAddress) -> Objection? {
        let bytes = address.bytes
        if rules.allowedRanges.contains(where: { $0.contains(bytes) }) { return nil }
        if let range = rules.blockedRanges.first(where: { $0.contains(bytes) }) { return .blocked(.range(range)) }
        let kinds = AddressClass.classes(ofReading: address).subtracting(rules.allowedKinds)
        if let kind = kinds.intersection(rules.blockedKinds).min(by: { $0.rawValue < $1.rawValue }) {
            return .blocked(.kind(kind))
        }
        return client == .elsewhere && kinds.contains(.loopback) ? .loopbackFromElsewhere : nil
    }
}
