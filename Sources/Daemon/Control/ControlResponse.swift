import Clients
import FoundationEssentials
import HTTPWire

/// An answer of the control socket or the admin port: JSON, also where it is an error, unless it says otherwise.
struct ControlResponse: Sendable {
    let status: Int
    let body: [UInt8]
    var type = "application/json"
    /// Of a 405: what the resource takes.
    var allow: Method?
    /// Of a 401: the port wants a token.
    var wantsToken = false
    /// The connection becomes one that tells of what the proxy does (``LiveFeed``).
    var opensEvents = false
    /// Of the events: with the paths of requests.
    var showsPaths = false
    /// What a page may load and run (Content-Security-Policy); nil: nothing.
    var policy: String?

    init(_ value: some Encodable, status: Int = 200) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        self.status = status
        // Strings, numbers and lists of them can't fail to be encoded.
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

    /// - Parameter toHead: without the body, of which the head tells all the same.
    func bytes(keepAlive: Bool, toHead: Bool = false) -> [UInt8] {
        var head = ResponseText(status: status, reason: Self.reasons[status] ?? "Answer")
        if let allow { head.add("Allow", allow == .get ? "GET, HEAD" : allow.text) }
        if wantsToken { head.add("WWW-Authenticate", "Bearer realm=\"pinproxy\"") }
        head.add("Referrer-Policy", "no-referrer")
        head.add("Cross-Origin-Resource-Policy", "same-origin")
        head.addBody(type: type, count: body.count, keepAlive: keepAlive, policy: policy ?? "default-src 'none'; frame-ancestors 'none'")
        return head.bytes(with: toHead ? [] : body)
    }

    /// The head of an answer whose body has no end.
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
        200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        421: "Misdirected Request", 422: "Unprocessable Content", 503: "Service Unavailable",
    ]
}
