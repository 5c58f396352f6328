internal import CPSL
internal import TLS

/// The names under which anybody can register a name: `com`, `co.uk`, `github.io`. Hosts under one
/// have nothing in common, so a wildcard there says more than its author meant.
///
/// The list is Debian's package `publicsuffix`, which its maintainers keep up to date, or the one
/// within libpsl where that is newer, or the package is missing.
package final class PublicSuffixes: Sendable {
    package static let system = PublicSuffixes()

    /// Read-only, which libpsl allows from all threads at once; nil only if libpsl was built without a list.
    private nonisolated(unsafe) let list: OpaquePointer?

    private init() { list = psl_latest(nil) }

    deinit { psl_free(list) }

    /// Whether the list names it, as a suffix of a registry or of a private operator. Names of one label
    /// that it doesn't know, such as `internal` or `test`, are not public suffixes: nobody sells names there.
    /// - Parameter name: in lower case, as A-labels.
    package func contains(_ name: String) -> Bool {
        psl_is_public_suffix2(list, name, PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE) == 1
    }
}

extension PublicSuffixes {
    /// Whether a registry sells names directly below it, as with `co.uk`: what the list calls its ICANN
    /// section. `github.io` is in the other one, of companies that give names to their customers.
    /// - Parameter name: in lower case, as A-labels.
    func isRegistry(_ name: String) -> Bool {
        psl_is_public_suffix2(list, name, PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE) == 1
    }
}

extension WildcardRule {
    /// Refuses wildcards for names directly below a registry's suffix, as browsers do: `*.co.uk` matches no
    /// `example.co.uk`. A wildcard over a company's suffix is let through, as by them: `*.github.io` is the
    /// certificate that GitHub itself shows for its customers' pages.
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
    /// What to say of a wildcard that covers the hosts of strangers; nil for all other patterns.
    package func publicSuffixWarning(_ suffixes: PublicSuffixes = .system) -> String? {
        guard scope != .exact, suffixes.contains(name) else { return nil }
        let (wildcard, which) =
            scope == .oneLabel
            ? ("*", "every name one label under “\(name)”") : ("**", "“\(name)” and every name under it")
        return "“\(inBothForms)” matches \(which), a public suffix where anybody can have a name; write the "
            + "domain that is meant, as in \(wildcard).example.\(name)"
    }
}
