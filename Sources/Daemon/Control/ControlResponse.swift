import FoundationEssentials
import PinproxyClients
import PinproxyHTTPWire

/// An answer of the control socket or the admin port: JSON by default, also for errors.
struct ControlResponse: Sendable {
    let status: Int
    let body: [UInt8]
    var type = "application/json"
    /// The method that a 405 allows.
    var allow: Method?
    var wantsToken = false
    /// The connection becomes a watcher (``LiveFeed``).
    var opensEvents = false
    /// Events include paths of requests.
    var showsPaths = false
    /// Content-Security-Policy; nil: nothing may load or run.
    var policy: String?

    init(_ value: some Encodable, status: Int = 200) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        self.status = status
        // Strings, numbers and lists always encode.
        body = (try? encoder.encode(value)).map { [UInt8]($0) } ?? []
    }

    init(_ body: [UInt8], type: String, status: Int = 200) {
        self.status = status
        self.body = body
        self.type = type
    }

    static func problem(_ status: Int, _ cause: String) -> ControlResponse {
        ControlResponse(["cause": cause], status: status)
    }

    /// - Parameter toHead: for HEAD, with the body's length but not the body.
    func bytes(keepAlive: Bool, toHead: Bool = false) -> [UInt8] {
        var head = ResponseText(status: status, reason: Self.reasons[status] ?? "Answer")
        if let allow { head.add("Allow", allow == .get ? "GET, HEAD" : allow.text) }
        if wantsToken { head.add("WWW-Authenticate", "Bearer realm=\"pinproxy\"") }
        head.add("Referrer-Policy", "no-referrer")
        head.add("Cross-Origin-Resource-Policy", "same-origin")
        head.addBody(
            type: type, count: body.count, keepAlive: keepAlive,
            policy: policy ?? "default-src 'none'; frame-ancestors 'none'")
        return head.bytes(with: toHead ? [] : body)
    }

    static let eventHead: [UInt8] = {
        var head = ResponseText(status: 200, reason: "OK")
        head.add("Content-Type", "text/event-stream")
        head.add("Cache-Control", "no-store")
        head.add("X-Content-Type-Options", "nosniff")
        head.add("Cross-Origin-Resource-Policy", "same-origin")
        head.add("Connection", "close")
        return head.bytes(with: [])
    }()

    private static let reasons = [
        200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed",
        421: "Misdirected Request", 422: "Unprocessable Content", 503: "Service Unavailable",
    ]
}
