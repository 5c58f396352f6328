/// A file that the configuration names, noted as it is read.
package struct NamedFile: Sendable, Hashable {
    package enum Purpose: Sendable, Hashable {
        /// It decides what is let through: a pinned certificate or key, a revocation list, a list of CT logs.
        case policy
        /// Only the proxy's own user may read it: a password, a token, a client certificate with its key.
        case secret
        /// The contents of a request.
        case content
    }

    /// As it is written.
    package let name: String
    /// Where it is.
    package let path: String
    package let purpose: Purpose
    /// The key that names it, e.g. `crl_files`.
    package let key: String
    package let place: Place
}

extension Section {
    /// The path of a file that a value names, relative to `file`; noted in the findings.
    func path(_ name: String, at value: YAMLValue, _ key: String, _ purpose: NamedFile.Purpose, relativeTo file: String)
        -> String
    {
        let path = FileContents.resolve(name, relativeTo: file)
        findings.note(NamedFile(name: name, path: path, purpose: purpose, key: key, place: place(of: value)))
        return path
    }
}
