import Glibc
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession

/// Redirects, challenges and cookies of a task, as its hooks and the cookie store have it.
extension ProgramDownstream: ExchangeGuide {
    var isDeciding: Bool { redirecting?.isPending == true || answering?.isPending == true }

    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        if let hook = core.hooks.redirect {
            guard let redirecting else {
                let method = request.head.methodRange.text(in: request.bytes)
                let redirect = Redirect(task: task, from: self.url.map { "\($0)" } ?? "", method: method, to: "\(url)")
                self.redirecting = decide {
                    await hook(redirect)
                } then: {
                    $0.exchange.decided()
                }
                return .pass
            }
            guard let choice = redirecting.choice else { return .pass }
            self.redirecting = nil
            switch choice {
            case .follow: break
            case .pass: return .pass
            case .refuse(let why): return .refuse(why)
            case .replace(let other):
                let limit = core.routing.redirectLimit
                guard replacements < limit else {
                    return .refuse("more than \(limit) redirects, one after another (maximumRedirects)")
                }
                replacement = other
                return .pass
            }
        }
        do {
            let (destination, rules) = try core.destination(of: url, within: timeout)
            self.url = url
            return .follow(destination, rules)
        } catch {
            return .refuse(error.description)
        }
    }

    func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials? {
        guard let hook = core.hooks.challenge else { return nil }
        if let answering {
            guard let choice = answering.choice else { return nil }
            self.answering = nil
            return choice
        }
        let offers = challenges.map { challenge in
            AuthenticationChallenge.Offer(
                scheme: challenge.scheme,
                realm: challenge.parameters["realm"].map { String(decoding: $0, as: UTF8.self) })
        }
        let challenge = AuthenticationChallenge(url: "\(url)", offers: offers)
        answering = decide {
            await hook(challenge)
        } then: {
            $0.exchange.decided()
        }
        return nil
    }

    // MARK: Cookies and the cache

    func received(_ response: borrowing ResponseView, from url: RequestURL) {
        guard let cookies else { return }
        for field in response.head.fields where field.id == .setCookie {
            cookies.receive(field.value.text(in: response.bytes), from: url)
        }
    }

    func cookie(for url: RequestURL) -> CookieRuling {
        // Own ones stay within their origin, and have been dropped at another.
        guard let cookies, !hasOwnCookies else { return .kept }
        return .replaced(by: cookies.field(for: url))
    }

    /// Stored responses belong to the session's user.
    var cacheOwner: CacheKey.Owner? { .user(getuid()) }

    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        TaskRecord.Refusal(status: 0, cause: failure.cause, errorType: "")
    }
}
