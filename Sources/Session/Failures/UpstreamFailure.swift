package import EventLoop
package import Reachability
package import Security
package import TLS
package import Transport

/// Why a connection to an origin could not be made. Nothing of the exchange was sent.
package enum UpstreamFailure: Error, Sendable {
    package enum Step: String, Sendable {
        case nameLookup = "looking up the name"
        case connect = "connecting"
        case parent = "waiting for the parent proxy"
        case tls = "the TLS handshake"
    }

    case unresolved(ResolutionError)
    /// No address of the host may be dialled; the first of them, and why.
    case blocked(IPAddress, AddressGuard.Objection)
    /// A redirect from an internet address led to a host of unknown addresses, which a parent proxy looks up.
    case unknownAddress
    /// The way leads to one of this proxy's own listeners: by the host's addresses, or by the parent proxy's.
    case itself(SocketAddress, asParent: Bool)
    case unreachable(DialError)
    case timedOut(Step)
    case parentRefused(status: Int)
    case parentFailed(String)
    /// The handshake failed for another reason than the chain.
    case tls(StreamError)
    /// The origin asked for a client certificate, and ended the connection over what it got.
    case clientCertificate(ClientCertificateRefusal)
    /// The security policy refused the chain. Indirect, to keep failures smaller than a verdict.
    indirect case refused(Verdict)
    /// The system says that there is no way to the host.
    case noNetwork(UnreachableReason)
    /// A rule keeps the request off cellular links (`session.allow_wwan`), and it would go over this one.
    case cellularForbidden(link: String)
    /// The process has no file descriptor left.
    case noDescriptors
    /// Something else of this machine failed.
    case local(String)
}

extension UpstreamFailure {
    /// Why the origin's certificates were refused before the policy could judge them; nil if they weren't.
    package var unjudgedCertificates: TLSError? {
        if case .tls(.tls(let error)) = self, error.isOfCertificate { error } else { nil }
    }
}
