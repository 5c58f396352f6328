internal import PinproxySerialization
internal import PinproxyTLS

/// A payload with its signatures (DSSE, https://github.com/secure-systems-lab/dsse/blob/v1.0.2/envelope.md).
///
/// What is signed is ``signed``, which contains the payload as it is: no JSON has to be brought into a canonical form,
/// and any program with Ed25519 can verify it. The type is signed too, so that what one role signed can't stand in the
/// place of another's.
package struct Envelope: Sendable, Equatable {
    package struct Signature: Sendable, Equatable {
        /// Says which key to try; not signed, so believed for nothing else.
        package let keyID: String
        package let bytes: [UInt8]
    }

    /// More than the keys of a role.
    package static let signaturesLimit = 64

    package let payloadType: String
    package let payload: [UInt8]
    package private(set) var signatures: [Signature] = []

    package init(_ role: BundleRole, payload: [UInt8]) {
        payloadType = Self.type(of: role)
        self.payload = payload
    }

    static func type(of role: BundleRole) -> String { "application/vnd.pinproxy.\(role.rawValue)+json" }

    init(_ value: ParameterValue, in part: String) throws(BundleError) {
        let fields = try Fields(value, in: part, keys: ["payloadType", "payload", "signatures"])
        payloadType = try fields.text("payloadType", longest: 100)
        payload = try fields.base64("payload")
        for (number, value) in try fields.list("signatures", most: Self.signaturesLimit).enumerated() {
            let signature = try Fields(value, in: "\(part).signatures[\(number)]", keys: ["keyid", "sig"])
            signatures.append(
                Signature(keyID: try signature.text("keyid", longest: 100), bytes: try signature.base64("sig")))
        }
    }

    var json: ParameterValue {
        [
            "payloadType": .string(payloadType), "payload": .string(Base64.encode(payload)),
            "signatures": .array(
                signatures.map { ["keyid": .string($0.keyID), "sig": .string(Base64.encode($0.bytes))] }),
        ]
    }

    /// The bytes that a signature is of: DSSE's pre-authentication encoding.
    package var signed: [UInt8] {
        Array("DSSEv1 \(payloadType.utf8.count) \(payloadType) \(payload.count) ".utf8) + payload
    }

    func require(_ role: BundleRole) throws(BundleError) {
        guard payloadType == Self.type(of: role) else { throw .payloadType(role, found: payloadType) }
    }

    /// The keys that have signed it, in order. The first of several signatures by a key counts.
    package func signers(among keys: [BundleKey]) -> [BundleKey] {
        let signed = signed
        return keys.filter { key in
            signatures.first { $0.keyID == key.id }.map { signature in
                PublicKey.verifies(signature.bytes, of: signed, ed25519: key.bytes)
            } ?? false
        }
    }

    /// Adds a signature, or replaces the one of the same key.
    package mutating func sign(with key: SigningKey) throws(BundleKeyError) {
        let signature = Signature(keyID: key.publicKey.id, bytes: try key.sign(signed))
        signatures.removeAll { $0.keyID == signature.keyID }
        signatures.append(signature)
    }
}

extension Envelope: Codable {
    private enum CodingKeys: String, CodingKey { case payloadType, payload, signatures }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        payloadType = try container.decode(String.self, forKey: .payloadType)
        guard let bytes = Base64.decode(try container.decode(String.self, forKey: .payload).utf8) else {
            throw DecodingError.dataCorruptedError(forKey: .payload, in: container, debugDescription: "not base64")
        }
        payload = bytes
        signatures = try container.decode([Signature].self, forKey: .signatures)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(payloadType, forKey: .payloadType)
        try container.encode(Base64.encode(payload), forKey: .payload)
        try container.encode(signatures, forKey: .signatures)
    }
}

extension Envelope.Signature: Codable {
    private enum CodingKeys: String, CodingKey {
        case keyID = "keyid"
        case bytes = "sig"
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        keyID = try container.decode(String.self, forKey: .keyID)
        guard let decoded = Base64.decode(try container.decode(String.self, forKey: .bytes).utf8) else {
            throw DecodingError.dataCorruptedError(forKey: .bytes, in: container, debugDescription: "not base64")
        }
        bytes = decoded
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(keyID, forKey: .keyID)
        try container.encode(Base64.encode(bytes), forKey: .bytes)
    }
}
