/// The answer to a request for the proxy itself: how to use the port.
enum UsagePage {
    private static let title = "This is pinproxy, an HTTPS forward proxy"
    private static let explanation =
        "Nothing is served here: programs send their requests through this port, and pinproxy checks the "
        + "certificates and keys of the servers that they reach."
    private static func commands(_ url: String) -> String {
        """
        # every program of this shell
        eval "$(pinproxy env)"

        # one command
        pinproxy exec -- curl https://example.com/

        # by hand; the program must trust the proxy's authority too (pinproxy ca show --pem)
        export HTTPS_PROXY=\(url)

        # a browser: let it trust the authority (for the whole machine: sudo pinproxy ca install), and enter
        # \(url) as its proxy for HTTP and HTTPS
        pinproxy ca install --nss
        """
    }

    /// - Parameter url: the proxy's, for this client.
    static func response(for url: String, toHead: Bool, prefersHTML: Bool) -> [UInt8] {
        let body = prefersHTML ? html(url) : Array("\(title)\n\n\(explanation)\n\n\(commands(url))\n".utf8)
        var head = ResponseText(status: 400, reason: "This is a proxy: send requests through it, not to it")
        head.add("Proxy-Status", "pinproxy; error=http_request_error; details=\"a request to the proxy itself\"")
        head.addBody(
            type: prefersHTML ? "text/html; charset=utf-8" : "text/plain; charset=utf-8", count: body.count,
            keepAlive: false)
        return head.bytes(with: toHead ? [] : body)
    }

    private static func html(_ url: String) -> [UInt8] {
        RefusalPage.page(
            title: title,
            body: """
                <p class="status">400 · pinproxy</p>
                <h1>\(RefusalPage.escaped(title))</h1>
                <p>\(RefusalPage.escaped(explanation))</p>
                <pre>\(RefusalPage.escaped(commands(url)))</pre>

                """)
    }
}
