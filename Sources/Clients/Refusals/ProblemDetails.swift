import FoundationEssentials
import PinproxyRecords

/// A refusal for programs (RFC 9457), with extension members.
struct ProblemDetails: Encodable {
    private let type: String
    private let title: String
    private let status: Int
    private let detail: String
    /// RFC 9209's error type.
    private let error: String
    private let host: String?
    private let presentedPins: [String]?
    private let configuredPins: [String]?
    private let response: RefusalReport.Mismatch?
    private let connection: ConnectionDetails?
    private let client: ClientDetails?
    private let task: UInt64?

    init(_ report: RefusalReport) {
        type = "urn:x-pinproxy:\(report.proxyStatusError)"
        title = report.title
        status = report.status
        detail = report.text.isEmpty ? report.details : report.text
        error = report.proxyStatusError
        host = report.host.isEmpty ? nil : report.host
        presentedPins = report.presentedPins.isEmpty ? nil : report.presentedPins
        response = report.mismatch
        connection = report.contact.map { ConnectionDetails($0, withPlace: report.reader == .client) }
        let requester = report.contact == nil ? nil : report.requester
        client = report.reader == .client ? requester.map { ClientDetails($0) } : nil
        task = requester?.task
        configuredPins = report.configuredPins.isEmpty ? nil : report.configuredPins
    }

    /// Ends with a line break, for terminals.
    var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Strings and numbers always encode; an empty object is still a valid answer.
        guard let data = try? encoder.encode(self) else { return Array("{}\n".utf8) }
        return Array(data) + [0x0A]
    }
}
