internal import Security
internal import Session
internal import TLS

/// What holds for hosts that have no entry, and for whatever an entry leaves unsaid.
struct PinDefaults {
    var action = HostAction.intercept
    var requirements = TrustRequirements()
    var reportURI: ReportURI?
    /// The rules of hosts that write none themselves.
    var rules: RuleLayers?

    init() {}

    /// Reads `defaults`. Pins are of one host each, so they are nothing for it.
    init(_ section: Section, file: String) {
        action = section.read("action", .action) ?? .intercept
        requirements = RequirementsReader(section: section, file: file, inherited: TrustRequirements()).read()
        reportURI = section.readOptional("report_uri", Form(read: ReportURI.parse))
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
