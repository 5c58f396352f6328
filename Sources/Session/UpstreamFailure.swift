package import EventLoop
package import Security
package import TLS
package import Transport

/// Why no connection to an origin came to be. Nothing of the exchange was sent.
package enum UpstreamFailure: Error, Sendable {
    /// The steps that have a deadline of their own.
    package enum Step: String, Sendable {
        case nameLookup = "looking up the name"
        case connect = "connecting"
        case parent = "waiting for the parent proxy"
        case tls = "the TLS handshake"
    }

    case unresolved(ResolutionError)
    /// Every address of the host is of a class that may not be dialled.
    case blocked(IPAddress, AddressClass)
    case unreachable(DialError)
    case timedOut(Step)
    /// The parent proxy answered CONNECT with this status.
    case parentRefused(status: Int)
    case parentFailed(String)
    /// The handshake failed for another reason than the chain.
    case tls(StreamError)
    /// The origin asked for a client certificate, and ended the connection over what it got.
    case clientCertificate(ClientCertificateRefusal)
    /// The security policy refused the chain; the verdict says why.
    case refused(Verdict)
    /// Something of this machine failed, such as a lack of descriptors.
    case local(String)
}
