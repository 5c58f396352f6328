internal import CPinproxyPSL
internal import PinproxyTLS

/// Suffixes that are open for registration: `com`, `co.uk`, `github.io`. A wildcard there covers strangers' hosts. The
/// list is Debian's `publicsuffix`, or libpsl's own if that is newer or the package is missing.
package final class PublicSuffixes: Sendable {
    package static let system = PublicSuffixes()

    /// Unsafe only in name: read-only, so all threads may use it. Nil if libpsl was built without a list.
    private nonisolated(unsafe) let list: OpaquePointer?

    private init() { list = psl_latest(nil) }

    deinit { psl_free(list) }

    /// Whether it is a suffix of a registry or of a private operator. Unknown names of one label, such as `internal`,
    /// are not. The name is in lower-case A-labels.
    package func contains(_ name: String) -> Bool {
        psl_is_public_suffix2(list, name, PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE) == 1
    }
}

extension PublicSuffixes {
    /// Whether it belongs to a registry, as `co.uk` does, and not to a company, as `github.io` does. The name is in
    /// lower-case A-labels.
    func isRegistry(_ name: String) -> Bool {
        psl_is_public_suffix2(list, name, PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE) == 1
    }
}

extension WildcardRule {
    /// Refuses wildcards directly below a registry's suffix, as browsers do; `*.github.io` is GitHub's own certificate.
    init(for name: ServerName?, suffixes: PublicSuffixes = .system) {
        guard case .dns(let host)? = name, let dot = host.firstIndex(of: ".") else {
            self = .oneLabel
            return
        }
        let parent = String(host[host.index(after: dot)...])
        self = suffixes.isRegistry(parent) ? .refused(publicSuffix: parent) : .oneLabel
    }
}

extension HostPattern {
    /// The warning for a wildcard over strangers' hosts; nil for other patterns.
    package func publicSuffixWarning(_ suffixes: PublicSuffixes = .system) -> String? {
        guard scope != .exact, suffixes.contains(name) else { return nil }
        let (wildcard, which) =
            scope == .oneLabel
            ? ("*", "every name one label under “\(name)”") : ("**", "“\(name)” and every name under it")
        return "“\(inBothForms)” matches \(which), a public suffix where anybody can have a name; write the "
            + "intended domain, as in \(wildcard).example.\(name)"
    }
}
