/// What a refusal has to say, before it is put into a form that the client reads.
///
/// The texts may hold anything that a client or an origin sent: ``RefusalResponse`` makes each fit for its place.
struct RefusalReport {
    var status: Int
    /// What most clients print: cause and host on one line.
    var reasonPhrase: String
    /// The error type of RFC 9209 section 2.3.
    var proxyStatusError: String
    /// One line for `Proxy-Status` and the log.
    var details: String
    var title: String
    /// Paragraphs, which may have lines of their own; empty ones are left out.
    var body: [String]
    /// The host that was asked for; empty where none was.
    var host = ""
    /// The pins of the verified chain and those of the policy, as pin files write them.
    var presentedPins: [String] = []
    var configuredPins: [String] = []
    /// The chain met none of the pins.
    var isPinFailure = false
    /// What is wrong with the response.
    var mismatch: Mismatch?
    var extraFields: [(String, String)] = []
    var keepAlive = false

    /// The whole text: what failed, and what to do about it.
    var text: String {
        body.map { $0.hasSuffix("\n") ? String($0.dropLast()) : $0 }.filter { !$0.isEmpty }.joined(separator: "\n\n")
    }

    /// A report of the origin's fault, or of the way's to it.
    static func origin(_ status: Int, _ title: String, _ error: String, _ details: String, _ host: String) -> RefusalReport {
        RefusalReport(
            status: status, reasonPhrase: title, proxyStatusError: error, details: details, title: title,
            body: [details], host: host)
    }
}
