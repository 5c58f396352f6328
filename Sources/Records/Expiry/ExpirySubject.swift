/// What can end.
package enum ExpirySubject: String, Sendable, Equatable {
    /// `expires` of the entry.
    case entry
    /// The certificate that a pin is, or whose key it is.
    case pin
    /// What the proxy proves itself with in mutual TLS.
    case clientCertificate = "client certificate"
    /// A list of `crl_files`.
    case revocationList = "revocation list"
    /// The local authority's.
    case authority
    /// That of the authority which a rotation has made.
    case nextAuthority = "next authority"
    /// `admin.tls`.
    case adminCertificate = "admin certificate"
    /// `proxy.tls`.
    case proxyCertificate = "proxy certificate"

    /// Of what the proxy shows to its own clients: an ``OwnCertificate``.
    package var isOwn: Bool {
        switch self {
        case .entry, .pin, .clientCertificate, .revocationList: false
        case .authority, .nextAuthority, .adminCertificate, .proxyCertificate: true
        }
    }
}
