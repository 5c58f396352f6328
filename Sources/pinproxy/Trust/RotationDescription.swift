internal import Glibc
internal import Security
internal import TLS

/// One of the two authorities of a rotation, for people.
struct RotationDescription {
    let certificate: Certificate
    let paths: AuthorityFiles
    let store: SystemTrustStore

    var text: String {
        let isPrevious = (try? paths.previousCertificate(at: .min)) == certificate
        let step = isPrevious
            ? "signed before, and is trusted until pinproxy ca rotate --finish" : "doesn't sign before pinproxy ca rotate --activate"
        let isInstalled = access(store.path(for: certificate), F_OK) == 0
        return """

            \(isPrevious ? "previous" : "next"): \(certificate.subject)
              \(step)
              valid \(CalendarDate(certificate.notBefore)) to \(CalendarDate(certificate.notAfter)), SHA-256 \(certificate.sha256.hex)
              system trust: \(isInstalled ? "installed" : "not installed (sudo pinproxy ca install)")

            """
    }
}
