internal import PinproxySecurity

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

    /// The name as written in the configuration.
    package let name: String
    /// The file's path.
    package let path: String
    package let purpose: Purpose
    /// The key that names it, e.g. `crl_files`.
    package let key: String
    package let place: Place

    /// Its path in a bundle, relative to the pin file's directory; nil: it isn't below that.
    /// - Parameter main: the pin file. What is in its directory of further ones is in `pins.d` there.
    package func bundlePath(beside main: String) -> String? {
        guard let top = Self.parts(FileListing.split(main).directory), let parts = Self.parts(path),
            parts.starts(with: top), parts.count > top.count, path.hasPrefix("/") == main.hasPrefix("/")
        else { return nil }
        var below = Array(parts.dropFirst(top.count))
        if below.count > 1, below[0] == FileListing.split(FurtherPinFiles.directory(of: main)).name {
            below[0] = "pins.d"
        }
        return below.joined(separator: "/")
    }

    /// Nil: a part leads upwards.
    private static func parts(_ path: String) -> [Substring]? {
        let parts = path.split(separator: "/").filter { $0 != "." }
        return parts.contains("..") ? nil : parts
    }

    /// Each machine has its own; a bundle only names it.
    package var isOfMachine: Bool {
        key == "crl_files" && (name.hasPrefix("/") || name.hasPrefix(ServiceCredential.prefix))
    }

    /// Why a bundle can't have an entry that names it, in human-readable form; nil if it can.
    /// - Parameter main: the pin file.
    package func objectionToCarrying(beside main: String) -> String? {
        switch purpose {
        case .secret:
            "a secret or private key, which a bundle never carries; move the entry to the pin file of the machine that "
                + "has it"
        case .content: "the contents of a request, which a bundle doesn't carry"
        case .policy where key == "crl_files":
            isOfMachine
                ? nil
                : "a revocation list, which changes often and by other hands; name a file of the machines, as in "
                    + "/etc/pinproxy/issuer.crl"
        case .policy where name.hasPrefix("/"):
            "an absolute path; a bundle takes files below the directory of the pin file"
        case .policy where name.hasPrefix(ServiceCredential.prefix):
            "a credential of a service; a bundle takes files below the directory of the pin file"
        case .policy where name.split(separator: "/").contains(".."):
            "a path with \"..\"; a bundle takes files below the directory of the pin file"
        case .policy where bundlePath(beside: main) == nil:
            "not below the directory of the pin file, from which a bundle takes its files"
        case .policy: nil
        }
    }
}

extension Section {
    /// The path of a file that a value names, relative to `file`; noted in the findings.
    func path(
        _ name: String, at value: YAMLValue, _ key: String, _ purpose: NamedFile.Purpose, relativeTo file: String
    ) -> String {
        let path = FileContents.resolve(name, relativeTo: file)
        findings.note(NamedFile(name: name, path: path, purpose: purpose, key: key, place: place(of: value)))
        return path
    }
}
