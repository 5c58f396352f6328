internal import Glibc
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxyTLS

extension FileContents {
    /// The first line of a file that only its owner and ``Findings/services`` may read: a password or token.
    static func secret(_ path: String, of services: Set<UInt32>) -> Result<String, Reason> {
        self.private(path, of: services).flatMap(firstLine)
    }

    /// The first line of what was read, without its end.
    static func firstLine(_ bytes: [UInt8]) -> Result<String, Reason> {
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        guard let text = String(validating: line, as: UTF8.self), !text.utf8.contains(0) else {
            return .failure(Reason("its first line is not a password: it is not UTF-8"))
        }
        return .success(text)
    }
}

/// Reads secrets from the files that a section names, never from the section, which may be read and shared.
struct SecretReader {
    let section: Section
    /// The file that the section is in; paths are relative to it.
    let file: String

    /// `{user: NAME, password_file: FILE}`.
    /// - Parameter more: reads what else may be written there.
    func credentials(_ value: YAMLValue, _ key: String, and more: (Section) -> Void = { _ in }) -> Credentials? {
        let fields = section.element(key, value)
        more(fields)
        defer { fields.finish() }
        guard case .mapping = value.content else { return nil }
        let user = fields.required("user", of: value, key) { fields.scalar($0, "user", .text) }
        let password = fields.required("password_file", of: value, key) { secret($0, "password_file") }
        guard let user, let password else { return nil }
        do throws(InvalidValue) {
            return try Credentials(user: user, password: Secret(password))
        } catch {
            section.error(value, "\(key): \(error)")
            return nil
        }
    }

    /// The first line of the file that a value names; a placeholder if secrets aren't read.
    func secret(_ value: YAMLValue, _ key: String) -> String? {
        guard let written = section.scalar(value, key, .path) else { return nil }
        let path = section.path(written, at: value, key, .secret, relativeTo: file)
        guard section.findings.readsSecrets else { return "-" }
        switch FileContents.secret(path, of: section.findings.services) {
        case .success(let text): return text
        case .failure(let reason):
            section.error(value, ofFile: path, key, reason)
            return nil
        }
    }
}

extension Section {
    /// A named file can't be used. People write passwords where the name of a file belongs: it isn't repeated.
    func error(_ value: YAMLValue, ofFile path: String, _ key: String, _ reason: Reason) {
        if ["password_file", "token_file", "authorization_file"].contains(key), access(path, F_OK) != 0,
            ServiceCredential.absence(path, errno) == nil
        {
            let what = key == "password_file" ? "password" : "token"
            return error(
                value,
                "\(key): there is no such file; write the name of a file that contains the \(what), not the \(what)"
            )
        }
        error(value, "\(key): \(path): \(reason.text)")
    }

    /// The value of a key that must be there; nil with an error without it, at the section's own value.
    func required<Value>(_ key: String, of parent: YAMLValue, _ name: String, _ read: (YAMLValue) -> Value?) -> Value? {
        guard let value = value(key) else {
            error(parent, "\(name): \"\(key)\" is missing")
            return nil
        }
        return read(value)
    }
}

/// Reads a certificate with its issuers and its key, as two files that a section names.
struct IdentityReader {
    let section: Section
    /// The file that the section is in; paths are relative to it.
    let file: String
    /// The section itself, to be blamed for what is missing in it.
    let parent: YAMLValue
    let name: String
    /// Refuse a key that others may read.
    let isKeyPrivate: Bool

    /// nil, with an error, if something is missing or wrong.
    func identity() -> Identity? {
        let certificates = read("certificate", FileContents.small) { bytes in
            Result { () throws(CertificateError) in try Certificate.all(inPEM: bytes) }.mapError { Reason("\($0)") }
        }
        let key = read("private_key", isKeyPrivate ? privateContents : FileContents.small) { bytes in
            Result { () throws(KeyError) in try PrivateKey(pem: bytes) }.mapError { Reason("\($0)") }
        }
        guard let certificates, let key else { return nil }
        return made { () throws(IdentityError) in try Identity(chain: certificates, key: key) }
    }

    /// The contents of a file that no other user may read.
    func privateContents(_ path: String) -> Result<[UInt8], Reason> {
        FileContents.private(path, of: section.findings.services)
    }

    func made(_ make: () throws(IdentityError) -> Identity) -> Identity? {
        do {
            return try make()
        } catch {
            section.error(parent, "\(name): \(error)")
            return nil
        }
    }

    /// Reads the file that a required key names.
    func read<Value>(
        _ key: String, _ contents: (String) -> Result<[UInt8], Reason>, _ parse: ([UInt8]) -> Result<Value, Reason>
    ) -> Value? {
        guard let value = section.value(key) else {
            section.error(parent, "\(name): \"\(key)\" is missing")
            return nil
        }
        guard let written = section.scalar(value, key, .path) else { return nil }
        let path = section.path(written, at: value, key, .secret, relativeTo: file)
        switch contents(path).flatMap(parse) {
        case .success(let value): return value
        case .failure(let reason):
            section.error(value, ofFile: path, key, reason)
            return nil
        }
    }
}

extension FileContents {
    /// The contents of a file of certificates or keys.
    static func small(_ path: String) -> Result<[UInt8], Reason> { read(path, limit: 1 << 20) }

    /// Reads a file that no other user may read.
    static func `private`(_ path: String, of services: Set<UInt32>) -> Result<[UInt8], Reason> {
        Result { () throws(PrivateFileProblem) in try PrivateFile.read(path, of: services) }.mapError {
            Reason("\($0)")
        }
    }
}

extension PinEntryReader {
    /// The proxy's certificate for the host (`client_certificate`); nil without one, or if it is invalid.
    func clientIdentity(_ action: HostAction) -> Identity? {
        guard let value = section.nonNull("client_certificate") else { return nil }
        guard action == .intercept else {
            section.error(
                value,
                "client_certificate can't be shown with action: \(action.rawValue), where TLS is the client's own; "
                    + "write action: intercept")
            return nil
        }
        let fields = section.section("client_certificate")
        defer { fields.finish() }
        guard section.findings.readsSecrets else {
            for key in ["certificate", "private_key", "pkcs12", "password_file"] {
                guard let value = fields.value(key), let name = fields.scalar(value, key, .path) else { continue }
                _ = fields.path(name, at: value, key, .secret, relativeTo: file)
            }
            return nil
        }
        let reader = IdentityReader(
            section: fields, file: file, parent: value, name: "client_certificate", isKeyPrivate: true)
        return fields.value("pkcs12") == nil ? reader.identity() : pkcs12(fields, reader)
    }

    /// One file with certificate, issuers and key, and perhaps one with its password.
    private func pkcs12(_ fields: Section, _ reader: IdentityReader) -> Identity? {
        for key in ["certificate", "private_key"] {
            guard let value = fields.value(key) else { continue }
            section.error(value, "\(key) can't be combined with pkcs12, which holds certificate and key")
        }
        var password: String?
        if fields.value("password_file") != nil {
            guard let read = reader.read("password_file", reader.privateContents, FileContents.firstLine) else {
                return nil
            }
            password = read
        }
        let bytes = reader.read("pkcs12", reader.privateContents) { .success($0) }
        return bytes.flatMap { bytes in
            reader.made { () throws(IdentityError) in try Identity(pkcs12: bytes, password: password) }
        }
    }
}
