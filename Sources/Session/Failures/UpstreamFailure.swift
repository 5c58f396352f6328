package import PinproxyEventLoop
package import PinproxyReachability
package import PinproxySecurity
package import PinproxyTLS
package import PinproxyTransport

/// Why a connection to an origin failed. Nothing of the exchange was sent.
package enum UpstreamFailure: Error, Sendable {
    package enum Step: String, Sendable {
        case nameLookup = "looking up the name"
        case connect = "connecting"
        case parent = "waiting for the parent proxy"
        case tls = "the TLS handshake"
    }

    case unresolved(ResolutionError)
    /// All addresses of the host are blocked; the first, and why.
    case blocked(IPAddress, AddressGuard.Objection)
    /// A redirect from an internet address to a host that only a parent proxy resolves.
    case unknownAddress
    /// A listener of this proxy: at the host's address, or the parent proxy's.
    case itself(SocketAddress, asParent: Bool)
    case unreachable(DialError)
    case timedOut(Step)
    case parentRefused(status: Int)
    case parentFailed(String)
    /// The handshake failed, though not over the chain.
    case tls(StreamError, OriginContact?)
    /// The origin rejected the client certificate, or its absence.
    case clientCertificate(ClientCertificateRefusal)
    /// The security policy refused the chain. Indirect, to keep failures smaller than a verdict.
    indirect case refused(Verdict, OriginContact?)
    /// There is no route to the host.
    case noNetwork(UnreachableReason)
    /// A rule keeps the request off this cellular link (`session.allow_wwan`).
    case cellularForbidden(link: String)
    case noDescriptors
    /// The origin speaks none of the versions of HTTP that it may (`session.http`).
    case otherProtocol(offered: [HTTPProtocol])
    /// Another local failure.
    case local(String)
}

extension UpstreamFailure {
    /// Why the certificates were refused before the policy could judge them, if they were.
    package var unjudgedCertificates: TLSError? {
        if case .tls(.tls(let error), _) = self, error.isOfCertificate { error } else { nil }
    }
}
