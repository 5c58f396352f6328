import HTTPWire
import Serialization

/// What an exchange keeps so that it can ask again in other words, where rules may want that: for redirects that are
/// followed and challenges that are answered.
final class Itinerary {
    /// Where a redirect led.
    private(set) var hops: [TaskRecord.Hop] = []
    /// As it goes to ``url``, without what rules change in it.
    private(set) var request: OwnedRequest
    private(set) var url: RequestURL
    /// The client's credentials and cookies were left behind, and what the place says of itself isn't said of the one
    /// that the client asked.
    private(set) var hasLeftOrigin = false
    /// The request goes with the body that the client sends.
    private(set) var keepsBody = true
    /// The next request is another than the last.
    var isDue = false
    /// What answers the challenges of ``url``.
    var answer: ChallengeAnswer?
    /// What the one who asked said, where no rule has credentials for the origin of ``url``.
    var credentials: Credentials?
    var hasAskedForCredentials = false
    /// How redirects are taken, by the rules for what the client asked for.
    let redirects: SessionRules.Redirects
    let redirectLimit: Int
    let showsLocation: Bool

    init(_ request: borrowing RequestView, to destination: Destination, by rules: SessionRules) {
        let target =
            switch request.head.targetForm {
            case .absolute(let parts): parts.pathAndQuery
            case .origin, .authority, .asterisk: request.head.target
            }
        url = RequestURL(
            isSecure: destination.isSecure, authority: destination.authority,
            target: request.bytes.extracting(target.offsets).withUnsafeBufferPointer { Array($0) })
        self.request = OwnedRequest(request)
        redirects = rules.redirects
        redirectLimit = rules.maxRedirects
        showsLocation = rules.locationField
    }

    var method: Method { request.head.method }
    /// As it is written.
    var methodName: [UInt8] { Array(request.message[request.head.methodRange.offsets]) }
    /// The client answers challenges itself.
    var carriesCredentials: Bool { request.head.first(.authorization) != nil }

    /// Goes on to another place.
    func move(to url: RequestURL, with request: OwnedRequest, keepsBody: Bool, status: Int) {
        if url.origin != self.url.origin {
            hasLeftOrigin = true
            credentials = nil
            hasAskedForCredentials = false
        }
        self.url = url
        self.request = request
        self.keepsBody = self.keepsBody && keepsBody
        answer = nil
        isDue = true
        hops.append(TaskRecord.Hop(status: status, url: ShownText("\(url)")))
    }

    /// Asks at the same place again.
    func goBack(with answer: ChallengeAnswer) {
        self.answer = answer
        isDue = true
    }

    /// What the client is told besides what the last place said, and what it isn't.
    ///
    /// What a server says of its own origin would count for the one that the client asked: a cookie, for one, would be
    /// sent there.
    var responseEdits: HeadEdits {
        var edits = HeadEdits()
        guard !hops.isEmpty else { return edits }
        if hasLeftOrigin { for name in Self.ofTheOrigin { edits.append(.remove, name) } }
        if showsLocation { edits.append(.set("\(url)"), Self.locationField) }
        return edits
    }

    /// Where what the client gets comes from, if redirects were followed to it.
    static let locationField = "Pinproxy-Location"

    private static let ofTheOrigin = [
        "Set-Cookie", "Set-Cookie2", "Strict-Transport-Security", "Public-Key-Pins", "Public-Key-Pins-Report-Only",
        "Expect-CT", "Alt-Svc", "Clear-Site-Data", "NEL", "Report-To", "Reporting-Endpoints", "Origin-Agent-Cluster",
        "Service-Worker-Allowed", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
    ]
}
