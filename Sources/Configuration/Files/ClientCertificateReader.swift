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
        return IdentityReader(
            section: fields, file: file, parent: value, name: "client_certificate", isKeyPrivate: true
        ).identity()
    }
}
