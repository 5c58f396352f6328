import PinproxySecurity
public import PinproxySerialization
import PinproxyTLS

/// A certificate with its private key, for servers that ask for one (mutual TLS). A session reads the files when it is
/// made. A private key, or a PKCS #12 file, must be closed to other users (mode 600).
public struct ClientCertificate: Sendable, Hashable {
    private enum Source: Hashable {
        case pem(certificate: String, privateKey: String)
        case pkcs12(String, password: Secret?)
    }
    private let source: Source

    /// A certificate in PEM files.
    /// - Parameters:
    ///   - certificate: a file with the certificate, and the issuers after it.
    ///   - privateKey: a file with its key.
    public static func pem(certificate: String, privateKey: String) -> ClientCertificate {
        ClientCertificate(source: .pem(certificate: certificate, privateKey: privateKey))
    }

    /// A PKCS #12 file, with certificate, issuers and key.
    public static func pkcs12(_ file: String, password: Secret? = nil) -> ClientCertificate {
        ClientCertificate(source: .pkcs12(file, password: password))
    }

    /// - Throws: ``SessionError/configuration(_:)``, with the file.
    func load() throws(SessionError) -> Identity {
        switch source {
        case .pem(let certificate, let privateKey):
            let chain = try Self.reading(certificate) { try Certificate.all(inPEM: SmallFile.read(certificate).bytes) }
            let key = try Self.reading(privateKey) { try PrivateKey(pem: PrivateFile.read(privateKey)) }
            return try Self.reading(privateKey) { try Identity(chain: chain, key: key) }
        case .pkcs12(let file, let password):
            return try Self.reading(file) { try Identity(pkcs12: PrivateFile.read(file), password: password?.text) }
        }
    }

    private static func reading<Value>(_ path: String, _ read: () throws -> Value) throws(SessionError) -> Value {
        do {
            return try read()
        } catch {
            throw .configuration("clientCertificate: \(path): \(error)")
        }
    }
}
