internal import PinproxyConfiguration

/// The variables that make a program use the proxy and trust its authority.
struct ClientEnvironment {
    typealias Variable = (name: String, value: String)

    let proxy: ProxyURL
    let trust: TrustFiles
    let variables: [Variable]
    /// The hosts that are reached without the proxy: those that the user has named, and this machine.
    let direct: [String]

    /// Programs on this machine are reached without the proxy.
    static let direct = ["localhost", "127.0.0.1", "::1"]

    /// - Parameter present: the variables that there are: what others have written into lists is kept.
    init(proxy: ProxyURL, trust: TrustFiles, present: [String: String]) {
        self.proxy = proxy
        self.trust = trust
        let url = proxy.description
        direct = Self.direct(present)
        var variables: [Variable] = []
        // Some programs know only the one spelling, some only the other.
        for name in Self.proxyNames { variables += [(name, url), (name.lowercased(), url)] }
        for name in ["NO_PROXY", "no_proxy"] { variables.append((name, direct.joined(separator: ","))) }
        variables += Self.bundleNames.map { ($0, trust.bundle) } + Self.authorityNames.map { ($0, trust.authority) }
        variables += Self.switches.map { ($0, "1") }
        let java = JavaOptions(proxy: proxy, store: trust.javaStore, direct: direct)
        variables.append((JavaOptions.variable, java.merged(with: present[JavaOptions.variable])))
        if let files = trust.configuration {
            variables += [
                ("WGETRC", files.wget), ("APT_CONFIG", files.apt),
                ("HGRCPATH", MercurialPath.adding(files.mercurial, to: present)),
                ("BOTO_PATH", BotoPath.adding(files.boto, to: present)),
                ("PHP_INI_SCAN_DIR", PHPDirectories.adding(files.phpDirectory, to: present["PHP_INI_SCAN_DIR"])),
            ]
        }
        // git sends credentials only after a refusal, unless the scheme is configured.
        if proxy.credentials != nil { variables.append((Self.gitName, "basic")) }
        self.variables = variables
    }

    private static let proxyNames = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "WS_PROXY", "WSS_PROXY"]
    private static let gitName = "GIT_HTTP_PROXY_AUTHMETHOD"
    /// Programs that take the file instead of the system's roots.
    private static let bundleNames = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE",
        "CARGO_HTTP_CAINFO", "PERL_LWP_SSL_CA_FILE", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        "NIX_SSL_CERT_FILE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "HEX_CACERTS_PATH",
        "npm_config_cafile",
    ]
    /// Programs that add the authority to their own.
    private static let authorityNames = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"]
    /// Make programs take the proxy from the environment: Node, and Perl's Mojolicious.
    private static let switches = ["NODE_USE_ENV_PROXY", "MOJO_PROXY"]

    private static func direct(_ present: [String: String]) -> [String] {
        var hosts: [String] = []
        let written = [present["NO_PROXY"], present["no_proxy"]].compactMap { $0 }.flatMap { $0.split(separator: ",") }
        for host in written.map({ String($0.trimming { $0 == " " }) }) + direct
        where !host.isEmpty && !hosts.contains(host) {
            hosts.append(host)
        }
        return hosts
    }

    /// Whether the user's own NO_PROXY takes all hosts out.
    var isBypassed: Bool {
        variables.contains { $0.name == "NO_PROXY" && $0.value.split(separator: ",").contains("*") }
    }

    func warnIfBypassed() {
        guard isBypassed else { return }
        Standard.error("pinproxy: NO_PROXY is *: programs bypass the proxy, and nothing is checked")
    }

    func exports(in shell: ShellSyntax) -> String { variables.map { shell.set($0.name, $0.value) }.joined() }

    // MARK: The way back

    /// Lines that undo what such lines have done, as far as it can be seen in the variables.
    static func removal(from present: [String: String], in shell: ShellSyntax) -> String {
        var lines: [String] = []
        func restore(_ name: String, _ value: String?) {
            guard present[name] != nil else { return }
            lines.append(value.map { shell.set(name, $0) } ?? shell.unset(name))
        }
        let proxies = proxyNames.flatMap { [$0, $0.lowercased()] }
        for name in proxies + bundleNames + authorityNames + switches + [gitName] { restore(name, nil) }
        for name in ["NO_PROXY", "no_proxy"] {
            let rest = (present[name] ?? "").split(separator: ",").filter { !direct.contains(String($0)) }
            restore(name, rest.isEmpty ? nil : rest.joined(separator: ","))
        }
        restore(JavaOptions.variable, JavaOptions.rest(of: present[JavaOptions.variable]))
        if let wget = present["WGETRC"], ProgramFiles.isOurs(wget, "wgetrc") {
            let own = ProgramFiles.origin(ofWgetrc: wget)
            restore("WGETRC", own == (present["HOME"] ?? "") + "/.wgetrc" ? nil : own)
        }
        if let apt = present["APT_CONFIG"], ProgramFiles.isOurs(apt, "apt.conf") {
            restore("APT_CONFIG", ProgramFiles.included(byAptConfiguration: apt))
        }
        restore("HGRCPATH", MercurialPath.rest(of: present))
        restore("BOTO_PATH", BotoPath.rest(of: present))
        restore("PHP_INI_SCAN_DIR", PHPDirectories.rest(of: present["PHP_INI_SCAN_DIR"]))
        return lines.joined()
    }
}

extension Substring {
    fileprivate func trimming(_ isBlank: (Character) -> Bool) -> Substring {
        var text = drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }
}
