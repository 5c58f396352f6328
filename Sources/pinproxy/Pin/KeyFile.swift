internal import PinproxySecurity
internal import PinproxyTLS

/// A file to make a pin from: certificates, a public key, the public half of a private one, or a signing request.
enum KeyFile {
    /// At least one, in the file's order; not verified.
    case certificates([Certificate])
    case publicKey(PublicKey)
    /// The public half of a private key, and whether other users can read the file.
    case privateKey(PublicKey, isOpen: Bool)
    /// Signed by the key that it is for.
    case request(CertificateRequest)

    static func read(_ path: String) throws -> KeyFile {
        let file: SmallFile
        do { file = try SmallFile.read(path) } catch { throw CommandFailure("\(path): \(error)") }
        guard file.bytes.contains(where: { $0 > 0x20 }) else { throw CommandFailure("\(path): the file is empty") }
        do {
            let labels = PEM.labels(in: file.bytes)
            return labels.isEmpty ? try der(file) : try pem(file, labels)
        } catch let error as CommandFailure {
            throw error
        } catch {
            throw CommandFailure("\(path): \(error)")
        }
    }

    private static func pem(_ file: SmallFile, _ labels: [String]) throws -> KeyFile {
        // Servers often keep the key beside the certificates: they say more than the key does.
        if labels.contains(where: { $0.hasSuffix("CERTIFICATE") }) {
            return .certificates(try Certificate.all(inPEM: file.bytes))
        }
        if labels.contains(where: { $0.hasSuffix("PRIVATE KEY") }) {
            return .privateKey(try PrivateKey(pem: file.bytes).publicKey, isOpen: file.isOpen)
        }
        if labels.contains("PUBLIC KEY") { return .publicKey(try PublicKey(pem: file.bytes)) }
        if labels.contains(where: { $0.hasSuffix("CERTIFICATE REQUEST") }) {
            return .request(try CertificateRequest(derOrPEM: file.bytes))
        }
        throw Unusable("it holds \(labels[0].printable); a pin is made from a certificate, a key or a signing request")
    }

    private static func der(_ file: SmallFile) throws -> KeyFile {
        do throws(CertificateError) { return .certificates([try Certificate(der: file.bytes)]) } catch {
            if case .costly = error { throw error }
        }
        if let key = try? PublicKey(der: file.bytes) { return .publicKey(key) }
        do throws(CertificateRequestError) {
            return .request(try CertificateRequest(derOrPEM: file.bytes))
        } catch {
            if case .badSignature = error { throw error }
        }
        do throws(KeyError) {
            return .privateKey(try PrivateKey(derOrPEM: file.bytes).publicKey, isOpen: file.isOpen)
        } catch {
            if case .encrypted = error { throw error }
        }
        throw Unusable("it is not a certificate, key or signing request in PEM or DER")
    }

    private struct Unusable: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }
}

extension SmallFile {
    fileprivate var isOpen: Bool { mode & 0o077 != 0 }
}
