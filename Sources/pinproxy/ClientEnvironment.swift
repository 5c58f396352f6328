internal import Configuration
internal import Proxy

/// The variables that make a program use the proxy and trust its authority.
struct ClientEnvironment {
    /// Where they lead.
    let proxy: ProxyURL
    /// In the order in which they are printed.
    let variables: [(name: String, value: String)]

    /// - Parameters:
    ///   - proxy: the proxy's URL.
    ///   - bundle: the system's roots together with the authority, for programs that let a variable
    ///     take the place of the system's.
    ///   - authority: the authority alone, for programs that add it to theirs.
    ///   - javaOptions: the present value of JAVA_TOOL_OPTIONS; what it says about proxies is
    ///     replaced, the rest is kept.
    init(proxy: ProxyURL, bundle: String, authority: String, javaOptions: String?) {
        self.proxy = proxy
        let url = proxy.description
        let direct = "localhost,127.0.0.1,::1"
        var variables = [
            // Some programs know only the one spelling, some only the other.
            ("HTTPS_PROXY", url), ("https_proxy", url), ("HTTP_PROXY", url), ("http_proxy", url),
            ("NO_PROXY", direct), ("no_proxy", direct),
            ("SSL_CERT_FILE", bundle), ("CURL_CA_BUNDLE", bundle), ("REQUESTS_CA_BUNDLE", bundle),
            ("GIT_SSL_CAINFO", bundle), ("PIP_CERT", bundle), ("AWS_CA_BUNDLE", bundle),
            ("CARGO_HTTP_CAINFO", bundle),
            ("NODE_EXTRA_CA_CERTS", authority), ("NODE_USE_ENV_PROXY", "1"), ("DENO_CERT", authority),
            ("JAVA_TOOL_OPTIONS", Self.javaOptions(proxy, keeping: javaOptions)),
        ]
        // git sends a name and a password only to a proxy that has refused it without, unless it is told which way to.
        if proxy.credentials != nil { variables.append(("GIT_HTTP_PROXY_AUTHMETHOD", "basic")) }
        self.variables = variables
    }

    /// Lines for a POSIX shell to evaluate.
    var exports: String {
        variables.map { "export \($0.name)=\(Self.quoted($0.value))\n" }.joined()
    }

    /// What is printed in the place of the exports where there are none: for a person who reads it, and for a shell.
    static let failure =
        "echo 'pinproxy env failed (its message is above): this shell does not use the proxy' >&2; false\n"

    /// In single quotes nothing is special but the quote itself.
    static func quoted(_ value: String) -> String {
        "'" + value.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    private static func javaOptions(_ proxy: ProxyURL, keeping present: String?) -> String {
        let ours = [
            "-Dhttps.proxyHost=\(proxy.host)", "-Dhttps.proxyPort=\(proxy.port)", "-Dhttp.proxyHost=\(proxy.host)",
            "-Dhttp.proxyPort=\(proxy.port)", "-Dhttp.nonProxyHosts=localhost|127.*|[::1]",
        ]
        let names = ours.map { $0.prefix { $0 != "=" } + "=" }
        let kept = (present ?? "").split(separator: " ").filter { option in !names.contains { option.hasPrefix($0) } }
        return (kept.map(String.init) + ours).joined(separator: " ")
    }
}
