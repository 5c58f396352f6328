import FoundationEssentials
import HTTPWire

/// An answer of the control socket: JSON, also where it is an error.
struct ControlResponse: Sendable {
    let status: Int
    let body: [UInt8]
    /// Of a 405.
    var allow: Method?

    init(_ value: some Encodable, status: Int = 200) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        self.status = status
        // Strings, numbers and lists of them can't fail to be encoded.
        body = (try? encoder.encode(value)).map { [UInt8]($0) } ?? []
    }

    /// - Parameter cause: for people.
    static func problem(_ status: Int, _ cause: String) -> ControlResponse {
        ControlResponse(["cause": cause], status: status)
    }

    func bytes(keepAlive: Bool) -> [UInt8] {
        var head = ResponseText(status: status, reason: Self.reasons[status] ?? "Answer")
        if let allow { head.add("Allow", allow.text) }
        head.addBody(type: "application/json", count: body.count, keepAlive: keepAlive)
        return head.bytes(with: body)
    }

    private static let reasons = [
        200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        422: "Unprocessable Content", 503: "Service Unavailable",
    ]
}
