package import PinproxyHTTPWire

package enum RedirectDefect: Error, Sendable, Hashable {
    /// `redirects: refuse`.
    case refused(to: String)
    case tooMany(limit: Int)
    case location(LocationDefect)
    case severalLocations
    /// From https to http.
    case insecure(to: String)
    /// The body would have to be sent again, but was too long to be kept, or comes from files.
    case bodyNotKept(limit: Int)
    /// The policy refuses the target; why.
    case denied(to: String, String)
    /// The target can't be requested; why.
    case unusable(to: String, String)

    package var description: String {
        switch self {
        case .refused(let url): "it redirects to \(url), and the rules refuse redirects (session.redirects: refuse)"
        case .tooMany(let limit): "more than \(limit) redirects, one after another (session.max_redirects)"
        case .location(let defect): "\(defect)"
        case .severalLocations: "the redirect has more than one Location field"
        case .insecure(let url): "it redirects from https to \(url), where nothing is encrypted"
        case .bodyNotKept(let limit):
            "the redirect requires the body to be sent again, which was longer than \(limit) bytes "
                + "(limits.replay_body), came from files, or had no room (limits.bodies)"
        case .denied(let url, let why), .unusable(let url, let why): "it redirects to \(url): \(why)"
        }
    }
}
