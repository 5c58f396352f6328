package import HTTPWire

/// The answer to a request that takes the proxy for a web server: what this port is, and how to
/// use it.
package enum PortPage {
    /// Appends the whole response (400, then close) to `out`: HTML for browsers, else plain text.
    ///
    /// - Parameter proxy: the proxy's URL as clients write it, e.g. `http://127.0.0.1:7467`.
    package static func write(
        proxy: String, as format: RefusalFormat, method: HTTPWire.Method, clientVersion: HTTPVersion,
        into out: inout [UInt8]
    ) {
        let title = "This is pinproxy, a proxy and not a web server"
        let text = usage(proxy: proxy)
        let isHTML = format == .html
        RefusalResponse.write(
            status: 400, reasonPhrase: title,
            contentType: isHTML ? HTMLPage.contentType : "text/plain; charset=utf-8",
            fields: isHTML ? HTMLPage.fields : [],
            body: isHTML
                ? HTMLPage.page(title: title, status: "400 · ask it for another server's pages", text: text)
                : "\(title).\n\n\(text)",
            method: method, clientVersion: clientVersion, keepsAlive: false, into: &out)
    }

    private static func usage(proxy: String) -> String {
        """
        It connects programs of this machine to the servers they name, and checks the servers'
        certificates against the pins in pins.yaml.

        All programs of a shell:
          eval "$(pinproxy env)"

        One program:
          pinproxy exec -- curl https://example.com/

        By hand:
          curl --proxy \(proxy) https://example.com/

        A browser: set \(proxy) as its HTTP and HTTPS proxy, and let it trust the
        certificate that `pinproxy ca show` prints.

        """
    }
}
