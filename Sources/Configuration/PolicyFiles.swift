package import PinproxyBundles
package import PinproxySecurity
internal import PinproxyTLS

/// A pin file with the files that it names, read without a pinproxy.yaml: the contents of a bundle.
package struct PolicyFiles: Sendable {
    package let hosts: HostTable<HostEntry>
    /// The action for hosts without an entry.
    package let defaultAction: HostAction
    /// The policy for hosts without an entry.
    package let defaultPolicy: SecurityPolicy
    /// The rules of exchanges with them; nil: nothing is written about it.
    package let defaultRules: RuleLayers?
    /// In the order of reading; a file may be named more than once.
    package let named: [NamedFile]
    package let warnings: [Problem]

    /// Reads a pin file as `run` would. Secrets and revocation lists that it names are noted, and not read: machines
    /// have their own.
    /// - Throws: every problem that was found, if at least one is an error.
    package static func load(_ file: String) throws(ConfigurationProblems) -> PolicyFiles {
        let findings = Findings(readsSecrets: false, readsRevocationLists: false)
        return try PolicyFiles(PinFile.read((Place(file: file), file), findings: findings), findings)
    }

    /// Reads the files of a bundle as a machine does.
    package static func load(_ files: [BundleFile]) throws(ConfigurationProblems) -> PolicyFiles {
        let findings = Findings(readsSecrets: false, readsRevocationLists: false)
        let draft = BundleInForce(draft: files)
        do throws(FileProblem) { try findings.sources.add(draft) } catch {
            findings.error(Place(file: BundleInForce.pinFile), "can't be read: \(error)")
        }
        return try PolicyFiles(PinFile.read(nil, beside: draft, findings: findings), findings)
    }

    private init(_ pins: PinFile?, _ findings: Findings) throws(ConfigurationProblems) {
        guard let pins, !findings.hasErrors else { throw ConfigurationProblems(findings.sorted) }
        hosts = pins.hosts
        defaultAction = pins.defaults.action
        defaultPolicy = SecurityPolicy(requirements: pins.defaults.requirements)
        defaultRules = pins.defaults.rules
        named = findings.namedFiles
        warnings = findings.sorted
    }
}
