internal import Configuration
internal import Proxy

/// The variables that make a program use the proxy and trust its authority.
struct ClientEnvironment {
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
        let url = proxy.description
        let direct = "localhost,127.0.0.1,::1"
        variables = [
            // Some programs know only the one spelling, some only the other.
            ("HTTPS_PROXY", url), ("https_proxy", url), ("HTTP_PROXY", url), ("http_proxy", url),
            ("NO_PROXY", direct), ("no_proxy", direct),
            ("SSL_CERT_FILE", bundle), ("CURL_CA_BUNDLE", bundle), ("REQUESTS_CA_BUNDLE", bundle),
            ("GIT_SSL_CAINFO", bundle), ("PIP_CERT", bundle), ("AWS_CA_BUNDLE", bundle),
            ("CARGO_HTTP_CAINFO", bundle),
            ("NODE_EXTRA_CA_CERTS", authority), ("NODE_USE_ENV_PROXY", "1"), ("DENO_CERT", authority),
            ("JAVA_TOOL_OPTIONS", Self.javaOptions(proxy, keeping: javaOptions)),
        ]
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

/// How programs of this machine reach the proxy.
struct ProxyURL: CustomStringConvertible {
    var scheme: String
    /// An address, without brackets.
    var host: String
    var port: UInt16

    /// The first address that is listened on; for "all addresses" the loopback one.
    /// - Parameter inherited: where it listens by the sockets of systemd.
    init(_ settings: ProxySettings, inherited: ListenFile) throws {
        let written = settings.listen.addresses.first { $0.port != 0 }
        let handedOver = settings.listen.takesInherited ? inherited.read().lazy.compactMap { ListenAddress($0) }.first : nil
        guard let address = written ?? handedOver else {
            throw CommandFailure(
                settings.listen.takesInherited
                    ? "proxy.listen is systemd, and no proxy has left word of its sockets (\(inherited.path)): "
                        + "start it once (systemctl start pinproxy)"
                    : "the port of the proxy is chosen when it starts (listen: …:0), so it can't be known here")
        }
        scheme = settings.tls == nil ? "http" : "https"
        port = address.port
        host =
            switch address.ip {
            case "0.0.0.0": "127.0.0.1"
            case "::": "::1"
            default: address.ip
            }
    }

    var description: String { "\(scheme)://\(authority)" }

    /// The same with a place for what the proxy asks for.
    var withCredentials: String { "\(scheme)://NAME:PASSWORD@\(authority)" }

    private var authority: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}
