internal import PinproxySerialization
package import PinproxyTLS

/// An Ed25519 public key, written `ed25519:` and 44 characters of base64.
package struct BundleKey: Sendable, Hashable {
    static let prefix = "ed25519:"

    package let text: String
    /// The `keyid` of its signatures: SHA-256 of the 32 bytes, in hexadecimal.
    package let id: String
    let bytes: [UInt8]

    package init(_ text: String) throws(BundleKeyError) {
        guard text.hasPrefix(Self.prefix) else { throw .form(text) }
        guard let bytes = Base64.decode(text.utf8.dropFirst(Self.prefix.utf8.count)) else { throw .form(text) }
        try self.init(bytes)
    }

    package init(_ key: PublicKey) throws(BundleKeyError) {
        guard let bytes = key.ed25519 else { throw .kind(key.keyDescription) }
        try self.init(bytes)
    }

    private init(_ bytes: [UInt8]) throws(BundleKeyError) {
        guard bytes.count == 32 else { throw .length(bytes.count) }
        self.bytes = bytes
        text = Self.prefix + Base64.encode(bytes)
        id = SHA256Digest.of(bytes).hex
    }
}

/// An Ed25519 private key, to sign with.
package struct SigningKey: Sendable {
    package let publicKey: BundleKey
    private let key: PrivateKey

    /// - Parameter pem: PKCS#8, not encrypted.
    package init(pem: [UInt8]) throws(BundleKeyError) {
        do throws(KeyError) { key = try PrivateKey(pem: pem) } catch { throw .unreadable("\(error)") }
        publicKey = try BundleKey(key.publicKey)
    }

    func sign(_ message: [UInt8]) throws(BundleKeyError) -> [UInt8] {
        do throws(KeyError) { return try key.sign(message) } catch { throw .unreadable("\(error)") }
    }
}

package enum BundleKeyError: Error, Equatable, CustomStringConvertible {
    /// Not `ed25519:` and base64.
    case form(String)
    /// In bytes.
    case length(Int)
    /// Of another algorithm.
    case kind(String)
    case unreadable(String)

    package var description: String {
        switch self {
        case .form(let text):
            "\"\(ShownBytes.text(Array(text.utf8).span))\" is not a key; write ed25519: and the base64 of its 32 bytes"
        case .length(let count): "the key has \(count) bytes; an Ed25519 key has 32"
        case .kind(let kind):
            "it is a key of \(kind); bundles are signed with Ed25519 (openssl genpkey -algorithm ed25519)"
        case .unreadable(let reason): reason
        }
    }
}
