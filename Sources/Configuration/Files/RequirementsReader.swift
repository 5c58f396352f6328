internal import Security
internal import TLS

/// Reads what a server must stand up to besides its pins, from an entry or from the defaults.
struct RequirementsReader {
    let section: Section
    /// What holds where nothing is written.
    let inherited: TrustRequirements

    static let keys = ["min_tls", "ocsp", "max_leaf_lifetime"]

    func read() -> TrustRequirements {
        var requirements = inherited
        if let version = section.read("min_tls", .minimumTLS) { requirements.minimumTLS = version }
        if let stapling = section.read("ocsp", .word(OCSPStapling.allCases.map { ($0.rawValue, $0) })) {
            requirements.stapling = stapling
        }
        if let value = section.value("max_leaf_lifetime") {
            requirements.maximumLeafLifetime =
                value.isNull
                ? nil
                : section.scalar(value, "max_leaf_lifetime", .duration(.days(1)...(.days(36_500))))?.components.seconds
        }
        return requirements
    }
}

extension Form where Value == TLSVersion {
    fileprivate static var minimumTLS: Form {
        Form { text in
            switch text {
            case "1.2": .success(.tls12)
            case "1.3": .success(.tls13)
            case "1.0", "1.1": .failure(Reason("TLS \(text) is never spoken; write 1.2 or 1.3"))
            default: .failure(Reason("\"\(text)\" is no version of TLS; write 1.2 or 1.3"))
            }
        }
    }
}
