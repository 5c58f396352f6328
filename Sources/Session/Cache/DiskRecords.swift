import PinproxyCaching
import PinproxyDiskStore
import PinproxyHTTPWire
import PinproxyTLS

// The encoding of keys and responses on disk.

extension CacheKey {
    /// A digest that is equal for all policies and variants.
    var digest: SHA256Digest { .of(parts: [ownerBytes, [isSecure ? 1 : 0], Array("\(host):\(port)".utf8), target]) }

    var ownerBytes: [UInt8] {
        switch owner {
        case .everybody: Array("everybody".utf8)
        case .user(let number): Array("user \(number)".utf8)
        case .account(let name): Array("account ".utf8) + name
        }
    }
}

extension CacheKey.Owner {
    /// Nil if the bytes don't name an owner.
    init?(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        if text == "everybody" {
            self = .everybody
        } else if text.hasPrefix("user "), let number = UInt32(text.dropFirst(5)) {
            self = .user(number)
        } else if text.hasPrefix("account ") {
            self = .account(Array(bytes.dropFirst(8)))
        } else {
            return nil
        }
    }
}

extension CachePolicy {
    /// Represents a policy that is no longer in force.
    static let former = CachePolicy(
        origin: OriginKey(
            host: "", port: 0, layer: .tunnel, parent: nil,
            addresses: AddressGuard(AddressRules(), client: .elsewhere)),
        rules: SHA256Digest.of([]))

    /// A digest that survives restarts.
    var digest: SHA256Digest {
        let (kind, identity): (UInt8, [UInt8]) =
            switch origin.layer {
            case .plain: (0, [])
            case .tunnel: (1, [])
            case .verifiedTunnel(let digest): (2, digest.bytes)
            case .tls(let digest): (3, digest.bytes)
            }
        let parent = origin.parent.map { "\($0.host):\($0.port)" } ?? ""
        return .of(parts: [
            Array(origin.host.utf8), Array("\(origin.port)".utf8), [kind], identity, Array(parent.utf8),
            Array(origin.addresses.text.utf8), rules.bytes,
        ])
    }
}

extension SHA256Digest {
    /// The digest of a list: no two lists have the same bytes.
    fileprivate static func of(parts: [[UInt8]]) -> SHA256Digest {
        .of(parts.flatMap { Array("\($0.count):".utf8) + $0 })
    }
}

extension StoredResponse {
    private static let edition: UInt8 = 1

    /// Digests of the policy, and of the request's values of the fields in Vary. Values may be secrets.
    var variant: [UInt8] {
        var fields: [[UInt8]] = []
        for (name, value) in zip(traits.vary.list, selected.values) {
            fields.append(Array(name.utf8))
            fields.append(value.map { [1] + $0 } ?? [0])
        }
        return policy.digest.bytes + SHA256Digest.of(parts: fields).bytes
    }

    var metadata: [UInt8] {
        let from: UInt8 =
            switch scope {
            case nil: 0
            case .inside: 1
            case .outside: 2
            }
        var bytes = [Self.edition, isShared ? 1 : 0, from]
        for number in [times.requested, times.received, validUntil] {
            withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
        }
        return bytes
    }

    /// A response on disk; its body isn't open yet. Nil: another edition wrote it.
    /// - Parameter asked: the request, which may be for another variant.
    convenience init?(_ record: StoredRecord, _ policy: CachePolicy, _ asked: OwnedRequest) {
        let bytes = record.metadata
        guard bytes.count == 27, bytes[0] == Self.edition, let head = try? OwnedResponse(record.head) else {
            return nil
        }
        func number(_ offset: Int) -> Int64 {
            (0..<8).reduce(0) { $0 | Int64(bytes[offset + $1]) << (8 * Int64($1)) }
        }
        self.init(
            head, body: .closed, times: ResponseTimes(requested: number(3), received: number(11)),
            for: asked.view, by: policy, isShared: bytes[1] == 1, validUntil: number(19),
            from: bytes[2] == 1 ? .inside : bytes[2] == 2 ? .outside : nil, record: record)
    }
}
