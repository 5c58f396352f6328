package import PinproxyTLS

/// Why a text or a file is not a valid pin, for its author.
public struct PinError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Reason: Error, Sendable, Hashable {
        // Defects of the text.
        case empty
        /// No `sha256/` or other known form.
        case noAlgorithm
        /// A digest without `sha256/`.
        case noPrefix(SHA256Digest)
        case unknownAlgorithm(String)
        /// `SHA256/`, `sha-256/`, `sha256:`; nil: it isn't followed by a digest.
        case spelling(SHA256Digest?)
        /// A path where a pin belongs.
        case fileName
        case notBase64
        case base64URL
        case notPadded(SHA256Digest)
        case strayBits
        /// Base64 of this many bytes.
        case wrongLength(Int)
        /// Base64 of this many characters, a few more or less than 44.
        case characters(Int)
        /// Public-Key-Pins, with the readable ones of its pins.
        case headerPins([SHA256Digest])
        /// What `openssl dgst` prints; nil: not of SHA-256.
        case digestOutput(SHA256Digest?)
        /// The digest in hexadecimal.
        case hexadecimal(SHA256Digest)
        /// Meant as a certificate's fingerprint, but not 32 bytes of hexadecimal or base64.
        case notAFingerprint
        case record(TLSARecord.Problem)

        // Defects of the file.
        case unreadable(FileProblem)
        case emptyFile
        case privateKey
        case several(certificates: Int, keys: Int)
        case request
        /// PEM with another label.
        case otherPEM(String)
        case broken(String)

        // Either.
        /// `pinning: certificate` with a pin that is only a key.
        case keyInCertificateMode
        /// `pinning: public-key` with a certificate's fingerprint.
        case fingerprintInKeyMode(SHA256Digest)
        /// `pinning: public-key` with another pin of no key.
        case certificateInKeyMode
    }

    package let reason: Reason
    package let pin: String

    init(_ reason: Reason, in pin: String) {
        self.reason = reason
        self.pin = pin
    }

    /// The pin, what is wrong with it, and what to write instead.
    public var description: String {
        // Text pasted by mistake may be long, or secret.
        let shown = pin.count > 80 ? pin.prefix(60) + "…" : pin[...]
        return switch reason {
        case .empty: "the pin is empty; write it as sha256/<base64>"
        case .noAlgorithm:
            "“\(shown)” is not a valid pin; write it as sha256/<44 characters of base64>, or as file: NAME"
        case .noPrefix(let digest):
            "“\(shown)” has no algorithm; if it is the hash of a public key, write sha256/\(digest.base64)"
        case .unknownAlgorithm(let name): "“\(shown)”: pins by \(name) are not accepted; use sha256/"
        case .spelling(let digest?): "“\(shown)” isn't spelled as a pin; write sha256/\(digest.base64)"
        case .spelling(nil): "“\(shown)”: write sha256/ in front, in lower case"
        case .fileName: "“\(shown)” looks like a file; write file: \(shown)"
        case .notBase64: "“\(shown)” is not base64 after its sha256/"
        case .base64URL: "“\(shown)” is in the URL form of base64; write + for - and / for _"
        case .notPadded(let digest): "“\(shown)” is missing the final =; write sha256/\(digest.base64)"
        case .strayBits: "“\(shown)” is not base64 of 32 bytes: its last character before the = can't be right"
        case .wrongLength(let bytes):
            "“\(shown)” is the base64 of \(bytes) bytes; a SHA-256 has 32 (44 characters with the =)"
        case .characters(let count):
            "“\(shown)” is not the whole of a pin: a SHA-256 in base64 has 44 characters with the = at its end, and "
                + "this has \(count) (\(count < 44 ? "\(44 - count) missing" : "\(count - 44) too many")); copy it "
                + "again, as sha256/…"
        case .headerPins(let digests) where digests.isEmpty:
            """
            “\(shown)” is from a Public-Key-Pins header, and its value is not the base64 of 32 bytes; write sha256/<44 \
            characters of base64>
            """
        case .headerPins(let digests):
            "“\(shown)” is from a Public-Key-Pins header; write "
                + digests.map { "sha256/\($0.base64)" }.joined(separator: " and, on a line of its own, ")
        case .digestOutput(let digest?):
            "“\(shown)” is what a command printed; if it is the hash of a public key (openssl pkey -pubin -outform der "
                + "| openssl dgst -sha256), write sha256/\(digest.base64)"
        case .digestOutput(nil):
            "“\(shown)” is what openssl dgst printed, and not a SHA-256; run it with -sha256, on the public key in DER"
        case .hexadecimal(let digest):
            "“\(shown)” is in hexadecimal; if it is the hash of a public key (and not a certificate's "
                + "fingerprint), write sha256/\(digest.base64)"
        case .notAFingerprint:
            "“\(shown)” is not a SHA-256 fingerprint of a certificate: 32 bytes in hexadecimal, as `openssl x509 "
                + "-fingerprint -sha256` prints it"
        case .record(let problem): "“\(shown)”: \(problem)"
        case .unreadable(let problem): "\(shown): \(problem)"
        case .emptyFile: "\(shown) is empty"
        case .privateKey:
            "\(shown) contains a private key, which isn't needed here. Make a public key of it where it belongs "
                + "(openssl pkey -in KEY -pubout) and remove it from this machine"
        case .several(let certificates, let keys):
            "\(shown) holds \(Self.count(certificates, "certificate")) and \(Self.count(keys, "public key")), so it "
                + "is not clear which one is pinned; make a file for each"
        case .request:
            "\(shown) holds a certificate request; pin its key (openssl req -in \(shown) -noout -pubkey)"
        case .otherPEM(let label): "\(shown) holds a \(label), neither a certificate nor a public key"
        case .broken(let cause): "\(shown) holds neither a readable certificate nor a public key (\(cause))"
        case .keyInCertificateMode:
            "\(shown) pins a public key, but pinning is certificate; give the certificate as file: NAME, or "
                + "write pinning: public-key"
        case .fingerprintInKeyMode(let digest):
            "“\(shown)” is a certificate's fingerprint, which changes with each renewal, but pinning is public-key; "
                + "write the pin of its key, which pinproxy pin HOST prints (or sha256/\(digest.base64), if this is "
                + "the hash of the key), or write pinning: certificate"
        case .certificateInKeyMode:
            "“\(shown)” pins a whole certificate, but pinning is public-key; pin its key as sha256/…, or write "
                + "pinning: certificate"
        }
    }

    private static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
}
