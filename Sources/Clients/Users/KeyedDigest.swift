import TLS

/// Digests of secrets under a random key that this process alone has.
///
/// Keyed and nested like HMAC: who doesn't know the key can't aim at a set of digests, so that the time in which one is
/// looked up tells nothing of the secrets, nor get a secret from one.
struct KeyedDigest: Sendable {
    private let key: [UInt8]

    init() {
        var random = SystemRandomNumberGenerator()
        key = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    func of(_ secret: [UInt8]) -> SHA256Digest {
        SHA256Digest.of(key + SHA256Digest.of(key + secret).bytes)
    }
}
