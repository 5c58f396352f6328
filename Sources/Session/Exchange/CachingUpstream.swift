import PinproxyCaching
import PinproxyHTTPWire
import PinproxySecurity
import PinproxyTransport

/// Wraps an upstream: stores its response, or serves the stored response that it confirms.
final class CachingUpstream: Upstream {
    private let origin: any Upstream
    private let use: CacheUse
    private let session: LoopSession
    /// Unix seconds.
    private var requested: Int64 = 0
    private var hasCredentials = false
    private var authority: Authority?
    /// A stored response, served instead of the origin's.
    private var served: (response: ServedResponse, scope: AddressScope?, body: any BodySource)?
    // unowned: the receiver keeps its upstream from begin(for:) to end(_:), which clears it.
    private unowned var receiver: (any UpstreamReceiver)?
    /// The origin's response isn't passed on, and has a body.
    private var leavesBody = false
    private var recording: ResponseRecording?
    private var handling: CacheHandling?

    init(_ origin: any Upstream, for use: CacheUse, session: LoopSession) {
        self.origin = origin
        self.use = use
        self.session = session
    }

    var facts: UpstreamFacts {
        var facts = origin.facts
        facts.cache = handling
        if let served { facts.scope = served.scope }
        return facts
    }

    func begin(for receiver: any UpstreamReceiver) {
        self.receiver = receiver
        origin.begin(for: receiver)
    }

