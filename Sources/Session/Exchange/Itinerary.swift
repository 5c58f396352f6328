import PinproxyHTTPWire
import PinproxySerialization

/// State for following redirects and answering challenges.
final class Itinerary {
    private(set) var hops: [TaskRecord.Hop] = []
    /// The request to ``url``, before the rules' edits.
    private(set) var request: OwnedRequest
    private(set) var url: RequestURL
    /// Another origin was asked. Fields meant for the first were dropped, and stay so if it is asked again.
    private(set) var hasLeftOrigin = false
    private let firstOrigin: RequestURL.Origin
    /// The client's body goes with the request.
    private(set) var keepsBody = true
    var isDue = false
    /// The next step that the response asks for, until it is decided.
    var next: Step?

    enum Step {
        case hop(Hop, to: RequestURL, with: OwnedRequest, keepsBody: Bool, status: Int)
        /// Requests the URL again, with an answer to its challenge.
        case answer(ChallengeAnswer)
    }
    /// The answer to the challenges of ``url``.
    var answer: ChallengeAnswer?
    /// The client's own credentials, where no rule has any for the origin of ``url``.
    var credentials: Credentials?
    var hasAskedForCredentials = false
    /// The response's location, relative to the client's request.
    var location: RequestURL?
    let redirects: SessionRules.Redirects
    let followTo: SessionRules.FollowTo
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
            target: request.bytes.extracting(target.offsets).array)
        self.request = OwnedRequest(request)
        firstOrigin = url.origin
        // Browsers, which separate origins, must see redirects. An upgrade is for one origin only.
        let isOwnMatter = request.isOfBrowser || request.head.wantsUpgrade
        redirects = isOwnMatter && rules.redirects == .follow ? .pass : rules.redirects
        followTo = rules.followTo
        redirectLimit = rules.maxRedirects
        showsLocation = rules.locationField
    }

    var method: Method { request.head.method }
    var methodName: [UInt8] { Array(request.message[request.head.methodRange.offsets]) }
    /// It is safe, and brings no body.
    var isQuestion: Bool { method.isSafe && (!keepsBody || request.head.bodyLength.isEmpty) }
    var carriesCredentials: Bool { request.head.first(.authorization) != nil }

    /// Whether the client may be redirected there: within its origin, or to one that the rules name.
    func mayLead(to url: RequestURL) -> Bool {
        url.origin == self.url.origin || url.origin == firstOrigin || followTo.includes(url.authority)
    }

    /// A program asks for itself, and a hook decides each redirect. Clients of the proxy see none.
    private var isProgram: Bool { followTo == .anywhere }

    /// Fields dropped at another origin.
    var leftBehind: OwnedRequest.Redirection { isProgram ? .leavesCredentials : .leavesOrigin }

    /// Whether a body may go to another origin: a rule names it, and the status keeps it (RFC 9110 section 15.4.8).
    func mayTakeAlong(to url: RequestURL, by status: Int) -> Bool {
        isProgram || (status == 307 || status == 308) && followTo.includes(url.authority)
    }

    /// Takes the decided step, and returns its hop; nil: the same.
    func takeNextStep() -> Hop? {
        switch next.take() {
        case .hop(let hop, let url, let request, let keepsBody, let status)?:
            move(to: url, with: request, keepsBody: keepsBody, status: status)
            return hop
        case .answer(let answer)?:
            self.answer = answer
            isDue = true
        case nil: break
        }
        return nil
    }

    private func move(to url: RequestURL, with request: OwnedRequest, keepsBody: Bool, status: Int) {
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

    /// Edits of the last response. Fields about the server's own origin, such as cookies, are dropped: the client would
    /// apply them to the origin that it asked.
    var responseEdits: HeadEdits {
        var edits = HeadEdits()
        guard !hops.isEmpty else { return edits }
        if hasLeftOrigin { for name in Self.ofTheOrigin { edits.append(.remove, name) } }
        if let location { edits.append(.set("\(location)"), "Location") }
        if showsLocation { edits.append(.set("\(url)"), Self.locationField) }
        return edits
    }

    /// The field for the URL of a response, after redirects.
    static let locationField = "Pinproxy-Location"

    private static let ofTheOrigin = [
        "Set-Cookie", "Set-Cookie2", "WWW-Authenticate", "Authentication-Info", "Strict-Transport-Security",
        "Public-Key-Pins", "Public-Key-Pins-Report-Only",
        "Expect-CT", "Alt-Svc", "Clear-Site-Data", "NEL", "Report-To", "Reporting-Endpoints", "Origin-Agent-Cluster",
        "Service-Worker-Allowed", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
    ]
}

extension RequestView {
    /// Whether the client keeps origins apart (Fetch, CORS).
    fileprivate var isOfBrowser: Bool {
        for field in head.fields {
            if field.id == .origin { return true }
            if field.id == .other, field.name.text(in: bytes).lowercased().hasPrefix("sec-fetch-") { return true }
        }
        return false
    }
}
