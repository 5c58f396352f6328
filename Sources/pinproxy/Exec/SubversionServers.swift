internal import PinproxyHTTPWire
internal import PinproxyIsolation

extension ClientEnvironment {
    /// For programs that take the proxy from a file of the system's.
    var systemSettings: [AddedSettings] {
        [SubversionServers.settings(proxy, direct: direct)].compactMap { $0 }
    }
}

/// Subversion takes a proxy from files alone: the system's has it, and the user's has precedence.
///
/// The format is that of <https://svnbook.red-bean.com/en/1.8/svn.advanced.confarea.html>: sections may come twice.
enum SubversionServers {
    private static let path = "/etc/subversion/servers"

    /// Nil: it can't speak TLS with a proxy.
    static func settings(_ proxy: ProxyURL, direct: [String]) -> AddedSettings? {
        guard proxy.scheme == "http" else { return nil }
        var lines = ["[global]", "http-proxy-host = \(proxy.host)", "http-proxy-port = \(proxy.port)"]
        let parts = (proxy.credentials ?? "").split(separator: ":", maxSplits: 1).compactMap(\.percentDecoded)
        if parts.count == 2, parts.allSatisfy(isText) {
            lines += ["http-proxy-username = \(parts[0])", "http-proxy-password = \(parts[1])"]
        }
        let exceptions = JavaOptions.patterns(direct).filter { isText($0) && !$0.contains(",") }
        if !exceptions.isEmpty { lines.append("http-proxy-exceptions = \(exceptions.joined(separator: ", "))") }
        return AddedSettings(path: path, lines: lines.map { $0 + "\n" }.joined())
    }

    /// A value with a line break or a reference to another value can't be written there.
    private static func isText(_ value: String) -> Bool {
        !value.isEmpty && value.first?.isWhitespace == false && value.last?.isWhitespace == false
            && !value.contains("%(") && !value.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}
