internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

/// The settings of hosts without an entry, and of keys that an entry leaves out.
struct PinDefaults {
    var action = HostAction.intercept
    var requirements = TrustRequirements()
    var reportURI: ServiceURL?
    /// The rules of hosts that write none themselves.
    var rules: RuleLayers?

    init() {}

    /// Reads `defaults`. Pins are of one host each, so they are nothing for it.
    init(_ section: Section, file: String) {
        action = section.read("action", .anyCase) ?? .intercept
        requirements = RequirementsReader(section: section, file: file, inherited: TrustRequirements()).read()
        reportURI = section.readOptional("report_uri", .collector)
        rules = RuleBlockReader(section: section, file: file, owner: .defaults).layers(over: nil)
        section.finish()
    }
}

/// Makes one ``ClientTLS`` for all entries that agree in what it is made of.
final class ClientTLSFactory {
    private var made: [[UInt8]: ClientTLS] = [:]

    /// nil if OpenSSL can't; the reason is an error at the place.
    func settings(
        _ requirements: TrustRequirements, identity: Identity?, failed: (String) -> Void
    ) -> ClientTLS? {
        let digest = ClientTLS.digest(requirements: requirements, identity: identity).bytes
        if let known = made[digest] { return known }
        do {
            let fresh = try ClientTLS(requirements: requirements, identity: identity)
            made[digest] = fresh
            return fresh
        } catch {
            failed("TLS can't be set up: \(error)")
            return nil
        }
    }
}

/// Reads what a server must also satisfy besides its pins, from an entry or from the defaults.
struct RequirementsReader {
    let section: Section
    /// The file that the section is in; paths are relative to it.
    let file: String
    let inherited: TrustRequirements

    static let keys = ["min_tls", "ocsp", "crl_files", "ct_log_list", "max_leaf_lifetime"]

    func read() -> TrustRequirements {
        var requirements = inherited
        if let version = section.read("min_tls", .minimumTLS) { requirements.minimumTLS = version }
        if let stapling: OCSPStapling = section.read("ocsp", .anyCase) { requirements.stapling = stapling }
        if let paths = section.list("crl_files") { requirements.revocationLists = revocationLists(paths) }
        if let value = section.value("ct_log_list") {
            requirements.transparencyLogs = value.isNull ? nil : transparencyLogs(value)
        }
        if let value = section.value("max_leaf_lifetime") {
            requirements.maximumLeafLifetime =
                value.isNull
                ? nil
                : section.scalar(value, "max_leaf_lifetime", .duration(.days(1)...(.days(36_500))))?.components.seconds
        }
        return requirements
    }

    private func revocationLists(_ values: [YAMLValue]) -> RevocationLists? {
        let paths = values.compactMap { value in
            section.scalar(value, "crl_files", .path).map {
                section.path($0, at: value, "crl_files", .policy, relativeTo: file)
            }
        }
        guard !paths.isEmpty, let first = values.first else { return nil }
        // They change often, and by other hands than the policy.
        if let path = paths.first(where: { $0.hasPrefix(BundleInForce.prefix) }) {
            section.error(
                first,
                "crl_files: \(path): revocation lists aren't part of a bundle; name a file of the machine, as in "
                    + "/etc/pinproxy/issuer.crl")
            return nil
        }
        guard section.findings.readsRevocationLists else { return RevocationLists.unread(paths) }
        do {
            return try RevocationLists.load(paths)
        } catch {
            section.error(first, "crl_files: \(error)")
            return nil
        }
    }

    private func transparencyLogs(_ value: YAMLValue) -> TransparencyLogs? {
        guard let name = section.scalar(value, "ct_log_list", .path) else { return nil }
        let path = section.path(name, at: value, "ct_log_list", .policy, relativeTo: file)
        do {
            return try TransparencyLogs.load(section.findings.sources.source(path))
        } catch {
            section.error(value, "ct_log_list: \(error)")
            return nil
        }
    }
}

extension Form where Value == TLSVersion {
    fileprivate static var minimumTLS: Form {
        Form { text in
            switch text {
            case "1.2": .success(.tls12)
            case "1.3": .success(.tls13)
            case "1.0", "1.1": .failure(Reason("TLS \(text) is not supported; write 1.2 or 1.3"))
            default: .failure(Reason("\"\(text)\" is not a TLS version; write 1.2 or 1.3"))
            }
        }
    }
}

/// Values that entries of one pin file share, made once.
final class SharedParts {
    let patterns: HostPatterns
    let tls: ClientTLSFactory
    private var policyTerms = SharedValues<PolicyTerms>()
    private var entryTerms = SharedValues<EntryTerms>()

    init(patterns: HostPatterns, tls: ClientTLSFactory) {
        self.patterns = patterns
        self.tls = tls
    }

    func entry(_ number: Int, at place: YAMLValue, policy: SecurityPolicy, _ terms: EntryTerms) -> HostEntry {
        HostEntry(
            policy: policy.sharing(&policyTerms), terms: entryTerms.shared(terms), number: number, line: place.line,
            column: place.column)
    }
}
