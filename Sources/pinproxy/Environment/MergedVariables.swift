// Variables that hold more than one thing: the user's stays, and can be had back.

internal import FoundationEssentials
internal import Glibc
internal import PinproxyTLS

/// A JVM's settings: where the proxy is, and which trust store to use.
struct JavaOptions {
    static let variable = "JAVA_TOOL_OPTIONS"
    private static let names = [
        "-Dhttps.proxyHost=", "-Dhttps.proxyPort=", "-Dhttp.proxyHost=", "-Dhttp.proxyPort=", "-Dhttp.nonProxyHosts=",
        "-Djavax.net.ssl.trustStore=", "-Djavax.net.ssl.trustStoreType=", "-Djavax.net.ssl.trustStorePassword=",
    ]

    private let options: [String]

    /// - Parameter store: nil: the JVM's own.
    init(proxy: ProxyURL, store: String?, direct: [String]) {
        var options = [
            "-Dhttps.proxyHost=\(proxy.host)", "-Dhttps.proxyPort=\(proxy.port)", "-Dhttp.proxyHost=\(proxy.host)",
            "-Dhttp.proxyPort=\(proxy.port)", "-Dhttp.nonProxyHosts=\(Self.patterns(direct).joined(separator: "|"))",
        ]
        // The variable is split at blanks.
        if let store, !store.contains(where: { $0.isWhitespace || $0 == "'" || $0 == "\"" }) {
            options += [
                "-Djavax.net.ssl.trustStore=\(store)", "-Djavax.net.ssl.trustStoreType=PKCS12",
                "-Djavax.net.ssl.trustStorePassword=\(JavaTrustStore.password)",
            ]
        }
        self.options = options
    }

    /// The names of NO_PROXY as patterns, for Java and Subversion.
    static func patterns(_ direct: [String]) -> [String] {
        var patterns: [String] = []
        for host in direct {
            switch host {
            case "localhost", "*": patterns.append(host)
            case "127.0.0.1": patterns.append("127.*")
            case "::1": patterns.append("[::1]")
            case _ where host.contains(where: { "/|:* ".contains($0) }): break
            case _ where host.hasPrefix("."): patterns.append("*\(host)")
            default: patterns += [host, "*.\(host)"]
            }
        }
        return patterns
    }

    /// The variable's other contents are kept.
    func merged(with present: String?) -> String {
        ((Self.rest(of: present).map { [$0] } ?? []) + options).joined(separator: " ")
    }

    static func rest(of present: String?) -> String? {
        let kept = (present ?? "").split(separator: " ").filter { option in !names.contains { option.hasPrefix($0) } }
        return kept.isEmpty ? nil : kept.joined(separator: " ")
    }
}

/// HGRCPATH takes the place of all files that Mercurial would read: so they are named, and ours after them.
enum MercurialPath {
    private static func defaults(_ present: [String: String]) -> [String] {
        let home = present["HOME"] ?? ""
        let configuration = present["XDG_CONFIG_HOME"] ?? home + "/.config"
        return ["/etc/mercurial/hgrc", "/etc/mercurial/hgrc.d", home + "/.hgrc", configuration + "/hg/hgrc"]
    }

    static func adding(_ file: String, to present: [String: String]) -> String {
        (entries(present["HGRCPATH"]) ?? defaults(present)).joined(separator: ":") + ":" + file
    }

    static func rest(of present: [String: String]) -> String? {
        let kept = entries(present["HGRCPATH"])
        return kept == defaults(present) ? nil : kept?.joined(separator: ":")
    }

    private static func entries(_ value: String?) -> [String]? {
        value?.split(separator: ":", omittingEmptySubsequences: false).map(String.init).filter {
            !ProgramFiles.isOurs($0, "hgrc")
        }
    }
}

/// BOTO_PATH (gsutil) takes the place of all files that boto would read. BOTO_CONFIG takes its place, and is the
/// user's.
enum BotoPath {
    private static func defaults(_ present: [String: String]) -> [String] {
        ["/etc/boto.cfg", (present["HOME"] ?? "") + "/.boto"]
    }

    static func adding(_ file: String, to present: [String: String]) -> String {
        ((entries(present["BOTO_PATH"]) ?? defaults(present)) + [file]).joined(separator: ":")
    }

    static func rest(of present: [String: String]) -> String? {
        let kept = entries(present["BOTO_PATH"])
        return kept == defaults(present) ? nil : kept?.joined(separator: ":")
    }

    private static func entries(_ value: String?) -> [String]? {
        value?.split(separator: ":", omittingEmptySubsequences: false).map(String.init).filter {
            !ProgramFiles.isOurs($0, "boto")
        }
    }
}

/// PHP_INI_SCAN_DIR: an empty entry means PHP's own directory.
enum PHPDirectories {
    static func adding(_ directory: String, to present: String?) -> String {
        (rest(of: present) ?? "") + ":" + directory
    }

    static func rest(of present: String?) -> String? {
        let kept = (present ?? "").split(separator: ":", omittingEmptySubsequences: false).filter {
            !ProgramFiles.isOurs(String($0), "php")
        }
        return kept.allSatisfy(\.isEmpty) ? nil : kept.joined(separator: ":")
    }
}
