import PinproxyRecords
import PinproxySession

/// The content of a refusal, which may hold anything a client or an origin sent: ``RefusalResponse`` escapes it.
struct RefusalReport {
    var status: Int
    /// Cause and host on one line, which most clients print.
    var reasonPhrase: String
    /// The error type of RFC 9209 section 2.3.
    var proxyStatusError: String
    /// One line for `Proxy-Status` and the log.
    var details: String
    var title: String
    /// Paragraphs of one or more lines; empty ones are omitted.
    var body: [String]
    /// Empty: the request named no host.
    var host = ""
    /// The pins of the verified chain and those of the policy, as pin files write them.
    var presentedPins: [String] = []
    var configuredPins: [String] = []
    var isPinFailure = false
    /// The contact with a refused origin.
    var contact: OriginContact?
    /// The client that requested it; nil: no client of the proxy.
    var requester: Requester?
    var reader = RefusalReader.client
    var mismatch: Mismatch?
    var extraFields: [(String, String)] = []
    var keepAlive = false

    /// What failed, and what to do.
    var text: String {
        paragraphs.map { $0.hasSuffix("\n") ? String($0.dropLast()) : $0 }.filter { !$0.isEmpty }.joined(
            separator: "\n\n")
    }

    /// With the refused origin's address.
    var paragraphs: [String] {
        guard let contact else { return body }
        return body + [ConnectionAccount(contact, requester, for: reader).text]
    }

    /// A fault of the origin, or of the path to it.
    static func origin(
        _ status: Int, _ title: String, _ error: String, _ details: String, _ host: String
    ) -> RefusalReport {
        RefusalReport(
            status: status, reasonPhrase: title, proxyStatusError: error, details: details, title: title,
            body: [details], host: host)
    }

    /// A fault of the request.
    static func client(
        _ status: Int, _ title: String, _ details: String, error: String = "http_request_error"
    ) -> RefusalReport {
        .origin(status, title, error, details, "")
    }

    /// A 503 after which the client may retry, in five seconds.
    static func later(
        _ title: String, _ details: String, _ host: String = "", error: String = "proxy_internal_response"
    ) -> RefusalReport {
        var report = origin(503, title, error, details, host)
        report.extraFields = [("Retry-After", "5")]
        return report
    }
}
