internal import Security
internal import TLS

extension PinEntryReader {
    /// What the proxy proves itself with to the host (`client_certificate`); nil without, or if it is wrong.
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
            guard let read = reader.read("password_file", reader.privateContents, FileContents.firstLine) else { return nil }
            password = read
        }
        let bytes = reader.read("pkcs12", reader.privateContents) { .success($0) }
        return bytes.flatMap { bytes in
            reader.made { () throws(IdentityError) in try Identity(pkcs12: bytes, password: password) }
        }
    }
}
