/// A small page that needs nothing from elsewhere, in light and dark.
enum HTMLPage {
    static let contentType = "text/html; charset=utf-8"

    /// The page is shown under another's name: it may run and load nothing.
    static let fields: [(name: String, value: String)] = [
        ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
        ("X-Content-Type-Options", "nosniff"),
    ]

    static func page(title: String, status: String, text: String) -> String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>\(escaped(title))</title>
        <style>
        :root { color-scheme: light dark; }
        body { margin: 12vh auto; max-width: 50rem; padding: 0 1.5rem; font: 1rem/1.5 system-ui, sans-serif; }
        header { border-left: .3rem solid #d9473f; padding-left: 1rem; }
        h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
        p { margin: .2rem 0 0; opacity: .7; font-size: .9rem; }
        pre { margin: 2rem 0; padding: 1rem; overflow-x: auto; border-radius: .4rem; font-size: .85rem;
              background: rgb(128 128 128 / 14%); }
        </style>
        </head>
        <body>
        <header><h1>\(escaped(title))</h1><p>pinproxy · \(escaped(status))</p></header>
        <pre>\(escaped(text))</pre>
        </body>
        </html>

        """
    }

    /// The text for use between tags and in quoted attributes.
    static func escaped(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "'": out += "&#39;"
            case "\n", "\t": out.unicodeScalars.append(scalar)
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}": out += "\u{FFFD}"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}
