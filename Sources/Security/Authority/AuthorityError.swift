import Glibc
package import PinproxyTLS

package enum AuthorityError: Error, Sendable, CustomStringConvertible {
    case unreadable(path: String, FileProblem)
    case unwritable(path: String, FileProblem)
    /// The certificate exists without its key.
    case keyMissing(certificate: String, key: String)
    case exists(path: String)
    /// Users other than its owner can read or write the key's file.
    case exposedKey(path: String, mode: UInt32)
    case foreignKey(path: String, owner: UInt32)
    case brokenCertificate(path: String, CertificateError)
    case brokenKey(path: String, KeyError)
    case mismatch(certificate: String, key: String)
    /// Not an authority's certificate, or one that clients would refuse.
    case unfit(path: String, reason: String)
    case premature(path: String, UnixTime)
    case expired(UnixTime)
    case unusableName(String)
    case signing(KeyError)
    /// The key is a signer's (`authority.signer`), which issues each leaf.
    case signedElsewhere
    /// The signer has made no authority yet.
    case notMade(path: String)
    /// A signer is asked for a leaf of an authority that it doesn't have.
    case otherAuthority
    case notIntercepted(ServerName)
    /// Name constraints of the authority; in words.
    case constrained(String)
    /// A signer has issued enough leaves for now.
    case exhausted
    /// A step of a rotation that is impossible now; in words.
    case rotation(String)

    package var description: String {
        switch self {
        case .unreadable(let path, .system(EACCES)):
            "\(path): \(FileProblem.system(EACCES)): give it to the user that runs this (chown)"
        case .unreadable(let path, let problem): "\(path): \(problem)"
        case .unwritable(let path, let problem): "\(path) can't be written: \(problem)"
        case .keyMissing(let certificate, let key):
            "\(certificate) is there, but its key \(key) is not; restore the key from a copy, or remove "
                + "\(certificate) to have a new authority made (clients then have to trust the new one)"
        case .exists(let path): "\(path) exists already; remove it first if a new authority is wanted"
        case .exposedKey(let path, let mode):
            "\(path) is open to other users (mode \(String(mode & 0o777, radix: 8))); anyone who has read it can "
                + "impersonate any server to the clients that trust this authority. If nobody has: chmod 600 \(path). "
                + "Otherwise make a new authority"
        case .foreignKey(let path, let owner):
            "\(path) belongs to user \(owner), who is neither root nor the user that runs this; chown it"
        case .brokenCertificate(let path, let error): "\(path): \(error)"
        case .brokenKey(let path, let error): "\(path): \(error)"
        case .mismatch(let certificate, let key): "\(key) is not the key of \(certificate)"
        case .unfit(let path, let reason): "\(path) can't serve as the local authority: \(reason)"
        case .premature(let path, let time):
            "\(path) can't serve as the local authority: it is not valid before \(CalendarDate(time)); is this "
                + "machine's clock right?"
        case .expired(let time): "the local authority expired \(CalendarDate(time)); \(Self.renewal)"
        case .unusableName(let name): "no certificate can be issued for “\(name)”"
        case .signing(let error): "the local authority can't sign: \(error)"
        case .signedElsewhere: "the signer has issued no certificate for it"
        case .notMade(let path):
            "\(path): there is no authority yet. The signer makes it (systemctl start pinproxy-signer, or pinproxy "
                + "signer), and writes its certificate where authority.certificate says: the same file for both"
        case .otherAuthority:
            "the signer has another authority than the proxy; reload the one that was not reloaded after a rotation "
                + "(systemctl reload pinproxy-signer pinproxy)"
        case .notIntercepted(let name): "the signer's configuration doesn't intercept \(name)"
        case .constrained(let violation): "name constraints of the local authority: \(violation)"
        case .exhausted:
            "more than \(LeafAllowance.burst) certificates at once, or \(LeafAllowance.rate) a second, were asked for"
        case .rotation(let text): text
        }
    }

    /// Files or settings are wrong: another try fails until they change.
    package var isOfConfiguration: Bool {
        switch self {
        case .keyMissing, .exists, .exposedKey, .foreignKey, .brokenCertificate, .brokenKey, .mismatch, .unfit,
            .expired, .rotation:
            true
        case .unreadable(_, let problem):
            switch problem {
            case .system(let code): code == EACCES || code == EPERM
            case .noCredential, .untrusted, .notAFile, .tooLarge: true
            }
        case .unwritable(_, .untrusted): true
        // A disk gets room, and a clock is set.
        case .unwritable, .premature, .unusableName, .signing, .signedElsewhere, .notMade, .otherAuthority,
            .notIntercepted, .constrained, .exhausted:
            false
        }
    }

    /// Advice for an authority near its end.
    package static let renewal = "run pinproxy ca rotate and have clients trust the new one"
}
