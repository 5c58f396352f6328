package import PinproxyHTTPWire
package import PinproxySerialization

/// The rules of one exchange over the defaults. A class, so that a look-up copies nothing. A host may have no rules.
package final class ExchangeRules: Sendable {
    package let session: SessionRules
    package let request: RequestRules
    package let response: ResponseRules
    /// The request rules' edits of a head, made once.
    package let edits: HeadEdits
    package let sendsSecret: Bool
    package let writesRequests: Bool
    /// Whether requests may be changed.
    package let changesRequests: Bool
    /// Whether a response may cause another request: a redirect, or a challenge.
    package let asksAgain: Bool
    /// Whether a request may wait for others, or share a response.
    var takesTurns: Bool {
        session.maxActive != nil || session.maxConnections != nil || session.coalesce || cache != nil
    }
    /// The exchanges with an origin at one time; nil: any number.
    func limit(at origin: Origin) -> Int? {
        session.maxActive ?? (origin.chosenProtocol == .http2 ? nil : session.maxConnections)
    }
    /// The rules after a redirect from another origin: without credentials.
    var withoutSecrets: ExchangeRules { open ?? self }
    /// Nil: the rules hold no secrets.
    private let open: ExchangeRules?
    /// The rules of a shared request: each reader judges its response. Nil: requests aren't shared.
    let ofSharedFetch: ExchangeRules?
    let silence: Silence?
    /// Nil: the default. `.some(nil)`: any rate.
    package let minimumRate: MinimumRate??
    package let judge: ResponseJudge?
    /// Nil: no response is stored.
    package let cache: CacheTerms?
    /// Counts exchanges under these rules, and judged responses.
    package let counts: RuleCounts
    /// Where each key (`response.status`) is written, in human-readable form.
    private let sources: [String: String]

    /// - Parameter answersChallenges: the client may have credentials (``Downstream/credentials(for:at:)``).
    package convenience init(
        session: SessionRules = SessionRules(), request: RequestRules = RequestRules(),
        response: ResponseRules = ResponseRules(), cache: CacheTerms? = nil, sources: [String: String] = [:],
        answersChallenges: Bool = false
    ) {
        var openSession = session
        openSession.credentials = nil
        let openRequest = request.withoutSecrets
        let counts = RuleCounts()
        let open: ExchangeRules? =
            openSession == session && openRequest == request
            ? nil
            : ExchangeRules(openSession, openRequest, response, nil, sources, answersChallenges, counts, open: nil)
        self.init(session, request, response, cache, sources, answersChallenges, counts, open: open)
    }

    private init(
        _ session: SessionRules, _ request: RequestRules, _ response: ResponseRules, _ cache: CacheTerms?,
        _ sources: [String: String], _ answersChallenges: Bool, _ counts: RuleCounts, open: ExchangeRules?
    ) {
        self.counts = counts
        self.open = open
        self.session = session
        self.request = request
        self.response = response
        self.cache = cache?.rules.store == .off ? nil : cache
        self.sources = sources
        var edits = HeadEdits()
        let written = request.headerEdits
        for edit in written {
            switch edit {
            case .set(let field): edits.append(.set(field.value.text), field.name.description)
            case .setIfAbsent(let field): edits.append(.addIfAbsent(field.value.text), field.name.description)
            case .remove(let name): edits.append(.remove, name.description)
            }
        }
        self.edits = edits
        sendsSecret = written.contains(where: \.isSecret)
        writesRequests = !request.parameters.isEmpty || !request.parts.isEmpty || request.convertBody != nil
        changesRequests = writesRequests || !written.isEmpty || request.upgradeInsecure
        if session.coalesce {
            var session = session
            session.coalesce = false
            session.redirects = .pass
            ofSharedFetch = ExchangeRules(session: session, request: request, sources: sources)
        } else {
            ofSharedFetch = nil
        }
        asksAgain = session.redirects != .pass || session.credentials != nil || answersChallenges
        silence = sources["session.\(SessionRules.Key.timeout.rawValue)"].map { _ in
            Silence(firstByte: session.timeout.nanoseconds, idle: session.timeout.nanoseconds)
        }
        minimumRate = sources["session.\(SessionRules.Key.minimumRate.rawValue)"].map { _ in session.minimumRate }
        judge = ResponseJudge(response)
    }

    /// Time without a byte in either direction, if set.
    package var timeout: Duration? {
        silence == nil ? nil : session.timeout
    }

    /// The key that made a response wrong, and where it is written; nil for a default.
    package func source(of error: ResponseSerializationError) -> String? {
        key(of: error).flatMap { key in sources[key].map { "\(key), \($0)" } }
    }

    /// The first of these keys that is written, and where.
    package func source(of keys: [RequestRules.Key]) -> String? {
        keys.lazy.map { "request.\($0.rawValue)" }.compactMap { key in self.sources[key].map { "\(key), \($0)" } }.first
    }

    /// The key with parameters or files that can't be sent, and where it is written.
    package func source(of error: RequestSerializationError) -> String? {
        switch error.reason {
        case .unusableFile, .changedFile: source(of: [.parts])
        case .inexpressible, .malformedBody, .tooLong: source(of: [.parameters, .parts])
        }
    }

    package func key(of error: ResponseSerializationError) -> String? {
        let keys: [ResponseRules.Key] =
            switch error.reason {
            case .unacceptableStatus: [.status, .serializer]
            case .unacceptableContentType: [.contentTypes, .serializer]
            case .malformedBody, .undecodable, .tooLongToJudge: [.serializer]
            case .tooLong: [.maxBody]
            }
        return keys.lazy.map { "response.\($0.rawValue)" }.first { sources[$0] != nil }
    }
}
