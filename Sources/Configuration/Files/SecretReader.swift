internal import Glibc
internal import Security
internal import Serialization

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

    /// The first line of the file that a value names.
    func secret(_ value: YAMLValue, _ key: String) -> String? {
        guard let written = section.scalar(value, key, .path) else { return nil }
        let path = FileContents.resolve(written, relativeTo: file)
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
        if key == "password_file" || key == "token_file", access(path, F_OK) != 0, ServiceCredential.absence(path, errno) == nil {
            let what = key == "token_file" ? "token" : "password"
            return error(value, "\(key): there is no such file; write the name of a file that holds the \(what), not the \(what)")
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
