package import PinproxyTLS

package enum StatusFailure: Error, Sendable, Hashable, CustomStringConvertible {
    case response(OCSPFailure)
    /// `ocsp: require`, but no response.
    case required
    /// "Must staple" (RFC 7633), but no response.
    case promised

    package var description: String {
        switch self {
        case .response(let failure): failure.description
        case .required: "the server staples no OCSP response, and ocsp is require"
        case .promised: "the server staples no OCSP response, and its certificate says that it must (must-staple)"
        }
    }
}

extension StatusFailure {
    var advice: String {
        switch self {
        case .response(.revoked):
            "Its authority has withdrawn it, perhaps because the key was stolen: the server's operator has to replace "
                + "it. Don't work around it."
        case .response:
            "The server's operator has to fix its OCSP stapling. If the rest of the chain is right, ocsp: ignore for "
                + "this host does without."
        case .required, .promised:
            "The server's operator has to turn OCSP stapling on. If that can't be, ocsp: ignore for this host does "
                + "without; revoked certificates are then accepted."
        }
    }
}
