/// Makes the bytes of a response out of what a refusal has to say: the only place that does.
enum RefusalResponse {
    /// Bytes of a reason phrase, and of the details in `Proxy-Status`, at most.
    private static let longestReason = 200
    private static let longestDetails = 512

    /// Head and body. A response to HEAD has the head that GET would get, and no body.
    static func bytes(for report: RefusalReport, toHead: Bool, prefersHTML: Bool) -> [UInt8] {
        let body = prefersHTML ? RefusalPage.html(for: report) : ProblemDetails(report).json
        var head = ResponseText(status: report.status, reason: FieldText.plain(report.reasonPhrase, longest: longestReason))
        let details = FieldText.quoted(report.details, longest: longestDetails)
        head.add("Proxy-Status", "pinproxy; error=\(report.proxyStatusError); details=\(details)")
        for (name, value) in report.extraFields { head.add(name, FieldText.plain(value, longest: longestDetails)) }
        head.addBody(
            type: prefersHTML ? "text/html; charset=utf-8" : "application/problem+json", count: body.count,
            keepAlive: report.keepAlive)
        return head.bytes(with: toHead ? [] : body)
    }
}

/// The head of a response of the proxy's own. Names and values are given ready for their place.
package struct ResponseText {
    private var text: String

    package init(status: Int, reason: String) { text = "HTTP/1.1 \(status) \(reason)\r\n" }

    package mutating func add(_ name: String, _ value: String) { text += "\(name): \(value)\r\n" }

    /// Nothing but its own style; it is of no site's origin (sandbox), and in no other page.
    private static let strictPolicy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"

    /// The fields of every answer of the proxy's own: no cache may keep it, and it runs only what it brings itself.
    /// - Parameter policy: what it may load and run.
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

/// Texts from anywhere, made fit for a response's head: printable ASCII on one line.
enum FieldText {
    /// Line breaks and tabs become spaces, our own typography its ASCII form, and other characters question marks.
    /// - Parameter longest: bytes; what is longer is cut.
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