    func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        requested = session.unixTime()
        authority = destination.authority
        hasCredentials = use.request.hasCredentials || edits.changes("Authorization")
        var edits = edits
        if let stored = use.confirmable { edits.append(Confirmation.edits(for: stored.head)) }
        return origin.send(request, to: destination, edits: edits, from: body)
    }

    /// Further bytes of the origin aren't read once another response is served.
    func wantsRead(_ wanted: Bool) { if served == nil { origin.wantsRead(wanted) } }

    // MARK: The response

    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress {
        let progress = origin.receiveHead(of: method, limit: limit, readable: readable)
        let now = session.unixTime()
        if case .ended = progress, !origin.facts.isReused, let standIn = standIn(for: nil, at: now) {
            receiver?.responseBegan()
            return standIn
        }
        guard case .complete(let head) = progress, !head.isInterim, !head.isUpgrade else { return progress }
        if head.status == 304, let stored = use.confirmable { return confirmed(stored, at: now) }
        if [500, 502, 503, 504].contains(head.status), let standIn = standIn(for: head.status, at: now) {
            return standIn
        }
        if method == .head { noteHead() }
        invalidate(after: method)
        prepareToStore(head, at: now)
        return progress
    }

    /// Serves a stored response when the origin fails (RFC 5861 section 4).
    /// - Parameter status: nil: it didn't answer.
    private func standIn(for status: Int?, at now: Int64) -> ResponseHeadProgress? {
        guard let stored = use.standIn(at: now), let response = ServedResponse(stored, to: use.request) else {
            return nil
        }
        leavesBody = true
        return serve(response, stored, .stale, forwardStatus: status, at: now)
    }

    /// The origin says that what is stored still holds.
    private func confirmed(_ stored: StoredResponse, at now: Int64) -> ResponseHeadProgress {
        let times = ResponseTimes(requested: requested, received: now)
        var confirmed: (stored: StoredResponse, served: ServedResponse)?
        origin.withResponse {
            guard Confirmation.confirms(CachedTraits($0), stored.traits),
                let fresh = stored.confirmed(by: $0, to: use.asked, times: times, validUntil: validUntil),
                let served = ServedResponse(fresh, head: Confirmation.answer(fresh.head, by: $0), to: use.request)
            else { return }
            confirmed = (fresh, served)
        }
        guard let (fresh, response) = confirmed else {
            // It confirms another version: the request is sent again, unchanged.
            use.forgetStored()
            return .unconfirmed
        }
        if Storability.refusal(
            of: fresh.traits, to: use.request, isShared: fresh.isShared, length: nil, mostLength: .max) == nil
        {
            use.cache.confirm(fresh, insteadOf: stored, for: use.key)
        } else {
            use.cache.remove(stored, for: use.key)
        }
        return serve(response, fresh, .revalidated, forwardStatus: 304, at: now)
    }

    private func serve(
        _ response: ServedResponse, _ stored: StoredResponse, _ result: CacheResult, forwardStatus: Int?, at now: Int64
    ) -> ResponseHeadProgress {
        origin.wantsRead(false)
        let body = response.source(on: session.loop) { { [weak self] in self?.receiver?.upstreamIsReadable() } }
        served = (response, stored.scope, body)
        var status = use.status
        status.forwardStatus = forwardStatus
        status.rest = stored.freshness.rest(at: now)
        status.isStored = result == .revalidated
        handling = CacheHandling(result: result, status: status, age: stored.freshness.age(at: now))
        return .complete(response.traits)
    }

    /// Updates the stored response to GET from a HEAD (RFC 9111 section 4.3.5).
    private func noteHead() {
        guard let stored = use.stored else { return }
        let times = ResponseTimes(requested: requested, received: session.unixTime())
        origin.withResponse { view in
            switch Invalidation.effect(ofHead: view, on: stored.traits, complete: stored.complete) {
            case .updates:
                guard let fresh = stored.confirmed(by: view, to: use.asked, times: times, validUntil: validUntil)
                else { return }
                use.cache.confirm(fresh, insteadOf: stored, for: use.key)
            case .outdates: use.cache.remove(stored, for: use.key)
            case .nothing: break
            }
        }
    }

    /// Invalidates stored responses after an unsafe method (RFC 9111 section 4.4).
    private func invalidate(after method: Method) {
        guard !method.isSafe, let authority else { return }
        let url = RequestURL(isSecure: use.key.isSecure, authority: authority.canonical, target: use.key.target)
        origin.withResponse { view in
            for url in Invalidation.urls(after: method, of: url, view) {
                for owner in Set([use.key.owner, use.client, .everybody].compactMap(\.self)) {
                    use.cache.remove(
                        CacheKey(
                            target: url.target, host: use.key.host, port: use.key.port, isSecure: use.key.isSecure,
                            owner: owner))
                }
            }
        }
    }

    private func prepareToStore(_ head: ResponseTraits, at now: Int64) {
        var status = use.status
        status.forwardStatus = head.status
        origin.withResponse { view in
            let objection = objection(to: CachedTraits(view), length: head.bodyLength)
            if let objection = objection ?? (view.isStream ? .endless : nil) {
                return note(objection, at: now)
            }
            recording = ResponseRecording(
                OwnedResponse(view), from: origin, for: use,
                at: ResponseTimes(requested: requested, received: now), budget: session.slabs.budget)
        }
        status.isStored = recording != nil
        handling = CacheHandling(result: .miss, status: status, age: nil)
    }

    private func objection(to response: CachedTraits, length: UInt64?) -> StorageObjection? {
        if isReportOnly { return .reported }
        if hasCredentials, !response.allowsCredentials { return .refused(.credentials) }
        return Storability.refusal(
            of: response, to: use.request, isShared: use.isShared, length: length,
            mostLength: UInt64(use.cache.longestBody(use.terms.rules.store))
        ).map { .refused($0) }
    }

    private func note(_ objection: StorageObjection, at now: Int64) {
        guard use.request.method == .get else { return }
        use.cache.objections.note(objection, to: use.key, at: now)
    }

    /// A chain that was refused, and only reported, makes nothing trustworthy.
    private var isReportOnly: Bool { origin.facts.connection?.verdict?.report != nil }
    private var validUntil: Int64 { origin.facts.connection?.validUntil ?? .max }

    func withResponse(_ body: (borrowing ResponseView) -> Void) {
        guard let served else { return origin.withResponse(body) }
        // A copy, since the view borrows from it.
        let head = served.response.head
        body(head.view)
    }

    var responseBody: any BodySource { served?.body ?? recording?.body ?? origin.responseBody }

    // MARK: End

    func end(_ ending: UpstreamEnding) -> HTTP1Upstream? {
        receiver = nil
        guard case .finished = ending else {
            if let recording { note(.incomplete, at: recording.times.received) }
            return origin.end(ending)
        }
        store()
        return origin.end(leavesBody ? .abandoned : ending)
    }

    private func store() {
        use.cache.count(handling?.result ?? .miss, saved: served?.response.length ?? 0)
        if let recording = recording.take(), !recording.commit() { note(.incomplete, at: recording.times.received) }
    }
}
