/// What a client is told when the proxy itself answers: why, where, and what to do about it.
/// A value without any HTTP in it; `RefusalResponse` renders it.
package struct RefusalReport: Sendable {
    /// 400, 403, 407, 421, 502, 503, 504, …
    package var status: Int
    /// The rest of the status line; names the cause and the host, because most clients print it.
    package var reasonPhrase: String
    /// The cause in the words of RFC 9209.
    package var error: ProxyStatusError
    /// One line: the `details` of Proxy-Status and the `detail` of the problem.
    package var details: String
    /// One short line over the text.
    package var title: String
    /// What happened and what to do, in lines, spaces kept: presented and configured pins ready to paste.
    package var text: String
    /// The host that was asked for.
    package var host: String?
    /// Field lines to add, e.g. Proxy-Authenticate.
    package var fields: [(name: String, value: String)]
    /// Whether the connection can carry another request.
    package var keepsAlive: Bool

    package init(
        status: Int, reasonPhrase: String, error: ProxyStatusError, details: String, title: String, text: String,
        host: String? = nil, fields: [(name: String, value: String)] = [], keepsAlive: Bool = false
    ) {
        self.status = status
        self.reasonPhrase = reasonPhrase
        self.error = error
        self.details = details
        self.title = title
        self.text = text
        self.host = host
        self.fields = fields
        self.keepsAlive = keepsAlive
    }
}

/// The error types of RFC 9209 section 2.3 that this proxy can have.
package enum ProxyStatusError: String, Sendable, CaseIterable {
    case dnsTimeout = "dns_timeout"
    case dnsError = "dns_error"
    case destinationNotFound = "destination_not_found"
    case destinationUnavailable = "destination_unavailable"
    case destinationIPProhibited = "destination_ip_prohibited"
    case destinationIPUnroutable = "destination_ip_unroutable"
    case connectionRefused = "connection_refused"
    case connectionTerminated = "connection_terminated"
    case connectionTimeout = "connection_timeout"
    case connectionReadTimeout = "connection_read_timeout"
    case connectionWriteTimeout = "connection_write_timeout"
    case connectionLimitReached = "connection_limit_reached"
    case tlsProtocolError = "tls_protocol_error"
    case tlsCertificateError = "tls_certificate_error"
    case tlsAlertReceived = "tls_alert_received"
    case httpRequestError = "http_request_error"
    case httpRequestDenied = "http_request_denied"
    case httpResponseIncomplete = "http_response_incomplete"
    case httpResponseTimeout = "http_response_timeout"
    case httpProtocolError = "http_protocol_error"
    case httpUpgradeFailed = "http_upgrade_failed"
    case proxyInternalResponse = "proxy_internal_response"
    case proxyInternalError = "proxy_internal_error"
    case proxyConfigurationError = "proxy_configuration_error"
    case proxyLoopDetected = "proxy_loop_detected"
}
