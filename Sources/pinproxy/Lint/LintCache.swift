internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession
internal import PinproxyTLS

/// Findings about the responses that an entry stores.
enum LintCache {
    static func findings(_ entry: HostEntry, at now: UnixTime) -> [LintFinding] {
        guard entry.action == .intercept, let layers = entry.rules, layers.stores else { return [] }
        return [shared(entry, layers), reported(entry, at: now)].compactMap(\.self)
    }

    /// Clients see responses that were made for the proxy's credentials.
    private static func shared(_ entry: HostEntry, _ layers: RuleLayers) -> LintFinding? {
        let shared = layers.combinations.lazy.map(\.rules).filter { $0.cache?.rules.isShared == true }
        guard !shared.isEmpty else { return nil }
        let sent =
            if shared.contains(where: { $0.request.authorization != nil }) {
                "a password (request.authorization)"
            } else if shared.contains(where: { $0.session.credentials != nil }) {
                "a password (session.credentials)"
            } else if shared.contains(where: { $0.sendsSecret }) {
                "a secret (request)"
            } else if entry.tls?.identity != nil { "a client certificate" } else { "" }
        guard !sent.isEmpty else { return nil }
        return LintFinding(
            .sharedCache, .note, of: entry,
            "shared is true, and the proxy sends \(sent): responses obtained with it are stored for everybody who may "
                + "use the entry",
            fix: "remove shared, so that the store is private to each user; or leave it if all of them may see the same"
        )
    }

    private static func reported(_ entry: HostEntry, at now: UnixTime) -> LintFinding? {
        guard entry.policy.onlyReports(at: now) else { return nil }
        return LintFinding(
            .reportedCache, .note, of: entry,
            "enforcement is report: responses of a server without a matching pin are passed on and never stored",
            fix: "leave it; with enforcement: enforce such a server is refused")
    }
}
