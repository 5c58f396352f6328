import PinproxySerialization
import PinproxyTLS

@testable import PinproxyBundles

/// Keys that are the same in each run, and files signed with them.
enum BundleBed {
    /// 2027-01-15T08:00:00Z.
    static let now: Int64 = 1_800_000_000
    static let later = now + 86_400

    /// An Ed25519 private key in PKCS#8 (RFC 8410 section 7), with `number` as each of its 32 bytes.
    static func key(_ number: UInt8) throws -> SigningKey {
        try key(seed: [UInt8](repeating: number, count: 32))
    }

    static func key(seed: [UInt8]) throws -> SigningKey {
        let der: [UInt8] = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20] + seed
        return try SigningKey(
            pem: Array("-----BEGIN PRIVATE KEY-----\n\(Base64.encode(der))\n-----END PRIVATE KEY-----\n".utf8))
    }

    static func role(_ numbers: [UInt8], _ threshold: Int) throws -> RoleKeys {
        try RoleKeys(numbers.map { try key($0).publicKey }, threshold: threshold)
    }

    /// Root keys 1, 2, 3 (two must sign), bundle keys 11, 12 (both), timestamp key 21.
    static func root(
        _ version: Int = 1, expires: Int64 = later, root: ([UInt8], Int) = ([1, 2, 3], 2),
        bundle: ([UInt8], Int) = ([11, 12], 2), timestamp: ([UInt8], Int) = ([21], 1)
    ) throws -> BundleRoot {
        BundleRoot(
            version: version, expires: expires, root: try role(root.0, root.1), bundle: try role(bundle.0, bundle.1),
            timestamp: try role(timestamp.0, timestamp.1))
    }

    static func signed(_ envelope: Envelope, by numbers: [UInt8]) throws -> Envelope {
        var envelope = envelope
        for number in numbers { try envelope.sign(with: key(number)) }
        return envelope
    }

    static func bundle(
        _ version: Int = 1, expires: Int64 = later, text: String = "hosts: []\n", by keys: [UInt8] = [11, 12]
    ) throws -> Envelope {
        let files = [BundleFile(path: "pins.yaml", bytes: Array(text.utf8))]
        return try signed(try PolicyBundle.envelope(version: version, expires: expires, files: files), by: keys)
    }

    static func timestamp(
        _ version: Int = 1, expires: Int64 = later, for bundle: Envelope, by keys: [UInt8] = [21]
    ) throws -> Envelope {
        try signed(
            BundleTimestamp(version: version, expires: expires, for: try PolicyBundle(bundle)).envelope, by: keys)
    }

    /// With one root by default.
    static func document(
        roots: [Envelope]? = nil, bundle: Envelope? = nil, timestamp: Envelope? = nil
    ) throws
        -> BundleDocument
    {
        var document = BundleDocument()
        document.roots = try roots ?? [signed(root().envelope, by: [1, 2])]
        let bundle = try bundle ?? self.bundle()
        document.bundle = bundle
        document.timestamp = try timestamp ?? self.timestamp(for: bundle)
        return document
    }

    /// Begins with two of the keys 1, 2, 3.
    static func verifier(_ numbers: [UInt8] = [1, 2, 3], threshold: Int = 2) throws -> BundleVerifier {
        BundleVerifier(keys: try numbers.map { try key($0).publicKey }, threshold: threshold)
    }

    static func verify(
        _ document: BundleDocument, after known: BundleState? = nil, at now: Int64 = now
    ) throws -> VerifiedBundle {
        try verifier().verify(document.bytes(), after: known, at: now)
    }

    /// The reason for a refusal; nil: it is accepted.
    static func refusal(
        of document: BundleDocument, after known: BundleState? = nil, at now: Int64 = now
    ) throws -> BundleError? {
        do {
            _ = try verify(document, after: known, at: now)
            return nil
        } catch let error as BundleError {
            return error
        }
    }
}
