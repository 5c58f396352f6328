import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTLS

/// Followed redirects and answered challenges, where a rule enables them.
extension Exchange {
    var method: Method { itinerary?.method ?? request.method }

    /// How to treat a final head that calls for another request; nil: it doesn't.
    func followUp(_ response: ResponseTraits, _ itinerary: Itinerary) -> ExchangeState.Head? {
        if response.status == 401 { return challenge(itinerary) }
        acceptedAnswer(of: itinerary)
        return switch response.status {
        case 301, 302, 303, 307, 308: redirect(response.status, itinerary)
        default: nil
        }
    }

    // MARK: The discarded response

    /// Continues at once. Reuses the connection if the request is sent and the remaining response is short and here.
    func askAgain() -> ExchangeState.Event? {
        if let upstream = upstream.take(), let destination {
            let isReusable = state.request == .sent && isReadAway(upstream)
            upstream.end(
                isReusable
                    ? .finished(requestSent: true, idleNanoseconds: destination.terms.idleUpstreamNanoseconds)
                    : .abandoned)?
                .close()
        }
        if let itinerary { takeNextStep(of: itinerary) }
        return open(fresh: false)
    }

    /// Discards the response's body, if that takes neither time nor many bytes.
    private func isReadAway(_ upstream: any Upstream) -> Bool {
        if case .ended = upstream.responseBody.move(to: Discard(), readable: true) { return true }
        return false
    }

    func takeNextStep(of itinerary: Itinerary) {
        guard let hop = itinerary.takeNextStep() else { return }
        record.hops = itinerary.hops
        aim(at: hop)
    }

    // MARK: Redirects

    private func redirect(_ status: Int, _ itinerary: Itinerary) -> ExchangeState.Head? {
        var redirects = itinerary.redirects
        if rules?.session.redirects == .refuse { redirects = .refuse }
        guard redirects != .pass else { return nil }
        do throws(RedirectDefect) {
            guard let location = try location(relativeTo: itinerary.url) else { return nil }
            if redirects == .refuse { throw .refused(to: "\(ShownText("\(location)"))") }
            return try follow(location, status, itinerary)
        } catch {
            failure = .redirect(error)
            return .unacceptable
        }
    }

    /// The Location, resolved.
    func location(relativeTo url: RequestURL) throws(RedirectDefect) -> RequestURL? {
        var found: Result<RequestURL, RedirectDefect>?
        upstream?.withResponse { view in
            for field in view.head.fields where field.id == .location {
                if found != nil {
                    found = .failure(.severalLocations)
                    return
                }
                do throws(LocationDefect) {
                    found = .success(try url.resolving(view.bytes.extracting(field.value.offsets)))
                } catch {
                    found = .failure(.location(error))
                }
            }
        }
        return try found?.get()
    }

    private func follow(
        _ url: RequestURL, _ status: Int, _ itinerary: Itinerary
    ) throws(RedirectDefect) -> ExchangeState.Head? {
        let shown = "\(ShownText("\(url)"))"
        if itinerary.url.isSecure, !url.isSecure { throw .insecure(to: shown) }
        guard itinerary.mayLead(to: url) else { return nil }
        guard state.allows(.redirect, resendable: true) else { throw .tooMany(limit: itinerary.redirectLimit) }
        var redirection: OwnedRequest.Redirection = []
        if Self.becomesGET(status, itinerary.method) { redirection.insert(.becomesGET) }
        let crosses = url.origin != itinerary.url.origin
        if crosses { redirection.insert(itinerary.leftBehind) }
        let keepsBody = itinerary.keepsBody && !redirection.contains(.becomesGET)
        let isQuestion = redirection.contains(.becomesGET) || itinerary.isQuestion
        if crosses, !isQuestion, !itinerary.mayTakeAlong(to: url, by: status) { return nil }
        if keepsBody {
            if itinerary.request.head.bodyLength != .none, !canResend {
                throw .bodyNotKept(limit: destination?.terms.limits.replayBody ?? 0)
            }
        } else if state.request != .sent {
            // The remaining body would have to be discarded first: the client, still sending, follows the redirect
            // itself.
            return nil
        }
        guard var request = try? itinerary.request.redirected(to: url, redirection) else { return nil }
        let isAbroad = itinerary.hasLeftOrigin || crosses
        switch downstream.guide.route(to: url, isAbroad: isAbroad, for: request.view) {
        case .pass: return nil
        case .refuse(let why): throw .denied(to: shown, why)
        case .fail(let why): throw .unusable(to: shown, why)
        case .follow(let destination, let rules):
            let scope = upstream?.facts.scope
            let hop =
                isAbroad
                ? Hop(abroad: destination, by: rules, after: scope, trustsParent: itinerary.followTo == .anywhere)
                : Hop(within: destination, by: rules, after: scope)
            guard let hop else { return nil }
            if case .replaced(let cookie) = downstream.guide.cookie(for: url) {
                guard let changed = try? request.withCookie(cookie) else { return nil }
                request = changed
            }
            itinerary.next = .hop(hop, to: url, with: request, keepsBody: keepsBody, status: status)
            return .askAgain(.redirect)
        }
    }

    /// RFC 9110 section 15.4: 303 means GET; after 301 and 302 every client turns POST into GET.
    private static func becomesGET(_ status: Int, _ method: Method) -> Bool {
        switch status {
        case 303: method != .get && method != .head
        case 301, 302: method == .post
        default: false
        }
    }
}
