package import PinproxyHTTPWire
package import PinproxySerialization
import PinproxyTLS

/// A Digest challenge that can be answered (RFC 7616 section 3.3).
package struct DigestChallenge: Sendable, Hashable {
    /// Bytes of parameters kept.
    static let longest = 4096

    package let realm: [UInt8]
    package private(set) var nonce: [UInt8]
    package let opaque: [UInt8]?
    let digest: MessageDigest
    /// `-sess`: the first nonces of client and server enter the secret.
    let isSession: Bool
    /// The algorithm as written, if any.
    let algorithm: [UInt8]?
    /// Qop `auth` was offered; without it the answer is RFC 2069's.
    let hasQuality: Bool
    let isStale: Bool
    let hashesUser: Bool
    let isUTF8: Bool
    /// URIs of the protection space; nil: the whole origin.
    let domain: [UInt8]?

    /// Nil for another scheme, an unknown algorithm, or integrity of the body alone.
    package init?(_ challenge: Challenge) {
        let parameters = challenge.parameters
        guard challenge.scheme == "digest", challenge.token68 == nil, parameters.length <= Self.longest,
            let nonce = parameters["nonce"], !nonce.isEmpty
        else { return nil }
        func words(_ name: String) -> [String]? {
            parameters[name].map { value in
                String(decoding: value, as: UTF8.self).lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
                    .map(String.init)
            }
        }
        algorithm = parameters["algorithm"]
        let name = algorithm.map { String(decoding: $0, as: UTF8.self).uppercased() } ?? MessageDigest.md5.rawValue
        isSession = name.hasSuffix("-SESS")
        let digestName = isSession ? String(name.dropLast(5)) : name
        guard let digest = MessageDigest(rawValue: digestName), digest.isAvailable else { return nil }
        self.digest = digest
        let qualities = words("qop")
        hasQuality = qualities?.contains("auth") == true
        // A session's secret needs the client's nonce, which is sent with a qop only.
        guard hasQuality || qualities == nil && !isSession else { return nil }
        realm = parameters["realm"] ?? []
        self.nonce = nonce
        opaque = parameters["opaque"]
        isStale = words("stale") == ["true"]
        hashesUser = words("userhash") == ["true"]
        isUTF8 = words("charset") == ["utf-8"]
        domain = parameters["domain"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The nonces of the first answer, which stay in the secret of `-sess` (RFC 7616 section 3.4.2).
    package struct Session: Sendable, Hashable {
        let nonce: [UInt8]
        let clientNonce: [UInt8]

        package init(nonce: [UInt8], clientNonce: [UInt8]) {
            self.nonce = nonce
            self.clientNonce = clientNonce
        }
    }

    /// This challenge with the nonce that the server wants next (RFC 7616 section 3.5).
    func with(nonce: [UInt8]) -> DigestChallenge {
        var other = self
        other.nonce = nonce
        return other
    }

    /// The same nonce would give the same proof.
    func isSameTry(as other: DigestChallenge) -> Bool { nonce == other.nonce && realm == other.realm }

    /// The value of Authorization (RFC 7616 section 3.4).
    /// - Parameter count: uses of the nonce, this one included.
    package func authorization(
        _ credentials: Credentials, method: [UInt8], target: [UInt8], count: UInt32, clientNonce: [UInt8],
        session: Session
    ) -> [UInt8]? {
        func hash(_ parts: [UInt8]...) -> [UInt8]? { digest.hex(of: Array(parts.joined(separator: ":".utf8))) }
        let user = Array(credentials.user.utf8)
        guard var secret = hash(user, realm, Array(credentials.password.text.utf8)), let request = hash(method, target)
        else { return nil }
        if isSession {
            guard let ofSession = hash(secret, session.nonce, session.clientNonce) else { return nil }
            secret = ofSession
        }
        let hexadecimal = String(count, radix: 16)
        let written = Array((String(repeating: "0", count: 8 - hexadecimal.count) + hexadecimal).utf8)
        let response =
            hasQuality
            ? hash(secret, nonce, written, clientNonce, Array("auth".utf8), request) : hash(secret, nonce, request)
        guard let response else { return nil }

        var fields = DigestFields()
        if hashesUser {
            guard let hashed = hash(user, realm) else { return nil }
            fields.quoted("username", hashed)
        } else if isUTF8, user.contains(where: { $0 >= 0x80 }) {
            fields.extended("username", user)
        } else {
            fields.quoted("username", user)
        }
        fields.quoted("realm", realm)
        fields.quoted("nonce", nonce)
        fields.quoted("uri", target)
        if let algorithm { fields.plain("algorithm", algorithm) }
        fields.quoted("response", response)
        if hasQuality {
            fields.plain("qop", Array("auth".utf8))
            fields.plain("nc", written)
            fields.quoted("cnonce", clientNonce)
        }
        if let opaque { fields.quoted("opaque", opaque) }
        if hashesUser { fields.plain("userhash", Array("true".utf8)) }
        return fields.text
    }
}

private struct DigestFields {
    private(set) var text = Array("Digest ".utf8)
    private var isFirst = true

    mutating func plain(_ name: String, _ value: [UInt8]) {
        begin(name)
        text += value
    }

    mutating func quoted(_ name: String, _ value: [UInt8]) {
        begin(name)
        text.append(UInt8(ascii: "\""))
        for byte in value {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(UInt8(ascii: "\\")) }
            text.append(byte)
        }
        text.append(UInt8(ascii: "\""))
    }

    /// `name*=UTF-8''…` (RFC 8187 section 3.2).
    mutating func extended(_ name: String, _ value: [UInt8]) {
        begin("\(name)*")
        text += "UTF-8''".utf8
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in value {
            let character = Unicode.Scalar(byte)
            let isPlain = character.properties.isAlphabetic || 0x30...0x39 ~= byte || "-._~".utf8.contains(byte)
            if character.isASCII, isPlain {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }

    private mutating func begin(_ name: String) {
        if !isFirst { text += ", ".utf8 }
        isFirst = false
        text += name.utf8
        text.append(UInt8(ascii: "="))
    }
}
