internal import Security
internal import TLS

/// Reads what a server must also satisfy besides its pins, from an entry or from the defaults.
struct RequirementsReader {
    let section: Section
    /// The file that the section is in; paths are relative to it.
    let file: String
    /// What holds where nothing is written.
    let inherited: TrustRequirements

    static let keys = ["min_tls", "ocsp", "crl_files", "ct_log_list", "max_leaf_lifetime"]

    func read() -> TrustRequirements {
        var requirements = inherited
        if let version = section.read("min_tls", .minimumTLS) { requirements.minimumTLS = version }
        if let stapling = section.read("ocsp", .word(OCSPStapling.allCases.map { ($0.rawValue, $0) })) {
            requirements.stapling = stapling
        }
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
            section.scalar(value, "crl_files", .path).map { FileContents.resolve($0, relativeTo: file) }
        }
        guard !paths.isEmpty, let first = values.first else { return nil }
        do {
            return try RevocationLists.load(paths)
        } catch {
            section.error(first, "crl_files: \(error)")
            return nil
        }
    }

    private func transparencyLogs(_ value: YAMLValue) -> TransparencyLogs? {
        guard let path = section.scalar(value, "ct_log_list", .path) else { return nil }
        do {
            return try TransparencyLogs.load(section.findings.sources.source(FileContents.resolve(path, relativeTo: file)))
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
            case "1.0", "1.1": .failure(Reason("TLS \(text) is never spoken; write 1.2 or 1.3"))
            default: .failure(Reason("\"\(text)\" is not a TLS version; write 1.2 or 1.3"))
            }
        }
    }
}
