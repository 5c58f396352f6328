package import HTTPWire

/// Writes what the proxy itself answers as an HTTP/1.1 response. Pure: what to say is the report's.
///
/// The reason phrase and Proxy-Status carry the cause, because many clients show nothing else of
/// an answer to CONNECT; the body carries the whole text.
package enum RefusalResponse {
    /// The longest reason phrase and the longest `details`, in bytes.
    static let lineLimit = 200

    /// Appends the whole response to `out`.
    ///
    /// - Parameters:
    ///   - method: of the request; the answer to HEAD has no body (but its length).
    ///   - clientVersion: of the request.
    package static func write(
        _ report: RefusalReport, as format: RefusalFormat, method: HTTPWire.Method, clientVersion: HTTPVersion,
        into out: inout [UInt8]
    ) {
        let body: String
        let contentType: String
        switch format {
        case .problem:
            body = ProblemDocument.json(of: report)
            contentType = "application/problem+json"
        case .html:
            body = HTMLPage.page(
                title: report.title, status: "\(report.status) · \(report.error.rawValue)", text: report.text)
            contentType = HTMLPage.contentType
        }
        var fields = report.fields
        fields.append(("Proxy-Status", proxyStatus(report)))
        if format == .html { fields += HTMLPage.fields }
        write(
            status: report.status, reasonPhrase: report.reasonPhrase, contentType: contentType, fields: fields,
            body: body, method: method, clientVersion: clientVersion, keepsAlive: report.keepsAlive, into: &out)
    }

    /// The value of Proxy-Status (RFC 9209), a structured field (RFC 8941).
    static func proxyStatus(_ report: RefusalReport) -> String {
        var text = "pinproxy; error=\(report.error.rawValue); details=\""
        for byte in line(report.details).utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append("\\") }
            text.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return text + "\""
    }

    /// The text as one line of printable ASCII that can stand in a head.
    static func line(_ text: String) -> String {
        var line: [UInt8] = []
        for scalar in text.unicodeScalars {
            if line.count == lineLimit { break }
            switch scalar.value {
            case 0x20...0x7E: line.append(UInt8(scalar.value))
            case 0x09, 0x0A, 0x0D: line.append(UInt8(ascii: " "))
            default: line.append(UInt8(ascii: "?"))
            }
        }
        return String(decoding: line, as: UTF8.self)
    }

    static func write(
        status: Int, reasonPhrase: String, contentType: String, fields: [(name: String, value: String)],
        body: String, method: HTTPWire.Method, clientVersion: HTTPVersion, keepsAlive: Bool, into out: inout [UInt8]
    ) {
        var head = "HTTP/1.1 \(status) \(line(reasonPhrase))\r\n"
        head += "Content-Type: \(contentType)\r\n"
        head += "Content-Length: \(body.utf8.count)\r\n"
        head += "Cache-Control: no-store\r\n"
        for field in fields { head += "\(field.name): \(fieldValue(field.value))\r\n" }
        if !keepsAlive {
            head += "Connection: close\r\n"
        } else if clientVersion == .http10 {
            head += "Connection: keep-alive\r\n"
        }
        head += "\r\n"
        out.append(contentsOf: head.utf8)
        if method != .head { out.append(contentsOf: body.utf8) }
    }

    /// The value without anything that could end its line.
    private static func fieldValue(_ value: String) -> String {
        String(String.UnicodeScalarView(value.unicodeScalars.filter { 0x20...0x7E ~= $0.value }))
    }
}
