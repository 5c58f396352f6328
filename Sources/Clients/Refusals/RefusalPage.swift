/// A refusal as one self-contained page for browsers.
enum RefusalPage {
    static func html(for report: RefusalReport) -> [UInt8] {
        var body = "<p class=\"status\">\(report.status) · pinproxy</p>\n<h1>\(escaped(report.title))</h1>\n"
        for paragraph in report.paragraphs where !paragraph.isEmpty {
            let isListing = paragraph.contains("\n")
            body += isListing ? "<pre>\(escaped(paragraph))</pre>\n" : "<p>\(escaped(paragraph))</p>\n"
        }
        body += "<footer>This answer comes from pinproxy on the way, not from the site"
        if !report.host.isEmpty { body += " <b>\(escaped(report.host))</b>" }
        body += ". Error type: <code>\(escaped(report.proxyStatusError))</code></footer>\n"
        return page(title: report.title, body: body)
    }

    /// A whole document. The title is text, the body is HTML.
    static func page(title: String, body: String) -> [UInt8] {
        Array(
            """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(escaped(title))</title>
            <style>
            \(style)
            </style>
            </head>
            <body>
            <main>
            \(body)</main>
            </body>
            </html>

            """.utf8)
    }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case "\n", "\t": escaped.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0x7F: escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private static let style = """
        :root { color-scheme: light dark; --text: #1c1e21; --dim: #5d646c; --page: #f5f6f7; --card: #fff; --line: \
        #dcdfe3; --mark: #b3261e; }
        @media (prefers-color-scheme: dark) {
          :root { --text: #e6e8ea; --dim: #9aa2ab; --page: #15181b; --card: #1e2226; --line: #353b41; --mark: #ff8a80; }
        }
        body { margin: 0; padding: 6vh 1rem; background: var(--page); color: var(--text); font: 1rem/1.55 system-ui, \
        sans-serif; }
        main { max-width: 60rem; margin: 0 auto; padding: 2rem 2.25rem; background: var(--card); border: 1px solid \
        var(--line); border-top: 4px solid var(--mark); border-radius: 8px; }
        h1 { margin: .2rem 0 1.2rem; font-size: 1.5rem; line-height: 1.3; overflow-wrap: anywhere; }
        .status { margin: 0; color: var(--mark); font-weight: 600; }
        p { overflow-wrap: anywhere; }
        pre { margin: 1rem 0; padding: 1rem; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--page); \
        border: 1px solid var(--line); border-radius: 6px; }
        pre, code { font: .84rem/1.55 ui-monospace, "DejaVu Sans Mono", monospace; }
        footer { margin-top: 1.5rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--dim); \
        font-size: .875rem; }
        """
}
