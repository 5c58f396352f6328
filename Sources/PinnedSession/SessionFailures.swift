import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxySession
import PinproxyTLS

/// Errors of exchanges without a response.
extension SessionError {
    init(_ failure: ExchangeFailure, at destination: Destination) {
        let authority = destination.authority
        self =
            switch failure {
            case .unreachable(let failure): SessionError(failure, at: authority)
            case .cancelled: .cancelled
            case .noResponse(let time): .timedOut("no response of \(authority) within \(time) (responseTimeout)")
            case .requestStalled(let time): .timedOut("the request's body did not move for \(time) (idleTimeout)")
            case .requestDripped, .requestTakenSlowly: .timedOut("\(authority): \(failure.cause)")
            case .badRequest(let error): .invalidRequest(error.message)
            case .requestBroke(let error): .requestBody(error.description)
            case .uploadFailed(let cause): .requestBody(cause)
            case .nothingMoved: .timedOut("\(authority): \(failure.cause) (idleTimeout)")
            case .upstreamClosed, .bodyBroke, .downstreamGone: .connectionLost("\(authority): \(failure.cause)")
            case .responseHeadTooLarge(let limit):
                .badResponse("\(authority): the response's head is longer than \(limit) bytes (maximumHeadLength)")
            case .badResponse, .tooManyResponseFields, .unaskedUpgrade: .badResponse("\(authority): \(failure.cause)")
            case .redirect(.tooMany(let limit)):
                .redirect("\(authority): more than \(limit) redirects, one after another (maximumRedirects)")
            case .redirect(.refused(let url)):
                .redirect("\(authority) redirects to \(url), and the session refuses redirects")
            case .redirect(.bodyNotKept):
                .redirect("\(authority): the redirect requires the body to be sent again, and it can't be made again")
            case .redirect(let defect): .redirect("\(authority): \(defect.description)")
            case .unacceptable(let error, _): .unacceptable(error)
            case .notJudged, .notAdmitted, .notStored: .system(failure.cause)
            }
    }

    init(_ failure: UpstreamFailure, at authority: Authority) {
        self =
            switch failure {
            case .unresolved(let error): .cannotFindHost("\(authority.host): \(error)")
            case .blocked(let address, .insideFromOutside):
                .cannotConnect("\(authority.host) is at \(address), to which no redirect from the internet is followed")
            case .blocked(let address, _):
                .cannotConnect("\(authority.host) is at \(address), which is link-local: not connected to")
            case .unknownAddress:
                .cannotConnect(
                    """
                    \(authority.host) can't be looked up here, and a redirect led there: it may be at a private address
                    """
                )
            case .itself(let address, _): .cannotConnect("\(authority) is at \(address), which is this process")
            case .unreachable(let error): .cannotConnect("\(authority): \(error)")
            case .timedOut(let step): .timedOut("\(authority): timed out \(step.rawValue)")
            case .parentRefused(let status): .proxy("the proxy answered CONNECT \(authority) with \(status)")
            case .parentFailed(let cause): .proxy("the proxy: \(cause)")
            case .tls(let error, _): .secureConnectionFailed("TLS handshake with \(authority): \(error)")
            case .clientCertificate(let refusal):
                .clientCertificate("\(authority) requires a client certificate (TLS alert \(refusal.alertName))")
            case .refused(let verdict, _):
                verdict.refusal.map { SessionError($0, at: authority) } ?? .system("\(authority): no verdict")
            case .noNetwork(let reason): .noNetwork("\(reason)")
            case .cellularForbidden(let link): .noNetwork("only over the cellular link \(link)")
            case .noDescriptors: .system("this process has no file descriptor left (ulimit -n)")
            case .otherProtocol(let offered):
                .secureConnectionFailed(
                    "\(authority) does not speak \(offered.map(\.rawValue).joined(separator: ", "))")
            case .local(let cause): .system("\(authority): \(cause)")
            }
    }

    private init(_ refusal: Refusal, at authority: Authority) {
        self = refusal.isPinFailure ? .pinMismatch(PinMismatch(refusal, at: authority.host)) : .untrusted(refusal.title)
    }
}

extension PinMismatch {
    init(_ refusal: Refusal, at host: String) {
        self.init(
            host: host, title: refusal.title, presentedPins: refusal.presentedPins,
            configuredPins: refusal.configuredPins)
    }
}

extension PinningResult {
    init(_ verdict: Verdict?, at host: String) {
        guard let verdict else {
            self = .insecure
            return
        }
        if let pin = verdict.matchedPin {
            self = .matched(pin: pin.origin)
        } else if let refusal = verdict.report {
            self = .reported(PinMismatch(refusal, at: host))
        } else {
            self = .unpinned
        }
    }
}
