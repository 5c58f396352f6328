import PinproxyEventLoop
package import PinproxyHTTPWire
package import PinproxyRecords
import PinproxySecurity
package import PinproxySerialization
package import PinproxySession
package import PinproxyTLS

/// Why an exchange failed, by who is at fault. Only ``response(to:as:keepsConnection:)`` makes it a response.
package enum ProxyError {
    // Faults of the client.
    case badRequest(WireError)
    case badAuthority(PinproxyHTTPWire.AuthorityError)
    case badConnectTarget(ConnectTargetDefect)
    case badMaxForwards
    case tlsToPlainPort
    case requestHeadTooLarge(Int)
    case tooManyRequestFields
    case requestStalled(after: Duration)
    case requestDripped(MinimumRate)
    /// - Parameter url: the proxy's own, as this client reaches it.
    case askedForProxyItself(url: String)
    case unsupportedScheme(ShownText)
    case cannotTunnelURL(String)
    /// The request has passed this proxy before.
    case loop(String)
    case misdirected(Misdirection, connected: Authority)
    case clientNotAllowed(String)
    /// The proxy of `pinproxy exec --start` serves its owner's programs and runs only.
    case clientOfAnotherUser
    case credentialsMissing
    case credentialsWrong
    /// The token of a run that has ended.
    case runUnknown
    case runWithoutUser
    /// Too many comparisons wait: `16 passwords of user 1000`.
    case credentialsNotCompared(String)
    /// The proxy stops before it has connected.
    case stopping(host: String)
    /// The configuration changed twice before the proxy had connected.
    case overtaken(host: String)
    case authorityExpired(UnixTime, host: String)
    /// The signer issued no certificate for the host; why.
    case unsigned(String, host: String)
    /// The local authority, or one above it, may not sign for the host.
    case outsideNameConstraints(reason: String, host: String)
    // Denials by the policy.
    case denied(host: String, entry: String?)
    indirect case clientNotAdmitted(ClientObjection)
    case plainToPinnedHost(String, entry: String)
    // Faults of the origin, or of the connection to it.
    /// - Parameter by: the place of the host's policy.
    case upstream(UpstreamFailure, PinproxyHTTPWire.Authority, PolicySource?)
    case upstreamClosed(String, host: String)
    case badResponse(WireError, host: String)
    case responseHeadTooLarge(Int, host: String)
    case tooManyResponseFields(host: String)
    case unaskedUpgrade(host: String)
    /// The origin's Sec-WebSocket-Accept doesn't fit the key (RFC 6455 section 4.1).
    case wrongWebSocketAnswer(host: String)
    /// The origin takes the request's body too slowly.
    case requestTakenSlowly(MinimumRate, host: String)
    case noResponse(after: Duration, host: String)
    case bodyBroke(String, host: String)
    /// - Parameter by: the place of the host's policy.
    indirect case redirect(RedirectDefect, host: String, PolicySource?)
    // The rules'.
    /// - Parameter source: the rule, and where it is written.
    indirect case unacceptable(
        ResponseSerializationError, source: String?, host: String, PolicySource?, ExplainCommandLine)
    /// The response couldn't be judged.
    case notJudged(BodyWorkFailure, host: String)
    /// The control group's memory is nearly spent.
    case noMemory
    case notAdmitted(String, host: String)
    case notStored(host: String)
    /// The rules can't rewrite the request.
    indirect case unserializable(RequestSerializationError, host: String, rule: String)
    /// The client's body can't be converted to the rules' format.
    indirect case unconvertible(RequestSerializationError, host: String, rule: String)
    case notConverted(BodyWorkFailure, host: String)
    case codedBody(host: String)
    case bodyTooLong(limit: Int, host: String)
    /// The path's readings select different rules.
    case ambiguousPath(host: String, entry: String?)
    /// Some servers would read the path as outside `session.base_url`.
    case pathAboveBase(host: String)
    /// The rules would send a password or token in the clear.
    case secretInTheClear(host: String, entry: String?)
    /// - Parameter by: who ended the task, and how.
    case cancelled(by: String, host: String)

    /// Whether the connection stays open for another request.
    var keepsConnection: Bool {
        switch self {
        case .clientOfAnotherUser, .credentialsMissing, .credentialsWrong, .runUnknown, .runWithoutUser,
            .credentialsNotCompared, .denied, .clientNotAdmitted,
            .plainToPinnedHost, .upstream, .overtaken, .authorityExpired, .unsigned, .outsideNameConstraints:
            true
        default: false
        }
    }

    /// The rules that hold for this request decided, not what holds for its host.
    var isOfRules: Bool {
        switch self {
        case .redirect, .unacceptable, .notJudged, .unserializable, .unconvertible, .notConverted, .codedBody,
            .ambiguousPath, .pathAboveBase, .secretInTheClear:
            true
        default: false
        }
    }

    /// - Parameter record: of the request that failed.
    package static func exchange(
        _ failure: ExchangeFailure, _ destination: Destination, of record: borrowing TaskRecord
    ) -> ProxyError {
        let host = destination.authority.host
        return switch failure {
        case .badRequest(let error): .badRequest(error)
        case .requestStalled(let time): .requestStalled(after: time)
        case .requestDripped(let rate): .requestDripped(rate)
        case .requestTakenSlowly(let rate): .requestTakenSlowly(rate, host: host)
        case .requestBroke(let error):
            .unserializable(error, host: host, rule: requestRules(of: destination.source?.location))
        case .unreachable(let failure): .upstream(failure, destination.authority, destination.source)
        case .upstreamClosed(let cause): .upstreamClosed(cause, host: host)
        case .badResponse(let error): .badResponse(error, host: host)
        case .responseHeadTooLarge(let limit): .responseHeadTooLarge(limit, host: host)
        case .tooManyResponseFields: .tooManyResponseFields(host: host)
        case .unaskedUpgrade: .unaskedUpgrade(host: host)
        case .noResponse(let time): .noResponse(after: time, host: host)
        case .bodyBroke(let cause), .uploadFailed(let cause), .downstreamGone(let cause): .bodyBroke(cause, host: host)
        case .nothingMoved: .bodyBroke(failure.cause, host: host)
        case .redirect(let defect): .redirect(defect, host: host, destination.source)
        case .unacceptable(let error, let source):
            .unacceptable(
                error, source: source, host: host, destination.source,
                ExplainCommandLine(
                    destination.authority, method: record.methodName, path: String(decoding: record.path, as: UTF8.self)
                ))
        case .notJudged(let failure): .notJudged(failure, host: host)
        case .notAdmitted(let cause): .notAdmitted(cause, host: host)
        case .notStored: .notStored(host: host)
        case .cancelled(let by): .cancelled(by: by, host: host)
        }
    }

    /// Stands for a rule that isn't known.
    /// - Parameter entry: its place; nil: the defaults.
    package static func requestRules(of entry: String?) -> String {
        "the request rules of \(entry ?? "the defaults of the pin file")"
    }

    package func refusal(for requester: Requester) -> TaskRecord.Refusal {
        var report = report
        report.requester = requester
        return TaskRecord.Refusal(
            status: report.status, cause: report.details, errorType: report.proxyStatusError, story: report.text,
            isPinFailure: report.isPinFailure, contact: report.contact)
    }

    /// The contact with a refused origin, if it was reached.
    var contact: OriginContact? { if case .upstream(let failure, _, _) = self { failure.contact } else { nil } }
    var cause: String { report.details }
    /// The error type of RFC 9209 section 2.3.
    var proxyStatusError: String { report.proxyStatusError }

    /// - Parameter requester: who gets it.
    func response(
        to method: Method, as form: RefusalForm, keepsConnection: Bool, for requester: Requester
    ) -> [UInt8] {
        if case .askedForProxyItself(let url) = self {
            return UsagePage.response(for: url, toHead: method == .head, prefersHTML: form == .page)
        }
        var report = report
        report.keepAlive = keepsConnection
        report.requester = requester
        // Only programs send CONNECT, and read its answer. Responses inside, or in the clear, are read by pages'
        // scripts too.
        report.reader = method == .connect ? .client : .content
        return RefusalResponse.bytes(for: report, toHead: method == .head, as: form)
    }

    // MARK: What each says

    var report: RefusalReport {
        switch self {
        case .badRequest(let error): .client(400, "Bad request", error.message)
        case .badAuthority(let error): .client(400, "Bad request target", error.description)
        case .badConnectTarget(let defect): .client(400, "Bad CONNECT target", defect.description)
        case .badMaxForwards:
            .client(
                400, "Bad Max-Forwards",
                "Max-Forwards of OPTIONS and TRACE must be one decimal number (RFC 9110 section 7.6.2)")
        case .tlsToPlainPort:
            .client(
                400, "TLS spoken to a plain port",
                "the client uses TLS on this port, which expects plain HTTP: write http:// and not https:// for the "
                    + "proxy itself (HTTPS_PROXY=http://HOST:PORT), or let the port speak TLS (proxy.tls)")
        case .requestHeadTooLarge(let limit):
            .client(
                431, "Request header fields too large",
                "the request's head is longer than \(limit) bytes (limits.request_head)")
        case .tooManyRequestFields:
            .client(
                431, "Too many request header fields",
                "the request's head has more than \(HeadParser.fieldLimit) field lines, which is a fixed limit")
        case .requestStalled(let time): .client(408, "Request timeout", "the request did not arrive within \(time)")
        case .requestDripped(let rate):
            .client(408, "Request timeout", "the client sent less of the request than \(rate)")
        case .askedForProxyItself: .client(400, "This is a proxy", "a request to the proxy itself")
        case .unsupportedScheme(let url):
            .client(
                400, "Unsupported URL scheme", "only http:// and https:// URLs and CONNECT are understood, not \(url)")
        case .cannotTunnelURL(let host):
            .client(
                403, "\(host) may only be tunnelled",
                "the policy tunnels \(host): use CONNECT, not an https:// URL",
                error: "http_request_denied")
        case .loop(let host):
            .client(
                508, "Loop detected for \(host)",
                "the request has passed this proxy before, as its Via field says: a proxy or server on the way to "
                    + "\(host) (upstream.parent?) sends it back here", error: "proxy_loop_detected")
        case .misdirected(let misdirection, let connected):
            .client(
                421, misdirection.asked.map { "Misdirected request for \($0)" } ?? "Misdirected request",
                misdirection.cause(connected: connected))
        case .clientNotAllowed(let address):
            .client(
                403, "Client \(address) not allowed", "\(address) is not in proxy.allow_clients",
                error: "http_request_denied")
        case .clientOfAnotherUser:
            Self.credentials(
                "Proxy of another user",
                "this proxy was started by pinproxy exec --start: it serves programs of the user who started it, and "
                    + "programs of a run that show its token")
        case .credentialsMissing:
            Self.credentials("Proxy authentication required", "this proxy requires a user name and a password")
        case .credentialsWrong:
            Self.credentials("Proxy authentication failed", "the user name or the password is wrong")
        case .runUnknown:
            Self.credentials(
                "Run of pinproxy exec is over",
                "this proxy requires credentials, and the run of pinproxy exec that these were made for is over")
        case .runWithoutUser:
            Self.credentials(
                "Proxy authentication required",
                "this proxy requires a user name and a password (proxy.users), and pinproxy exec had none: add them to "
                    + "HTTPS_PROXY before it, as in HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT pinproxy exec -- "
                    + "COMMAND")
        case .credentialsNotCompared(let what):
            // Not 407, after which clients ask for other credentials or give up: these may be right.
            .later(
                "Too many passwords are being checked",
                "\(what) are waiting to be checked, and the queue is full; try again in a moment")
        case .stopping(let host):
            .later(
                "The proxy is stopping",
                "the proxy is stopping, and had no connection to \(host) yet; ask again in a moment", host)
        case .overtaken(let host):
            .later(
                "The policy for \(host) is changing",
                "the configuration changed twice while the proxy connected to \(host); ask again in a moment", host)
        case .authorityExpired(let end, let host):
            RefusalReport(
                status: 503, reasonPhrase: "The proxy's own authority has expired",
                proxyStatusError: "proxy_configuration_error",
                details:
                    "the local authority expired \(CalendarDate(end)), so no certificate can be issued for \(host)",
                title: "The proxy's own authority has expired",
                body: [
                    "The proxy intercepts TLS to \(host), and its local authority expired \(CalendarDate(end)): no "
                        + "program would accept a certificate from it.",
                    "On the proxy's machine: \(AuthorityError.renewal)",
                ], host: host)
        case .unsigned(let reason, let host):
            .later(
                "No certificate for \(host)",
                "\(reason); without one the proxy can't intercept TLS to \(host) (authority.signer)", host)
        case .outsideNameConstraints(let reason, let host):
            Self.policy(
                "The proxy's authority may not sign for \(host)", "name constraints of the local authority: \(reason)",
                host: host,
                advice:
                    "Its certificate is limited to some names (authority.name_constraints), and no program would "
                    + "accept one for \(host) from it. Add the name there and run pinproxy ca rotate, or write action: "
                    + "tunnel for the host."
            )
        case .denied(let host, let entry):
            Self.policy(
                "\(host) denied by policy", "action: deny",
                host: host, advice: "It is denied by \(entry ?? "the defaults of the pin file").")
        case .clientNotAdmitted(let objection): objection.report
        case .plainToPinnedHost(let host, let entry):
            Self.policy(
                "Plain HTTP to pinned host \(host) refused",
                "http:// can't be pinned", host: host,
                advice: "\(entry) pins this host; use https://.")
        case .upstream(let failure, let authority, let source): failure.report(for: authority, by: source)
        case .upstreamClosed(let cause, let host):
            .origin(
                502, "\(host) closed the connection", "connection_terminated", "the origin \(cause) before it answered",
                host)
        case .badResponse(let error, let host):
            .origin(502, "Malformed response from \(host)", "http_protocol_error", error.message, host)
        case .responseHeadTooLarge(let limit, let host):
            .origin(
                502, "Response header of \(host) too large", "http_response_header_section_size",
                "the response's head is longer than \(limit) bytes (limits.response_head)", host)
        case .tooManyResponseFields(let host):
            .origin(
                502, "Too many response header fields of \(host)", "http_response_header_section_size",
                "the response's head has more than \(HeadParser.fieldLimit) field lines, which is a fixed limit", host)
        case .wrongWebSocketAnswer(let host):
            .origin(
                502, "Malformed response from \(host)", "http_protocol_error",
                "the origin answered the WebSocket's handshake with a wrong Sec-WebSocket-Accept", host)
        case .unaskedUpgrade(let host):
            .origin(
                502, "Malformed response from \(host)", "http_protocol_error",
                "unrequested 101 Switching Protocols", host)
        case .bodyBroke(let cause, let host):
            .origin(
                502, "Incomplete response from \(host)", "http_response_incomplete",
                "\(cause), before the response could be judged", host)
        case .redirect(let defect, let host, let source): defect.report(of: host, source)
        case .unacceptable(let error, let source, let host, let policy, let explanation):
            error.report(of: host, by: source, policy, explainedBy: explanation)
        case .notJudged(let failure, let host): failure.report(ofResponseFrom: host)
        case .noMemory:
            .later(
                "The proxy is out of memory",
                "nearly all memory that the proxy may use is taken; ask again in a moment")
        case .notAdmitted(let cause, let host): .later("Too many requests to \(host)", cause, host)
        case .notStored(let host):
            .origin(
                504, "Nothing stored of \(host)", "http_request_denied", ExchangeFailure.notStored.cause, host)
        case .unserializable(let error, let host, let rule): error.report(of: host, by: rule, isClients: false)
        case .unconvertible(let error, let host, let rule): error.report(of: host, by: rule, isClients: true)
        case .notConverted(let failure, let host): failure.report(ofRequestFor: host)
        case .codedBody(let host):
            .client(
                415, "Request body for \(host) can't be converted",
                "the rules convert the body (request.convert_body), which has a Content-Encoding: send it without one")
        case .bodyTooLong(let limit, let host):
            .client(
                413, "Request body for \(host) too long to convert",
                """
                the rules convert the body (request.convert_body), which is longer than \(limit) bytes \
                (limits.inspected_body)
                """
            )
        case .ambiguousPath(let host, let entry):
            .client(
                400, "Ambiguous path for \(host)",
                "servers read this path in different ways, which lead to different rules of "
                    + "\(entry ?? "the defaults"): send it without //, ., .., ;, a backslash, %2f or %5c")
        case .pathAboveBase(let host):
            .client(
                400, "Path above the base URL at \(host)",
                "some servers would read this path as above session.base_url: "
                    + "use no more .. than there are segments before them")
        case .secretInTheClear(let host, let entry):
            Self.policy(
                "Secret for \(host) not sent in the clear", "the rules would send a password or token over http://",
                host: host,
                advice:
                    "The request rules of \(entry ?? "the defaults") add a secret: use https://, or "
                    + "write upgrade_insecure: true there.")
        case .requestTakenSlowly(let rate, let host):
            .origin(
                504, "\(host) took the request too slowly", "connection_write_timeout",
                "the origin took less of the request than \(rate)", host)
        case .noResponse(let time, let host):
            .origin(
                504, "\(host) did not answer", "http_response_timeout",
                "no response within \(time) (timeouts.first_byte)", host)
        case .cancelled(let by, let host):
            // No Retry-After or 502, which make clients retry: this end was wanted.
            .client(403, "Request to \(host) cancelled", by, error: "http_request_denied")
        }
    }

    private static func credentials(_ title: String, _ details: String) -> RefusalReport {
        var report = RefusalReport.client(407, title, details, error: "http_request_denied")
        report.extraFields = [("Proxy-Authenticate", "Basic realm=\"pinproxy\", charset=\"UTF-8\"")]
        return report
    }

    private static func policy(_ title: String, _ details: String, host: String, advice: String) -> RefusalReport {
        RefusalReport(
            status: 403, reasonPhrase: title, proxyStatusError: "http_request_denied", details: details,
            title: title, body: [advice], host: host)
    }
}
