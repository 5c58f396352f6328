/// The only place that makes a response of a refusal.
enum RefusalResponse {
    /// Bytes, at most.
    private static let longestReason = 200
    private static let longestDetails = 512

    /// A response to HEAD has GET's head, and no body.
    static func bytes(for report: RefusalReport, toHead: Bool, as form: RefusalForm) -> [UInt8] {
        let (type, body) =
            switch form {
            case .problem: ("application/problem+json", ProblemDetails(report).json)
            case .page: ("text/html; charset=utf-8", RefusalPage.html(for: report))
            case .grpc: ("application/grpc", [])
            }
        let reason = FieldText.plain(report.reasonPhrase, longest: longestReason)
        var head =
            form == .grpc
            ? ResponseText(status: 200, reason: "OK") : ResponseText(status: report.status, reason: reason)
        if form == .grpc { addStatus(of: report, to: &head) }
        let details = FieldText.quoted(report.details, longest: longestDetails)
        head.add("Proxy-Status", "pinproxy; error=\(report.proxyStatusError); details=\(details)")
        for (name, value) in report.extraFields { head.add(name, FieldText.plain(value, longest: longestDetails)) }
        head.addBody(type: type, count: body.count, keepAlive: report.keepAlive)
        return head.bytes(with: toHead ? [] : body)
    }

    /// The status of gRPC, in a response of trailers alone. Its HTTP status is 200: clients take the reason from no
    /// other. Source: gRPC over HTTP/2 ("Responses"), HTTP to gRPC Status Code Mapping.
    private static func addStatus(of report: RefusalReport, to head: inout ResponseText) {
        let status =
            switch report.status {
            case 400: 13  // INTERNAL
            case 401: 16  // UNAUTHENTICATED
            case 403: 7  // PERMISSION_DENIED
            case 404: 12  // UNIMPLEMENTED
            case 429, 502, 503, 504: 14  // UNAVAILABLE
            default: 2  // UNKNOWN
            }
        head.add("grpc-status", "\(status)")
        head.add("grpc-message", FieldText.plain(report.details, longest: longestDetails).replacing("%", with: "%25"))
    }
}

/// The head of a response of the proxy itself. Names and values must be valid.
package struct ResponseText {
    private var text: String

    package init(status: Int, reason: String) { text = "HTTP/1.1 \(status) \(reason)\r\n" }

    package mutating func add(_ name: String, _ value: String) { text += "\(name): \(value)\r\n" }

    /// Only its own style, without an origin (sandbox), in no frame.
    private static let strictPolicy =
        """
        default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
        sandbox
        """

    /// For every answer of the proxy itself: never cached.
    /// - Parameter policy: the Content-Security-Policy of a page.
    package mutating func addBody(
        type: String, count: Int, keepAlive: Bool, policy: String = Self.strictPolicy
    ) {
        add("Content-Type", type)
        add("Content-Length", "\(count)")
        add("Cache-Control", "no-store")
        add("Content-Security-Policy", policy)
        add("X-Content-Type-Options", "nosniff")
        add("Connection", keepAlive ? "keep-alive" : "close")
    }

    package func bytes(with body: [UInt8]) -> [UInt8] { Array((text + "\r\n").utf8) + body }
}

/// Makes texts printable ASCII on one line, for a response's head.
enum FieldText {
    /// White space becomes spaces, our typography ASCII, and other characters question marks.
    /// - Parameter longest: in bytes.
    static func plain(_ text: String, longest: Int) -> String {
        var plain = ""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x20...0x7E: plain.unicodeScalars.append(scalar)
            case 0x09...0x0D: plain += " "
            default: plain += asciiForm(of: scalar)
            }
            if plain.utf8.count >= longest { break }
        }
        return String(plain.prefix(longest))
    }

    private static func asciiForm(of scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "…": "..."
        case "“", "”": "\""
        case "•": "*"
        case "·": "-"
        default: "?"
        }
    }

    /// A String of RFC 8941 section 3.3.3, with its quotes; `longest` counts before they are escaped.
    static func quoted(_ text: String, longest: Int) -> String {
        var quoted = "\""
        for scalar in plain(text, longest: longest).unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }
}
